"""Parameters that are set while it trains: kept where they help, else put back; and no batch is another."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.errors import UsageError

pytest.importorskip("torch")

PROGRAM = """
import hashlib, os, random, sys, time
import torch
from torch.utils.data import DataLoader, Dataset

class Images(Dataset):
    def __init__(self):
        self.rng, self.file, self.reads = None, None, 0
    def __len__(self):
        return 480
    def __getitem__(self, index):
        time.sleep(0.002)
        return self.item(index)
    def item(self, index):
        return torch.full((64,), float(index))

{classes}

def main():
    torch.manual_seed(7); random.seed(7)
    seen, dropout = hashlib.sha256(), torch.nn.Dropout()
    {before}
    for epoch in range({epochs}):
        {each}
        for batch in loader:
            seen.update(batch.numpy().tobytes())
            seen.update(dropout(torch.ones(8)).numpy().tobytes())  # the program's random numbers
            time.sleep(0.004)
        print("epoch", epoch, loader.num_workers, loader.prefetch_factor)
    print("seen", seen.hexdigest())

if __name__ == "__main__":
    main()
"""
MAKE = "loader = DataLoader(Images(), batch_size=8, shuffle=True, num_workers=0)"


def program(
    before: str = MAKE, classes: str = "", epochs: int = 4, each: str = "pass", main: str = PROGRAM
) -> str:
    text = main.replace("{classes}", textwrap.dedent(classes)).replace("{epochs}", str(epochs))
    return text.replace("{before}", before).replace("{each}", each)


class Run:
    """One program, alone and under `headrace run --autopilot`."""

    def __init__(self, folder: Path, text: str, *options: str, alone: bool = True) -> None:
        script = folder / "program.py"
        script.write_text(text)
        self.path = folder / "run"
        command = ["headrace", "run", "--autopilot", *options, "--out", str(self.path), str(script)]
        done = self._run([sys.executable, "-m", *command])
        assert done.returncode == 0, done.stdout + done.stderr
        self.told = [line for line in done.stderr.splitlines() if "autopilot: " in line]
        self.errors = done.stderr
        self.workers = self._workers(done.stdout)
        self.seen = self._seen(done.stdout)
        if alone:
            assert self._seen(self._run([sys.executable, str(script)]).stdout) == self.seen

    def _run(self, command: list[str]) -> Any:
        # Warnings are errors: a program may have that.
        environment = {**os.environ, "PYTHONWARNINGS": "error::UserWarning"}
        return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)

    def _workers(self, text: str) -> list[int]:
        return [int(line.split()[2]) for line in text.splitlines() if line.startswith("epoch ")]

    def _seen(self, text: str) -> str:
        return next(line for line in text.splitlines() if line.startswith("seen "))

    @property
    def report(self) -> hr.Report:
        return hr.Report.load(self.path)


def test_workers_are_set_and_every_batch_is_the_same(tmp_path: Path) -> None:
    run = Run(tmp_path, program(epochs=8))  # a trial takes one or two, and begins with the second or third
    assert run.workers[0] == 0
    assert run.workers[-1] > 0
    changes = run.report.profile.autopilot
    assert [change.parameter for change in changes][:1] == ["num_workers"]
    assert changes[0].outcome == "kept"
    assert changes[0].from_value == "0"
    assert changes[0].before_step_s > changes[0].after_step_s
    assert changes[0].high < 1
    assert any("num_workers 0 -> " in line and "kept" in line for line in run.told)
    # The report that comes first is of the parameters at the end; the others are there, too.
    assert int(run.report.profile.settings["num_workers"]) == run.workers[-1]
    assert len(run.report.loaders) >= 2
    assert "SET WHILE IT TRAINED" in run.report.to_text()
    assert "Set while it trained" in run.report.to_html()


def test_persistent_workers_end_and_begin_anew(tmp_path: Path) -> None:
    make = MAKE.replace("num_workers=0", "num_workers=1, persistent_workers=True")
    run = Run(tmp_path, program(make, epochs=8))
    assert run.workers[-1] > 1


def test_a_loader_that_is_made_for_each_epoch(tmp_path: Path) -> None:
    run = Run(tmp_path, program("data = Images()", each=MAKE.replace("Images()", "data"), epochs=8))
    assert run.workers[0] == 0
    assert run.workers[-1] > 0
    assert len({change.loader.partition("#")[0] for change in run.report.profile.autopilot}) == 1


LEFT_ALONE = {
    "torch": ("def item(self, i):\n    return torch.rand(4) + i", "draws random numbers"),
    "python": ("def item(self, i):\n    return torch.full((4,), random.random())", "draws random numbers"),
    "own": (
        "def item(self, i):\n    self.rng = self.rng or random.Random(3)\n"
        "    return torch.full((4,), self.rng.random())",
        "draws random numbers",
    ),
    "file": (
        "def item(self, i):\n    self.file = self.file or open(__file__, 'rb', buffering=0)\n"
        "    self.file.seek(i % 99)\n    return torch.full((4,), float(self.file.read(1)[0]))",
        "is an open file",
    ),
    "position": (
        "FILE = os.open(__file__, os.O_RDONLY)\n"
        "def item(self, i):\n    os.lseek(self.FILE, i % 99, 0)\n"
        "    return torch.full((4,), float(os.read(self.FILE, 1)[0]))",
        "whose position is shared",
    ),
    "in a worker": (
        "def item(self, i):\n    self.reads += 1\n    return torch.full((4,), float(self.reads))",
        "its own copy of dataset.reads",
    ),
    "in the process": (
        "def item(self, i):\n    self.reads += 1\n    return torch.full((4,), float(self.reads))",
        "dataset.reads changes",
    ),
}


#: Workers of a loader that is left alone for this.
ONLY_WITH = {"file": 0, "position": 0, "in a worker": 1, "in the process": 0}


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("what", LEFT_ALONE)
def test_what_depends_on_the_workers_keeps_their_number(tmp_path: Path, what: str, workers: int) -> None:
    method, why = LEFT_ALONE[what]
    if what in ONLY_WITH and workers != ONLY_WITH[what]:
        pytest.skip("its workers have their copies already")
    classes = "class Own(Images):\n" + textwrap.indent(method, "    ")
    make = MAKE.replace("Images()", "Own()").replace("num_workers=0", f"num_workers={workers}")
    run = Run(tmp_path, program(make, classes, epochs=2))
    assert set(run.workers) == {workers}
    assert any("num_workers stays as it is" in line and why in line for line in run.told), run.errors


def test_random_numbers_may_be_allowed_to_change(tmp_path: Path) -> None:
    classes = "class Own(Images):\n    def item(self, i):\n        return torch.rand(4) + i"
    make = MAKE.replace("Images()", "Own()")
    run = Run(tmp_path, program(make, classes, epochs=6), "--allow", "random", alone=False)
    assert run.workers[-1] > 0


def test_a_worker_that_is_asked_for_its_number(tmp_path: Path) -> None:
    classes = """
    class Own(Images):
        def item(self, i):
            info = torch.utils.data.get_worker_info()
            return torch.full((4,), float(info.id))
    """
    make = MAKE.replace("Images()", "Own()").replace("num_workers=0", "num_workers=1")
    run = Run(tmp_path, program(make, classes, epochs=2))
    assert set(run.workers) == {1}
    assert any("asks for the worker's id" in line for line in run.told), run.errors


def test_streams_and_own_samplers_are_left_alone(tmp_path: Path) -> None:
    classes = """
    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self):
            info = torch.utils.data.get_worker_info()
            for index in range(info.id if info else 0, 480, info.num_workers if info else 1):
                time.sleep(0.002)
                yield torch.full((4,), float(index))
    """
    make = "loader = DataLoader(Stream(), batch_size=8, num_workers=1)"
    run = Run(tmp_path, program(make, classes, epochs=2))
    assert set(run.workers) == {1}
    assert any("is a stream" in line for line in run.told), run.errors


def test_a_sampler_of_the_programs_own_is_not_asked_further_ahead(tmp_path: Path) -> None:
    classes = """
    class Hard(torch.utils.data.Sampler):
        done = 0
        def __len__(self):
            return 480
        def __iter__(self):
            for index in range(480):
                yield (index + Hard.done) % 480
    """
    make = "loader = DataLoader(Images(), batch_size=8, sampler=Hard())"
    text = program(make, classes, epochs=2).replace("time.sleep(0.004)", "time.sleep(0.004); Hard.done += 1")
    run = Run(tmp_path, text)
    assert set(run.workers) == {0}
    assert any("Hard is a sampler of the program's own" in line for line in run.told), run.errors


FAILS = {
    "raises": "raise RuntimeError('not in a worker')",
    "dies": "os._exit(3)",
}


@pytest.mark.parametrize("fails_at", [0, 200])
@pytest.mark.parametrize("how", FAILS)
def test_workers_that_fail_where_the_process_did_not(tmp_path: Path, how: str, fails_at: int) -> None:
    """The loop goes on in the process, with the same batches."""
    classes = f"""
    MAIN = os.getpid()
    class Own(Images):
        def item(self, index):
            if os.getpid() != MAIN and index >= {fails_at}:
                {FAILS[how]}
            return torch.full((4,), float(index))
    """
    run = Run(tmp_path, program(MAKE.replace("Images()", "Own()"), classes))
    assert run.workers[0] == run.workers[-1] == 0
    assert any("put back: its workers failed" in line for line in run.told), run.errors
    assert run.report.profile.autopilot[0].outcome == "put_back"


def test_what_the_dataset_raises_is_the_programs(tmp_path: Path) -> None:
    """Also in the first epoch with workers."""
    classes = """
    class Own(Images):
        epoch = 0
        def item(self, index):
            if Own.epoch == 1 and index == 300:
                raise LookupError("no such image")
            return torch.full((4,), float(index))
    """
    make = MAKE.replace("Images()", "Own()")
    text = program(make, classes, each="Own.epoch = epoch").replace(
        "        for batch in loader:", "        for batch in caught(loader):"
    )
    text = text.replace(
        "def main():",
        "def caught(loader):\n    try:\n        yield from loader\n    except LookupError as error:\n"
        "        print('seen by the program:', error)\n\ndef main():",
    )
    run = Run(tmp_path, text)
    assert run.workers[0] == 0


def test_what_the_dataset_raises_later_is_the_programs(tmp_path: Path) -> None:
    """An error as the process raises it, not a copy that torch made of a worker's."""
    classes = """
    class Missing(Exception):
        def __init__(self, index, text):
            super().__init__(text)
            self.index = index
    class Own(Images):
        epoch = 0
        def item(self, index):
            if Own.epoch == 3 and index == 300:
                raise Missing(index, "no such image")
            return torch.full((4,), float(index))
    def caught(loader, seen):
        try:
            yield from loader
        except Missing as error:
            seen.update(f"{error} {error.index}".encode())
    """
    text = program(MAKE.replace("Images()", "Own()"), classes, each="Own.epoch = epoch")
    run = Run(tmp_path, text.replace("in loader:", "in caught(loader, seen):"))
    assert run.workers[2] > 0
    assert not any("failed" in line for line in run.told)


def test_two_loops_at_once(tmp_path: Path) -> None:
    """A sampler draws its seed with the first batch, not when its loop is made."""
    text = program(epochs=5).replace("for batch in loader:", "for batch, _ in zip(*sized(loader)):")
    text = text.replace(
        "def main():",
        "def sized(loader):\n    both = iter(loader), iter(loader)\n    torch.rand(1)\n"
        "    assert len(both[0]) == 60\n    return both\n\ndef main():",
    )
    assert Run(tmp_path, text).workers[-1] > 0


def test_batches_that_the_program_keeps(tmp_path: Path) -> None:
    """Each is an open file if a worker made it."""
    before = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (110, 110)); " + MAKE
    text = program(before, epochs=3).replace("in loader:", "in list(loader):")
    run = Run(tmp_path, text)
    assert any("batches that the program keeps" in line for line in run.told), run.errors


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (MAKE.replace("num", "collate_fn=lambda them: [iter, lambda: 0], num"), "cannot be pickled"),
        (MAKE.replace("num", "worker_init_fn=lambda worker: None, num"), "worker_init_fn"),
        (MAKE.replace("num", "generator=torch.Generator(), num"), "the program's generator"),
    ],
)
def test_loaders_that_are_left_alone(tmp_path: Path, make: str, why: str) -> None:
    text = program(make, epochs=2).replace("batch.numpy().tobytes()", "b''")
    run = Run(tmp_path, text)
    assert set(run.workers) == {0}
    assert any("num_workers stays as it is" in line and why in line for line in run.told), run.errors


def test_a_loader_that_is_fast_enough_is_left_alone(tmp_path: Path) -> None:
    text = program(MAKE, epochs=3).replace("time.sleep(0.002)", "pass")
    run = Run(tmp_path, text)
    assert set(run.workers) == {0}
    assert run.told == []
    assert run.report.profile.autopilot == []


def test_in_the_program(tmp_path: Path) -> None:
    make = f"import headrace as hr; {MAKE}; loader = hr.autopilot(loader, run={str(tmp_path / 'own')!r})"
    script = tmp_path / "own.py"
    script.write_text(program(make, epochs=8))
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int([line for line in done.stdout.splitlines() if line.startswith("epoch")][-1].split()[2]) > 0
    assert hr.Report.load(tmp_path / "own").profile.autopilot[0].outcome == "kept"


def test_what_is_allowed_is_of_one_loader(tmp_path: Path) -> None:
    classes = "class Own(Images):\n    def item(self, i):\n        return torch.rand(4) + i"
    make = MAKE.replace("Images()", "Own()")
    before = f"import headrace as hr; {make}; first = hr.autopilot(loader, allow='random'); {make}"
    before += f"; loader = hr.autopilot(loader, run={str(tmp_path / 'own')!r})"
    script = tmp_path / "own.py"
    script.write_text(program(before, classes, epochs=3))
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "num_workers stays as it is: its dataset draws random numbers" in done.stderr


def test_a_pipeline_is_set_while_it_runs(tmp_path: Path) -> None:
    script = tmp_path / "pipeline.py"
    script.write_text(
        textwrap.dedent(f"""
        import time
        import headrace as hr
        def decode(item):
            time.sleep(0.01)
            return item
        pipeline = hr.source(range(1500)).map(decode, workers=1).batch(2)
        loader = hr.autopilot(pipeline, run={str(tmp_path / "run")!r})
        for number, batch in enumerate(loader):
            assert batch == [2 * number, 2 * number + 1]
            time.sleep(0.004)
        """)
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    report = hr.Report.load(tmp_path / "run")
    assert any(
        one.parameter == "decode.workers" and one.outcome == "kept" for one in report.profile.autopilot
    )
    assert "what follows is of the whole run" in report.to_text()


def test_what_may_not_be_allowed() -> None:
    with pytest.raises(UsageError, match="random and sampler, not 'order'"):
        hr.autopilot([1, 2], allow=["order"])


def test_a_damaged_file_is_no_change(tmp_path: Path) -> None:
    run = tmp_path / "run"
    loader = hr.wrap(iter(range(20)), name="numbers", run=run)
    for _ in loader:
        pass
    report = loader.report()
    for number, text in enumerate(("", "{", "[]", '{"changes": [{"step": []}]}', '{"changes": {}}')):
        (run / f"rank0.autopilot-{number}.json").write_text(text)
    assert hr.Report.load(run).profile.autopilot == [] == report.profile.autopilot
