"""A training whose parts take drawn times, and which measures them itself: see run.py."""

from __future__ import annotations

import contextlib
import io
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

BEGAN = time.monotonic()

import torch  # noqa: E402
from torch.utils.data import DataLoader, Dataset  # noqa: E402

SETTINGS: dict[str, Any] = json.loads(sys.argv[1])
taken: Counter[str] = Counter()
#: Of parts inside others, which are not theirs.
inner: list[float] = [0.0]


@contextlib.contextmanager
def part(name: str) -> Iterator[None]:
    began = time.monotonic()
    inner.append(0.0)
    try:
        yield
    finally:
        seconds = time.monotonic() - began
        taken[name] += seconds - inner.pop()
        inner[-1] += seconds


def work(seconds: float) -> None:
    if not SETTINGS["computes"]:
        time.sleep(seconds)
        return
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(500))


class Rows(Dataset):  # type: ignore[type-arg]
    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.zeros(8)


def loader_of(steps: int) -> Any:
    workers = SETTINGS["workers"]
    loader = DataLoader(
        Rows(4 * steps),
        batch_size=4,
        num_workers=workers,
        persistent_workers=SETTINGS["persistent"] and workers > 0,
    )
    if SETTINGS["wrapped"]:
        import headrace as hr

        return hr.wrap(loader)
    return loader


def read_index() -> None:
    time.sleep(SETTINGS["index_s"])


def log_figures() -> None:
    with part("logging"):
        work(SETTINGS["log_s"])


class SlowFile(io.BytesIO):
    """A file on a disk that takes its time, once."""

    left_s = 0.0

    def write(self, data: Any) -> int:
        work(self.left_s)
        self.left_s = 0.0
        return super().write(data)


def write_state(model: Any) -> None:
    with part("checkpoints"):
        file = SlowFile()
        file.left_s = SETTINGS["state_s"]
        torch.save(model.state_dict(), file)


def evaluate(loader: Any) -> None:
    with part("evaluation"), torch.no_grad():
        for _ in loader:
            work(SETTINGS["evaluation_s"] / SETTINGS["evaluation_steps"])
        work(0.05)


class Trainer:
    """The same loop as methods of an object."""

    def __init__(self) -> None:
        self.model = torch.nn.Linear(8, 8)
        self.optimizer = torch.optim.SGD(self.model.parameters(), 0.1)
        self.train_loader = self.val_loader = None

    def loaders(self) -> tuple[Any, Any]:
        if self.train_loader is None or SETTINGS["made_again"]:
            self.train_loader = loader_of(SETTINGS["steps"])
            self.val_loader = loader_of(SETTINGS["evaluation_steps"])
        return self.train_loader, self.val_loader

    def fit(self) -> None:
        for _ in range(SETTINGS["epochs"]):
            train, val = self.loaders()
            self.epoch(train, val)
            if SETTINGS["evaluation_s"] and not SETTINGS["in_loop"]:
                evaluate(val)
            if SETTINGS["state_s"]:
                write_state(self.model)

    def epoch(self, train: Any, val: Any) -> None:
        for number, batch in enumerate(train):
            with part("steps"):
                self.model(batch).sum().backward()
                self.optimizer.step()
                self.optimizer.zero_grad()
                work(SETTINGS["step_s"])
                if SETTINGS["log_s"] and number % SETTINGS["log_every"] == SETTINGS["log_every"] - 1:
                    log_figures()
                if SETTINGS["evaluation_s"] and SETTINGS["in_loop"] and number == SETTINGS["steps"] // 2:
                    evaluate(val)


def main() -> None:
    read_index()
    if SETTINGS["wrapped"]:
        import headrace as hr

        with hr.session(run=sys.argv[3]):
            Trainer().fit()
    else:
        Trainer().fit()
    taken["wall"] = time.monotonic() - BEGAN
    Path(sys.argv[2]).write_text(json.dumps(taken))


main()
