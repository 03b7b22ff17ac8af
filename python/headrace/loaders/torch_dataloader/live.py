"""Workers and their window, set between two loops over a DataLoader (`headrace.autopilot`).

A loop that was moved from the program's process into workers is guarded: if they fail or hang, it goes on in
the process, from the batch that it was at.
"""

from __future__ import annotations

import functools
import os
import random
import resource
import sys
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from headrace import _core
from headrace.common.plain import typed_error_line
from headrace.common.users_files import is_the_users
from headrace.loaders.torch_dataloader import draws, loaders
from headrace.loaders.torch_dataloader.held_state import HeldState
from headrace.loaders.torch_dataloader.settings import settings_of
from headrace.record import live_parameters
from headrace.record.live_parameters import Settable
from headrace.record.loop_phases import length_of

#: Attribute of a loader whose workers were set: as many as the program gave it.
_FIRST = "_headrace_first_workers"
#: Of loaders without workers: what the dataset and collate_fn held when the loop began.
_held: weakref.WeakKeyDictionary[Any, HeldState] = weakref.WeakKeyDictionary()
#: torch's default.
_WINDOW = 2
#: Workers that give nothing for so many seconds, in the guarded loop, hang.
_HANGS_S = 60.0
#: Once in so many batches of a guarded loop it is checked whether files and shared memory suffice.
_CHECKED = 16
_KEPT = "batches that the program keeps use up open files or shared memory"
#: torch warns of more workers than cores: an error for programs that make their warnings errors.
_CHECK = "check_worker_number_rationality"


def patch(classes: list[type]) -> None:
    """Loops over these DataLoaders are asked for what is to be set. Idempotent."""
    for owner in classes:
        iterate = owner.__dict__.get("__iter__")
        if iterate is not None and not hasattr(iterate, "_headrace_asks"):
            owner.__iter__ = _asking(iterate)  # type: ignore[attr-defined]


def _asking(iterate: Callable[[Any], Any]) -> Callable[[Any], Any]:
    @functools.wraps(iterate)
    def __iter__(self: Any) -> Any:  # noqa: N807
        record = loaders.record_of(self)
        if record is None or not live_parameters.is_piloted(record.handle):
            return iterate(self)
        live_parameters.begins(record.handle, partial(_settable, self, record))
        if self.__dict__.get(_FIRST) == 0 and self.num_workers > 0:
            return _Guarded(self, iterate, record.handle)
        kept = getattr(self, "_iterator", None)
        as_set = (self.num_workers, self.prefetch_factor)
        if kept is None or (kept._num_workers, kept._prefetch_factor) == as_set:
            return iterate(self)
        return _with_other_workers(self, kept, iterate)

    __iter__._headrace_asks = True  # type: ignore[attr-defined]
    return __iter__


def _with_other_workers(loader: Any, kept: Any, iterate: Callable[[Any], Any]) -> Any:
    """Workers that stay between epochs end; others begin. The program's random numbers stay as they are.

    A new iterator draws a seed for its workers, which one that stays does not.
    """
    kept._shutdown_workers()
    loader._iterator = None
    return _without_seed(loader, iterate)


def _without_seed(loader: Any, iterate: Callable[[Any], Any]) -> Any:
    """An iterator whose seed for its workers is not drawn from the program's random numbers."""
    own = loader.generator
    loader.generator = sys.modules["torch"].Generator()
    try:
        return iterate(loader)
    finally:
        loader.generator = own


def _settable(loader: Any, record: loaders.Record) -> Settable:
    own = loader.__dict__
    if in_process := loader.num_workers == 0 and _FIRST not in own:
        _held[loader] = HeldState(loader.dataset, loader.collate_fn)
    elif loader.persistent_workers and loader not in _held:
        _held[loader] = HeldState(loader.dataset, None)
    return Settable(
        record.handle,
        {"num_workers": partial(_set_workers, own), "prefetch_factor": partial(_set_window, own)},
        partial(_refused, weakref.ref(loader), _held.get(loader), in_process),
        record,
        length_of(loader),
        record.renew,
    )


def _set_workers(own: dict[str, Any], workers: int) -> None:
    own.setdefault(_FIRST, own["num_workers"])
    own["num_workers"] = workers
    if workers > 0 and own.get("prefetch_factor") is None:
        own["prefetch_factor"] = _WINDOW
    if workers == 0:
        own["prefetch_factor"] = None
    own[_CHECK] = _nothing


def _set_window(own: dict[str, Any], batches: int | None) -> None:
    own["prefetch_factor"] = batches if own["num_workers"] > 0 else None


def _nothing() -> None:
    """In the place of torch's warning."""


def _refused(
    of: weakref.ref[Any],
    held: HeldState | None,
    in_process: bool,
    parameter: str,
    facts: dict[str, str],
    allowed: frozenset[str],
) -> str:
    loader = of()  # gone where it is made anew: the next one is asked before anything is set
    why = "" if loader is None else _is_refused_by(loader, held, parameter, allowed)
    if why or parameter != "num_workers":
        return why
    if draws.LOOKED not in facts:
        return "it is not known whether its workers draw random numbers"
    if draws.RANDOM in facts and "random" not in allowed:
        return f"its dataset draws random numbers, which depend on the workers ({facts[draws.RANDOM]})"
    if draws.WORKER in facts and "random" not in allowed:
        return f"its dataset asks for the worker's {facts[draws.WORKER]}"
    if draws.STATE in facts:
        return facts[draws.STATE]
    if not in_process:
        return ""
    why = "" if loader is None else _keeps_it_here(loader, allowed)
    return why or ("what its dataset held is not known" if held is None else held.changed())


def _is_refused_by(loader: Any, held: HeldState | None, parameter: str, allowed: frozenset[str]) -> str:
    """By what it is, whatever was recorded of it."""
    sampler = _own_sampler(loader)
    if sampler and "sampler" not in allowed:
        return f"{sampler} is a sampler of the program's own, which would draw further ahead"
    if "sampler" not in allowed and any(map(_draws_ahead, (loader.sampler, loader.batch_sampler))):
        return "its sampler would draw further ahead from the program's generator"
    if loader.persistent_workers and held is not None and (why := held.changed()):
        return f"{why}, nor workers that stay"
    if parameter != "num_workers":
        return ""
    settings = settings_of(loader)
    if settings.stream:
        return "its dataset is a stream, of which each worker has a part"
    if settings.keras_workers is not None or settings.foreign:
        return "its workers are of another library"
    if type(loader).__module__.startswith("torchdata.stateful"):
        return "its state_dict keeps the states of so many workers"
    return ""


def _own_sampler(loader: Any) -> str:
    """The class of a sampler that the user has written; "": torch's, or a library's."""
    for name in ("sampler", "batch_sampler"):
        kind = type(getattr(loader, name, None))
        file = getattr(sys.modules.get(kind.__module__), "__file__", None) or ""
        if kind.__module__ == "__main__" or (file and is_the_users(file)):
            return kind.__name__
    return ""


def _draws_ahead(sampler: Any) -> bool:
    """Torch's sampler that draws again during a loop, from a generator that the program has, too."""
    inner = getattr(sampler, "sampler", sampler)
    is_torchs = type(inner).__module__.startswith("torch.utils.data")
    return is_torchs and type(inner).__name__ == "RandomSampler" and inner.generator is not None


def _is_users_function(function: Any) -> bool:
    """Not None, and not a library's, which seeds random numbers."""
    while isinstance(function, partial):
        function = function.func
    code = getattr(function, "__code__", None)
    return function is not None and (code is None or is_the_users(code.co_filename))


def _keeps_it_here(loader: Any, allowed: frozenset[str]) -> str:
    """Why a loader without workers must not get some."""
    import multiprocessing  # torch has imported it

    context = loader.multiprocessing_context or multiprocessing
    if (context.get_start_method(allow_none=True) or "fork") != "fork" or sys.version_info >= (3, 14):
        return "new workers would not be forked, and import the program again"
    if _is_users_function(loader.worker_init_fn) and "random" not in allowed:
        return "its worker_init_fn, which runs in workers only, may change the dataset"
    return ""


class _Guarded(Iterator[Any]):
    """A loop in workers of a loader that had none; everything but ``next`` is torch's iterator's.

    Workers begin with the first ``next``, as the sampler of a loader without workers draws its seed then.
    """

    def __init__(self, loader: Any, iterate: Callable[[Any], Any], handle: _core.LoaderHandle) -> None:
        self._loader = loader
        self._iterate = iterate
        self._handle = handle
        self._given = 0
        self._guards = True
        torch = sys.modules["torch"]
        torch.empty((), dtype=torch.int64).random_(generator=loader.generator)  # as torch's iterators do
        self._iterator: Any = None

    def __iter__(self) -> Iterator[Any]:
        return self

    def __len__(self) -> int:
        return len(self._loader._index_sampler)

    def __next__(self) -> Any:
        try:
            if self._iterator is None:
                self._begin()
            if self._guards and self._given % _CHECKED == _CHECKED - 1 and _runs_out():
                raise OSError(_KEPT)
            batch = next(self._iterator)
        except StopIteration:
            raise
        except Exception as error:
            if not self._guards:
                raise
            self._go_on_here()
            batch = next(self._iterator)  # what it raises here is not due to the workers
            live_parameters.failed(self._handle, typed_error_line(error))
        self._given += 1
        return batch

    def _begin(self) -> None:
        self._states = _random_states(self._loader)
        self._iterator = _without_seed(self._loader, self._iterate)
        self._iterator.__dict__["_timeout"] = self._iterator.__dict__["_timeout"] or _HANGS_S

    def _go_on_here(self) -> None:
        """In the program's process, with the same draws, from the batch that is due."""
        self._guards = False
        _set_workers(self._loader.__dict__, 0)
        now = _random_states(self._loader)
        _set_random_states(self._states)
        self._iterator = _without_seed(self._loader, self._iterate)
        for _ in range(self._given):
            self._iterator._next_index()
        if self._given:
            _set_random_states(now)

    def __getattr__(self, name: str) -> Any:
        if name == "_iterator":
            raise AttributeError(name)
        if self._iterator is None:
            self._begin()
        return getattr(self._iterator, name)


def _runs_out() -> bool:
    """A batch of a worker that the program keeps stays an open file in shared memory."""
    try:
        room = os.statvfs("/dev/shm")
        descriptors = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 (names alone are faster)
    except OSError:
        return False
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return 2 * descriptors > limit > 0 or 4 * room.f_bavail < room.f_blocks


def _random_states(loader: Any) -> list[tuple[Callable[[Any], Any], Any]]:
    """Of everything that an iterator may draw from when it begins: what sets it back, and the state."""
    torch, numpy = sys.modules["torch"], sys.modules.get("numpy")
    found: list[tuple[Callable[[Any], Any], Any]] = [
        (random.setstate, random.getstate()),
        (torch.set_rng_state, torch.get_rng_state()),
    ]
    if numpy is not None:
        found.append((numpy.random.set_state, numpy.random.get_state()))
    found += [(each.set_state, each.get_state()) for each in loaders.generators_of(loader)]
    return found


def _set_random_states(states: list[tuple[Callable[[Any], Any], Any]]) -> None:
    for put, state in states:
        put(state)
