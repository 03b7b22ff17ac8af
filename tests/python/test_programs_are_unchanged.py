"""A program observes itself: types, identities, pickles, locals, frees, signals, imports, its folder.

What it prints bare it prints under `headrace run`, with `hr.wrap`, and with its data watched.
"""

import functools
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

DOORS = {
    "run": ("-m", "headrace", "run"),
    "wrap": (),
    "watch": ("-m", "headrace", "run", "--watch"),
}

#: In front of each program.
RECORD = """
import os
if os.environ["DOOR"] == "wrap":
    import headrace
    record = headrace.wrap
else:
    record = lambda loader: loader
"""

OBJECTS = """
import json, os, pickle, sys, weakref
classes = sorted(each.name for each in os.scandir() if each.is_dir())  # of the data, as ImageFolder has it
import torch
from torch.utils.data import ConcatDataset, DataLoader, Dataset, Subset, default_collate

class Crop:
    def __call__(self, x): return x[:2]
class Flip(torch.nn.Module):
    def forward(self, x): return -x
class Both:
    def __init__(self, *transforms): self.transforms = list(transforms)
    def __call__(self, x):
        for each in self.transforms: x = each(x)
        return x
def half(x): return x / 2
APPLY = {Crop: "crop", Flip: "flip", Both: "both", type(half): "function"}
CALL, GET = Crop.__call__, None
seen = set()
class Rows(Dataset):
    def __init__(self, transform): self.transform = transform
    def __len__(self): return 12
    def __getitem__(self, index):
        kind = APPLY[type(self.transform)]
        seen.add((kind, type(self) is Rows, self.transform is KEPT[kind]))
        if index == 5 and isinstance(self.transform, Both):
            self.transform.transforms.reverse()  # as a curriculum does
        return self.transform(torch.arange(4.0) + index)
class Outer(Dataset):
    def __init__(self, inner): self.inner, self.parts = inner, [inner]
    def __len__(self): return len(self.inner)
    def __getitem__(self, index):
        seen.add((type(self.inner).__name__, self.parts[0] is self.inner))
        return self.inner[index]
GET = Rows.__getitem__
KEPT = {"crop": Crop(), "flip": Flip(), "both": Both(Crop(), Flip(), half), "function": half}
for name, transform in KEPT.items():
    rows = Rows(transform)
    for dataset in (rows, Outer(Subset(rows, range(8))), ConcatDataset([rows] * 2)):
        total = sum(float(batch.sum()) for batch in record(DataLoader(dataset, 4)))
        print(name, type(dataset).__name__, total)
print(sorted(map(str, seen)), [type(each).__name__ for each in KEPT["both"].transforms])
print(Crop.__call__ is CALL, Rows.__getitem__ is GET, vars(Crop)["__call__"] is CALL)
print(pickle.loads(pickle.dumps(half)) is half, len(pickle.dumps(Rows(KEPT["crop"]))))

class Checkpoint: pass
def fit():
    checkpoint = Checkpoint()
    alive = weakref.ref(checkpoint)
    config = locals()
    loader = record(DataLoader(list(range(8)), 4))
    del checkpoint
    for batch in loader: pass
    print(sorted(config), "freed", config.pop("checkpoint") and alive() is None)
fit()

import collections, time
def get_batch(split):
    time.sleep(0.001)
    return [1, 2, 3]
REGISTRY = {"train": get_batch}
for _ in range(700): get_batch("train")
print(REGISTRY["train"] is get_batch, len(pickle.dumps(REGISTRY["train"])))
print(classes)
"""

HANDLERS = """
import random, signal, time, torch
from torch.utils.data import DataLoader, Dataset
class Stop(Exception): pass
fired = 0
def handler(*_):
    global fired
    fired = 1
    raise Stop
class Rows(Dataset):
    def __len__(self): return 400
    def __getitem__(self, index): return torch.full((3, 8, 8), float(index % 7))
loader = record(DataLoader(Rows(), 8))
lost = caught = 0
signal.signal(signal.SIGALRM, handler)
while caught < 150:
    fired = 0
    try:
        signal.setitimer(signal.ITIMER_REAL, random.uniform(0.0002, 0.004))
        for batch in loader: float(batch[0, 0, 0, 0])
        was = fired
        signal.setitimer(signal.ITIMER_REAL, 0)
        lost += was
    except Stop:
        caught += 1
# Python itself loses one now and then, where it arrives while an object is finalized.
print("lost", lost if lost > 2 else "none", "of", caught)
"""

THREADS = """
import os, signal, subprocess, sys, threading, time
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})  # Slurm's --signal, taken by a thread
def wait():
    signal.sigwait({signal.SIGUSR1})
    print("checkpoint written", flush=True)
waits = threading.Thread(target=wait, daemon=True)
waits.start()

folder = os.path.dirname(os.path.abspath(__file__))
import profile, statistics  # the program's own, beside it
print(profile.MINE, hasattr(statistics, "mean"))
for number in range(100):
    with open(f"{folder}/plugin{number}.py", "w") as file: file.write("x = 1")
errors, done = [], []
def plugins():
    number = 0
    while not done:
        name = f"plugin{number % 100}"
        number += 1
        sys.modules.pop(name, None)
        try: __import__(name)
        except ImportError as error: errors.append(str(error))
        time.sleep(0.0005)
imports = threading.Thread(target=plugins, daemon=True)
imports.start()
from torch.utils.data import DataLoader
for _ in range(3):
    for batch in record(DataLoader(list(range(200)), 4)): time.sleep(0.002)
done.append(1)
imports.join()
print(errors)
time.sleep(0.8)
subprocess.run(["kill", "-USR1", str(os.getpid())])
waits.join(10)
"""

PROGRAMS = {"objects": OBJECTS, "handlers": HANDLERS, "threads": THREADS}


def _says(name: str, door: str, folder: Path) -> str:
    program = folder / f"program_{name}.py"
    program.write_text(RECORD + textwrap.dedent(PROGRAMS[name]))
    if name == "threads":
        (folder / "profile.py").write_text("MINE = True\n")
    result = subprocess.run(
        [sys.executable, *DOORS.get(door, ()), str(program)],
        cwd=folder,
        env={**os.environ, "DOOR": door},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, f"{door}: status {result.returncode}\n{result.stdout}\n{result.stderr}"
    return result.stdout


@functools.cache
def _bare(name: str, above: Path) -> str:
    folder = above / f"bare-{name}"
    folder.mkdir()
    return _says(name, "bare", folder)


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_says_what_it_says_bare(
    name: str, door: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert _says(name, door, tmp_path) == _bare(name, tmp_path_factory.getbasetemp())
