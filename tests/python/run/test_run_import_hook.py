"""What the processes below ``headrace run`` carry: a hook that leaves imports as they are, and then records.

A package ``torch`` of a few lines stands in for the real one: the hook knows modules by their names.
"""

import json
import os
import signal
import subprocess
import sys
import textwrap
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headrace.run.environment import INJECT, recording_environment

DATALOADER = """
    seen = type(__loader__).__name__, type(__spec__.loader).__name__, __spec__.loader is __loader__
    class DataLoader:
        pass
"""

#: At the start of each program: instead of the adapter, a note for each call.
NOTES = """
import importlib, json, pickle, sys
import headrace.loaders.torch_dataloader as adapter
calls = []
adapter.record_every_loader = lambda: calls.append("torch.utils.data.dataloader" in sys.modules)
"""


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """The folder of the stand-in."""
    data = tmp_path / "library/torch/utils/data"
    data.mkdir(parents=True)
    (tmp_path / "library/torch/__init__.py").write_text("import torch.utils.data\n")
    (tmp_path / "library/torch/utils/__init__.py").write_text("")
    (data / "__init__.py").write_text("from torch.utils.data.dataloader import DataLoader\n")
    (data / "dataloader.py").write_text(textwrap.dedent(DATALOADER))
    return tmp_path / "library"


@pytest.fixture
def program(tmp_path: Path) -> Callable[..., Any]:
    """``program(source, library)``: what it prints, as JSON, in an environment of ``headrace run``."""

    def execute(source: str, *path: object, notes: bool = True, **environment: str) -> Any:
        file = tmp_path / "program.py"
        file.write_text((NOTES if notes else "import json, sys\n") + textwrap.dedent(source))
        users = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path))}
        result = subprocess.run(
            [sys.executable, str(file)],
            env={**recording_environment(users, str(tmp_path / "run")), **environment},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (result.returncode, result.stderr) == (0, "")
        return json.loads(result.stdout)

    return execute


def test_the_adapter_is_called_once_the_loaders_are_there(program: Callable[..., Any], library: Path) -> None:
    calls = program("assert not calls; import torch; print(json.dumps(calls))", library)
    assert calls
    assert all(calls)


def test_the_module_is_as_bare(program: Callable[..., Any], library: Path) -> None:
    seen = program(
        """
        import torch.utils.data.dataloader as module
        loader = module.__spec__.loader
        print(json.dumps([module.seen, type(loader).__name__, loader is module.__loader__,
                          "WatchedLoader" in repr(loader), len(pickle.dumps(module.__spec__)) > 0]))
        """,
        library,
    )
    assert seen == [["SourceFileLoader", "SourceFileLoader", True], "SourceFileLoader", True, False, True]


def test_loaders_that_come_later(program: Callable[..., Any], library: Path) -> None:
    package = library / "torchdata/stateful_dataloader"
    package.mkdir(parents=True)
    (library / "torchdata/__init__.py").write_text("")
    (package / "__init__.py").write_text("from .stateful_dataloader import StatefulDataLoader\n")
    (package / "stateful_dataloader.py").write_text("class StatefulDataLoader: pass\n")
    with_name, calls = program(
        """
        import torch
        before = len(calls)
        adapter.record_every_loader = lambda: calls.append(
            hasattr(sys.modules["torchdata.stateful_dataloader"], "StatefulDataLoader"))
        import torchdata.stateful_dataloader
        print(json.dumps([calls[-1], calls[before:]]))
        """,
        library,
    )
    assert with_name
    assert calls


def test_reload(program: Callable[..., Any], library: Path) -> None:
    before, after, loader = program(
        """
        import torch.utils.data.dataloader as module
        before = len(calls)
        importlib.reload(module)
        print(json.dumps([before, len(calls), type(module.__loader__).__name__]))
        """,
        library,
    )
    assert after == before + 1
    assert loader == "SourceFileLoader"


def test_a_query_without_import(program: Callable[..., Any], library: Path) -> None:
    seen = program(
        """
        import importlib.machinery, importlib.util
        found = [importlib.util.find_spec(name) for name in ("torch", "numpy_that_is_not_there")]
        print(json.dumps([found[0].origin, found[1], "torch" in sys.modules, calls]))
        """,
        library,
    )
    assert seen == [str(library / "torch/__init__.py"), None, False, []]


def test_a_specification_before_its_import(program: Callable[..., Any], library: Path) -> None:
    """A tool that asks the finders itself gets what passes for the real one, also in another process."""
    seen = program(
        """
        import importlib.machinery, importlib.util
        name = "torch.utils.data.dataloader"
        folders = [sys.path[1] + "/torch/utils/data"]
        spec = next(filter(None, (finder.find_spec(name, folders) for finder in sys.meta_path)))
        copy = pickle.loads(pickle.dumps(spec))
        print(json.dumps([
            isinstance(spec.loader, importlib.machinery.SourceFileLoader),
            type(copy.loader).__name__, copy.loader == spec.loader, copy == spec,
            "class DataLoader" in spec.loader.get_source(name),
            hash(copy.loader) == hash(spec.loader), "SourceFileLoader" in repr(spec.loader)]))
        """,
        library,
    )
    assert seen == [True, "SourceFileLoader", True, True, True, True, True]


def test_from_a_zip_file(program: Callable[..., Any], library: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "library.zip", "w") as archive:
        for file in library.rglob("*.py"):
            archive.write(file, file.relative_to(library))
    calls, loader = program(
        """
        import torch.utils.data.dataloader as module
        print(json.dumps([calls, type(module.__loader__).__name__]))
        """,
        tmp_path / "library.zip",
    )
    assert calls
    assert loader == "zipimporter"


@pytest.mark.parametrize("asks_all", [True, False])
def test_beside_another_tools_finder(program: Callable[..., Any], library: Path, asks_all: bool) -> None:
    """One that asks all finders in turn, as wrapping tools do, and an old one without find_spec."""
    calls, executed = program(
        f"""
        import importlib.machinery, importlib.util

        executed = []

        class Loader:
            def __init__(self, loader): self.loader = loader
            def create_module(self, spec): return self.loader.create_module(spec)
            def exec_module(self, module):
                self.loader.exec_module(module)
                executed.append(module.__name__)

        class Finder:
            asking = False
            def find_spec(self, name, path, target=None):
                if self.asking or not name.startswith("torch.utils.data."): return None
                self.asking = True
                try:
                    if {asks_all}:
                        spec = importlib.util.find_spec(name)
                    else:
                        spec = importlib.machinery.PathFinder.find_spec(name, path)
                finally:
                    self.asking = False
                spec.loader = Loader(spec.loader)
                return spec

        class Old:
            def find_module(self, name, path): return None

        sys.meta_path[:0] = [Finder(), Old()]
        import torch
        print(json.dumps([calls, executed]))
        """,
        library,
    )
    assert calls
    assert executed == ["torch.utils.data.dataloader"]


def test_import_from_many_threads(program: Callable[..., Any], library: Path) -> None:
    calls = program(
        """
        import threading
        go = threading.Barrier(8)
        def load():
            go.wait()
            import torch.utils.data.dataloader
        threads = [threading.Thread(target=load) for _ in range(8)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        print(json.dumps(calls))
        """,
        library,
    )
    assert calls
    assert all(calls)


def test_a_library_that_fails_to_import(program: Callable[..., Any], library: Path) -> None:
    (library / "torch/utils/data/dataloader.py").write_text("raise OSError('libcudart.so.12')\n")
    said, left = program(
        """
        try:
            import torch
        except OSError as error:
            print(json.dumps([str(error), [name for name in sys.modules if name.startswith("torch")]]))
        """,
        library,
    )
    assert (said, left) == ("libcudart.so.12", ["torch.utils"])  # as bare


def recorded(program: Path, library: Path) -> "subprocess.CompletedProcess[str]":
    """The program's end, in an environment of ``headrace run``."""
    users = {**os.environ, "PYTHONPATH": str(library)}
    environment = recording_environment(users, str(program.parent))
    line = [sys.executable, str(program)]
    return subprocess.run(line, env=environment, capture_output=True, text=True, check=False)


def test_an_adapter_that_fails_is_one_warning(library: Path, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import headrace.loaders.torch_dataloader as adapter\n"
        "def fail(): raise AttributeError('no _get_iterator')\n"
        "adapter.record_every_loader = fail\n"
        "import torch\nprint(torch.utils.data.DataLoader.__name__)\n"
    )
    result = recorded(program, library)
    assert (result.returncode, result.stdout) == (0, "DataLoader\n")
    assert result.stderr == (
        "the loaders of this process are not recorded (AttributeError: no _get_iterator)\n"
    )


def test_an_environment_without_headrace(program: Callable[..., Any], library: Path) -> None:
    (library / "headrace").mkdir()
    (library / "headrace/__init__.py").write_text("raise ImportError('for another version of Python')")
    # What makes an editable install found before the path.
    source = """
        sys.meta_path[:] = [finder for finder in sys.meta_path if "Scikit" not in type(finder).__name__]
        import torch
        print(json.dumps(torch.utils.data.DataLoader.__name__))
    """
    assert program(source, library, notes=False) == "DataLoader"


def test_nothing_is_imported_before_the_library_is(program: Callable[..., Any], library: Path) -> None:
    source = "print(json.dumps(sorted(sys.modules)))"
    bare = set(program(source, library, notes=False, HEADRACE="0"))
    added = set(program(source, library, notes=False)) - bare
    assert added == {"_headrace_import_hook", "_headrace_own_imports"}


@pytest.mark.parametrize(("number", "kind"), [("SIGINT", "KeyboardInterrupt"), ("SIGUSR1", "TimeoutError")])
def test_a_signal_while_threading_is_imported(program: Callable[..., Any], number: str, kind: str) -> None:
    """The exception that its handler raises arrives in the program, as any other time."""
    seen = program(
        f"""
        import builtins, os, signal, _headrace_import_hook as hook

        def expire(*_): raise TimeoutError("too", "late")
        signal.signal(signal.SIGUSR1, expire)

        bare = builtins.__import__
        def disturbed(name, *arguments, **options):
            if name == "threading":
                os.kill(os.getpid(), signal.{number})
                for _ in range(1000): pass
            return bare(name, *arguments, **options)

        builtins.__import__ = disturbed
        try:
            hook._import_threading_in_main_thread()
            for _ in range(1000): pass
        except BaseException as error:
            print(json.dumps([type(error).__name__, error.args]))
        """,
        notes=False,
    )
    assert seen == [kind, ["too", "late"] if kind == "TimeoutError" else []]


def test_an_interrupt_ends_the_process_by_its_signal(library: Path, tmp_path: Path) -> None:
    """The interpreter forgets the interrupt if something executes a text at its end, as imports do."""
    program = tmp_path / "program.py"
    program.write_text(
        "import atexit\nimport headrace.loaders.torch_dataloader as adapter\n"
        "adapter.record_every_loader = lambda: atexit.register(lambda: exec('pass'))\n"
        "import torch\nraise KeyboardInterrupt\n"
    )
    result = recorded(program, library)
    assert result.returncode == -signal.SIGINT
    assert "program.py" in result.stderr


def test_an_interrupt_in_a_console_is_no_end_of_the_program(library: Path, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import code\nimport headrace.loaders.torch_dataloader as adapter\n"
        "adapter.record_every_loader = lambda: None\nimport torch\n"
        "code.InteractiveConsole().push('raise KeyboardInterrupt')\nprint('goes on')\n"
    )
    result = recorded(program, library)
    assert (result.returncode, result.stdout) == (0, "goes on\n")


def test_switched_off_for_one_process(program: Callable[..., Any], library: Path) -> None:
    assert program("import torch; print(json.dumps(calls))", library, HEADRACE="0") == []


def test_a_process_started_by_the_script(program: Callable[..., Any], library: Path) -> None:
    calls = program(
        """
        import subprocess
        print(subprocess.run([sys.executable, "-c", '''
        import json, headrace.loaders.torch_dataloader as adapter
        calls = []
        adapter.record_every_loader = lambda: calls.append(True)
        import torch
        print(json.dumps(calls))
        '''.replace("\\n        ", "\\n")], capture_output=True, text=True, check=True).stdout)
        """,
        library,
    )
    assert calls


class TestEnvironment:
    def test_nothing_of_the_users_is_lost(self) -> None:
        made = recording_environment({"PYTHONPATH": "/a::/b", "HOME": "/root"}, "/run")
        assert made == {
            "PYTHONPATH": f"{INJECT}:/a::/b",
            "HOME": "/root",
            "HEADRACE_DIR": "/run",
            "HEADRACE_RECORD": "loaders",
        }

    @pytest.mark.parametrize("users", [{}, {"PYTHONPATH": ""}])
    def test_without_a_path_no_empty_entry(self, users: dict[str, str]) -> None:
        assert recording_environment(users, "/run")["PYTHONPATH"] == INJECT

    def test_a_run_in_a_run(self) -> None:
        once = recording_environment({"PYTHONPATH": "/a"}, "/outer")
        assert recording_environment(once, "/inner")["PYTHONPATH"] == f"{INJECT}:/a"

    def test_the_folder_holds_what_is_injected(self) -> None:
        assert {file.name for file in Path(INJECT).glob("*.py")} == {
            "sitecustomize.py",
            "_headrace_import_hook.py",
            "_headrace_own_imports.py",
        }
