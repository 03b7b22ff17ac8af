"""Calls Headrace when a library of loaders has been imported, to record them.

Imports nothing but what every interpreter has loaded at its start: it runs in all of them.
"""

import os
import sys
from _frozen_importlib import _module_locks  # type: ignore[attr-defined]
from _frozen_importlib_external import SourceFileLoader
from _thread import get_ident

from _headrace_own_imports import ShadowedError, is_of_library, library_spec  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing is not loaded yet
    from typing import Any

#: Modules after whose import the loaders of this process are recorded: the packages, whose public names are
#: there then, and the modules inside them, which may be reloaded alone. Each has the adapter that records it,
#: and a file or folder beside the module's own that a module of the user's with the same name does not have.
#: Written by tools/loader_modules.py from what each loader declares.
LOADER_MODULES = {
    "batchgenerators.dataloading.multi_threaded_augmenter": ("batchgenerators", ""),
    "batchgenerators.dataloading.nondet_multi_threaded_augmenter": ("batchgenerators", ""),
    "batchgenerators.dataloading.single_threaded_augmenter": ("batchgenerators", ""),
    "nvidia.dali.plugin.base_iterator": ("dali", ""),
    "fastai.data.load": ("fastai", ""),
    "grain": ("grain", "_src"),
    "datasets": ("huggingface", "iterable_dataset.py"),
    "keras.src.trainers.data_adapters.py_dataset_adapter": ("keras", ""),
    "litdata.streaming.dataloader": ("litdata", ""),
    "mindspore.dataset": ("mindspore", "engine"),
    "streaming.base.dataset": ("mosaicml", "stream.py"),
    "ray.data.iterator": ("ray_data", ""),
    "spdl.pipeline": ("spdl", ""),
    "tensorflow": ("tfdata", "python"),
    "keras.src.backend.tensorflow.trainer": ("tfdata", ""),
    "torch.utils.data": ("torch_dataloader", ""),
    "torch.utils.data.dataloader": ("torch_dataloader", ""),
    "accelerate.data_loader": ("torch_dataloader", ""),
    "torchdata.stateful_dataloader": ("torch_dataloader", ""),
    "torchdata.stateful_dataloader.stateful_dataloader": ("torch_dataloader", ""),
    "torch_geometric.loader.node_loader": ("torch_geometric", ""),
    "torch_geometric.loader.link_loader": ("torch_geometric", ""),
    "torchdata.nodes": ("torchdata_nodes", ""),
    "decord.video_reader": ("video_decoders", ""),
    "torchcodec.decoders._video_decoder": ("video_decoders", ""),
    "lerobot.datasets.video_utils": ("video_decoders", ""),
    "webdataset": ("webdataset", "pipeline.py"),
}


#: A shorter program has no training loop.
WATCHED_AFTER_S = 0.5


def install() -> None:
    """Put the hook in front of the interpreter's own finders. Idempotent."""
    if not any(isinstance(finder, LoaderModuleFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, LoaderModuleFinder())


def watch_for_batches() -> None:
    """Look for the function that makes the batches of a script without a loader, on a thread of its own."""
    if _is_a_worker():
        return
    _run_steps(_watch())


def _is_a_worker() -> bool:
    """Or another helper of multiprocessing."""
    return any("multiprocessing" in each for each in getattr(sys, "orig_argv", []))


def _run_steps(steps: "Any") -> None:
    """`headrace.common.sampling_thread.run_steps`, without an import of Headrace."""
    package = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))  # noqa: PTH120 - see above
    name = "headrace.common.sampling_thread"
    file = os.path.join(package, "common", "sampling_thread.py")  # noqa: PTH118
    names: Any = {"__name__": name}
    code: Any = SourceFileLoader(name, file).get_code(name)
    exec(code, names)
    names["run_steps"](steps)


def _watch() -> "Any":
    try:
        yield WATCHED_AFTER_S
        # Two threads that import the same modules may find one of them half-way.
        while _imports_now():
            yield 0.05
        keep_interrupt()
        if not _has_threading():
            _import_threading_in_main_thread()
        while not _has_threading():
            yield WATCHED_AFTER_S
        from headrace.loaders.no_loader import watch
        from headrace.record.budget.looks import start

        yield 0.0  # what it imports may have made a fork wait, which then does not know of its thread
        start()
        yield from watch()
    except BaseException:  # the user's program runs, recorded or not
        pass


def _imports_now() -> bool:
    """Whether a thread imports a module: its lock exists until it is there."""
    return any(lock() is not None for lock in list(_module_locks.values()))


def _has_threading() -> bool:
    return hasattr(sys.modules.get("threading"), "_main_thread")


def _import_threading_in_main_thread() -> None:
    """Whichever thread imports it first is the main thread for it, and is waited for at the end."""
    import ctypes

    # The interpreter calls PyObject_IsTrue(_import_of_threading). If a signal's handler raises meanwhile, the
    # program gets that; a function of ctypes would print it, and raise a SystemError.
    python = ctypes.pythonapi
    call = ctypes.cast(python.PyObject_IsTrue, ctypes.c_void_p)
    python.Py_AddPendingCall(call, ctypes.py_object(_import_of_threading))


class _ImportOfThreading:
    def __bool__(self) -> bool:
        try:
            import threading  # noqa: F401
        except ShadowedError:
            pass
        except BaseException as error:
            if not isinstance(error, Exception) or not is_of_library(_place_of(error)):
                raise error.with_traceback(None) from error.__cause__  # a handler of the program's
        return False  # done


#: It must stay: the interpreter calls it later.
_import_of_threading = _ImportOfThreading()


def _place_of(error: BaseException) -> str:
    """The file in which it was raised."""
    trace: Any = error.__traceback__
    while trace.tb_next is not None:
        trace = trace.tb_next
    return str(trace.tb_frame.f_code.co_filename)


_keeps_interrupt = False


def keep_interrupt() -> None:
    """An interpreter that a KeyboardInterrupt ends dies by SIGINT, as its parent expects.

    It forgets that if a text is executed meanwhile, as imports of ours do (dataclasses), on any thread.
    So it is reminded at its end, behind what is registered later.
    """
    global _keeps_interrupt
    if not _keeps_interrupt:
        import atexit

        _keeps_interrupt = True
        atexit.register(_remind_of_interrupt)


def _remind_of_interrupt() -> None:
    trace: Any = getattr(sys, "last_traceback", None)
    # A console that the program runs keeps the last exception there, too, from a frame further in.
    is_of_program = trace is not None and trace.tb_frame.f_back is None
    if is_of_program and getattr(sys, "last_type", None) is KeyboardInterrupt:
        try:
            exec("raise KeyboardInterrupt")
        except KeyboardInterrupt:
            pass


def record_loaders(adapter: str) -> None:
    """Record the loaders of ``adapter``. The program's import succeeds whatever happens."""
    try:
        keep_interrupt()
        from headrace.common.messages import warn_once
        from headrace.common.plain import typed_error_line

        # Not import_module: that would import as the user's modules do.
        found = __import__(f"headrace.loaders.{adapter}", fromlist=["record_every_loader"])
    except ShadowedError as error:
        _say_once(f"the loaders of this process are not recorded: {error}")
        return
    except Exception:  # an environment without Headrace, or a broken one
        return
    try:
        found.record_every_loader()
    except Exception as error:
        warn_once(f"the loaders of this process are not recorded ({typed_error_line(error)})")


_said: set[str] = set()


def _say_once(line: str) -> None:
    if line not in _said and sys.stderr is not None:
        _said.add(line)
        sys.stderr.write(f"headrace: {line}\n")


class LoaderModuleFinder:
    """Finds `LOADER_MODULES` like the other finders, with a `WatchedLoader`."""

    def __init__(self) -> None:
        self._asking: set[int] = set()

    def find_spec(self, name: str, path: "Any" = None, target: "Any" = None) -> "Any":
        # Another tool's finder may ask all finders in turn, this one included.
        thread = get_ident()
        if name not in LOADER_MODULES or thread in self._asking:
            return library_spec(name) if path is None else None
        self._asking.add(thread)
        try:
            spec = self._found_by_others(name, path, target)
        finally:
            self._asking.discard(thread)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            adapter, beside = LOADER_MODULES[name]
            if not beside or _lies_beside(beside, spec.origin):
                spec.loader = WatchedLoader(spec.loader, adapter)
        return spec

    def _found_by_others(self, name: str, path: "Any", target: "Any") -> "Any":
        for finder in list(sys.meta_path):
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find is not None else None
            if spec is not None:
                return spec
        return None


def _lies_beside(name: str, file: "Any") -> bool:
    return bool(file) and os.path.exists(os.path.join(os.path.dirname(file), name))  # noqa: PTH110, PTH118, PTH120


class WatchedLoader:
    """Imitates the loader that it wraps; from the module's execution on, the module has that loader.

    The modules of an ``adapter``'s library are recorded once they are executed.
    """

    # No __dict__ of its own: loaders compare themselves by it.
    __slots__ = ("_adapter", "_loader")

    def __init__(self, loader: "Any", adapter: str) -> None:
        self._loader = loader
        self._adapter = adapter

    @property  # type: ignore[misc]
    def __class__(self) -> "Any":
        return type(self._loader)

    def __getattr__(self, name: str) -> "Any":
        return getattr(self._loader, name)

    def __reduce_ex__(self, protocol: "Any") -> "Any":
        return self._loader.__reduce_ex__(protocol)

    def __eq__(self, other: object) -> bool:
        return bool(self._loader == other)

    def __hash__(self) -> int:
        return hash(self._loader)

    def __repr__(self) -> str:
        return repr(self._loader)

    def create_module(self, spec: "Any") -> "Any":
        create = getattr(self._loader, "create_module", None)
        return None if create is None else create(spec)

    def exec_module(self, module: "Any") -> None:
        # Before it runs: the module sees its own specification as in a bare run.
        module.__loader__ = self._loader
        module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        record_loaders(self._adapter)


# The interpreter removes its import system from the traceback of a module that fails; this is part of it.
WatchedLoader.exec_module.__code__ = WatchedLoader.exec_module.__code__.replace(
    co_filename="<frozen importlib._bootstrap_external>"
)
