"""Files of the user's that are called like a library's module, under ``headrace run``: as in a bare run."""

import importlib.util
import re
import resource
import sys
from collections.abc import Callable
from typing import Any

import pytest

from headrace.report import Report

#: Prints what is executed; whoever imports it has a module without the library's functions.
MARKED = "print('executed', __name__)\nmine = True\n"

LOOP = """
class Data:
    def read(self, row):
        time.sleep(0.002)
        return row
    def next_batch(self, size):
        return [self.read(row) for row in range(size)]
def train_step(batch):
    time.sleep(0.003)
    return sum(batch)
def main():
    data, began = Data(), time.monotonic()
    while time.monotonic() - began < 4:
        batch = data.next_batch(4)
        loss = train_step(batch)
main()
"""


def shadow_library(scripts: Any, but: str = "") -> None:
    """A file beside the script for every module of the standard library that ``python -m`` has not loaded."""
    program = (
        f"import sys, json, runpy, importlib.util, __future__\n{but}\nprint(json.dumps(sorted(sys.modules)))"
    )
    loaded = set(scripts.bare("-c", program).json) | set(sys.builtin_module_names)
    for name in sys.stdlib_module_names - loaded:
        if importlib.util.find_spec(name) is not None:  # others are of other systems
            scripts.write(MARKED, f"{name}.py")


def loaders_of(scripts: Any) -> list[str]:
    [run] = (scripts.folder / "headrace-runs").glob("[!.]*")
    return Report.load(run).loaders


def test_what_the_script_never_imports_is_not_executed(scripts: Any) -> None:
    """What needs a module whose name the program has is not recorded."""
    shadow_library(scripts)
    outcome = scripts.run(scripts.write("import time\n" + LOOP))
    assert (outcome.status, outcome.out) == (0, b"")


def test_the_script_gets_its_own_files(scripts: Any, compare: Callable[..., Any]) -> None:
    shadow_library(scripts)
    source = (
        "import time, queue\nmodules = [queue]\n"
        + LOOP
        + "import heapq, logging\nprint([each.mine for each in (queue, heapq, logging)])\n"
    )
    outcome = compare(scripts.write(source))
    assert outcome.out.split(b"\n")[-2] == b"[True, True, True]"


def test_the_library_gets_them_as_in_a_bare_run(scripts: Any, compare: Callable[..., Any]) -> None:
    scripts.write("class Queue: pass\nclass SimpleQueue: pass\nclass Empty(Exception): pass\n", "queue.py")
    source = (
        "import time\n"
        + LOOP
        + "import concurrent.futures.thread as t\nprint(hasattr(t.queue.Queue, 'put'))\n"
    )
    assert compare(scripts.write(source)).out == b"False\n"


def test_a_folder_that_joins_the_path_later(scripts: Any) -> None:
    """Its file is executed where the script imports it, which may leave nothing recorded."""
    scripts.write(MARKED, "later/heapq.py")
    source = "import sys, time\nsys.path.insert(0, 'later')\n" + LOOP + "print('loop')\nimport heapq\n"
    outcome = scripts.run(scripts.write(source))
    assert (outcome.status, outcome.out) == (0, b"loop\nexecuted heapq\n")


def test_a_dataloader_beside_such_files(scripts: Any, compare: Callable[..., Any]) -> None:
    pytest.importorskip("torch")
    for name in ("profile", "sched", "this", "trace", "wave"):
        scripts.write(MARKED, f"{name}.py")
    source = """
        import profile
        from torch.utils.data import DataLoader
        for _ in DataLoader(range(200), batch_size=10, num_workers=1): pass
    """
    compare(scripts.write(source))
    assert len(loaders_of(scripts)) == 1


@pytest.mark.parametrize(
    "name", ["datasets", "webdataset", "grain", "tensorflow", "mindspore/dataset", "streaming"]
)
@pytest.mark.parametrize("file", ["{}.py", "{}/__init__.py"])
def test_own_packages_with_a_librarys_name(
    scripts: Any, compare: Callable[..., Any], name: str, file: str
) -> None:
    if "/" in name:  # else an installed library of that name is found first
        scripts.write("", f"{name.partition('/')[0]}/__init__.py")
    scripts.write("X = 1\n", file.format(name))
    module = name.replace("/", ".")
    source = f"import {module} as own\nprint(own.X, type(own.__spec__.loader).__name__)\n"
    outcome = compare(scripts.write(source))
    assert outcome.out == b"1 SourceFileLoader\n"
    assert "not recorded (" not in outcome.said


ENDS = {
    "an own module": ("import broken", "raise OSError('mine')"),
    "a library of loaders": ("import webdataset", "raise OSError('theirs')"),
    "a module that it imports": ("import webdataset", "import nothing_of_this_name"),
    "a wrong argument": ("from torch.utils.data import DataLoader\nDataLoader([1], wrong=1)", ""),
    "a dataset": (
        "from torch.utils.data import DataLoader\nclass D(list):\n    def __getitem__(self, i):\n"
        "        return 1 / 0\nfor _ in DataLoader(D([1])): pass",
        "",
    ),
    "a function's name": (
        "from torch.utils.data import DataLoader\nraise ValueError(DataLoader.__init__)",
        "",
    ),
}


@pytest.mark.parametrize("what", ENDS)
def test_a_traceback_is_that_of_the_bare_program(scripts: Any, what: str) -> None:
    source, module = ENDS[what]
    if "torch" in source:
        pytest.importorskip("torch")
    scripts.write(module, "broken.py")
    scripts.write(module, "webdataset/__init__.py")
    scripts.write("", "webdataset/pipeline.py")  # as the library has it
    script = scripts.write(source)
    addresses = re.compile(r"0x[0-9a-f]+")
    bare, recorded = scripts.bare(script), scripts.run(script)
    assert addresses.sub("", recorded.script_err) == addresses.sub("", bare.err)
    assert recorded.status == bare.status == 1


def test_a_limit_of_file_sizes_is_said(scripts: Any) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))

    script = scripts.write("import headrace as hr\nfor _ in hr.wrap([1] * 9): pass")
    assert "ulimit -f" in scripts.run(script, preexec_fn=limit).said


def test_the_command_as_a_module_does_not_execute_files_of_the_current_folder(scripts: Any) -> None:
    shadow_library(scripts)
    source = "import time\n" + LOOP.replace("< 4", "< 0.1")
    outcome = scripts.run(scripts.write(source))
    assert "executed" not in outcome.out.decode() + outcome.err
    assert "nothing was recorded" in outcome.said
