"""The subject of the demo: a pipeline that can be run with any number of workers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol


class Loader(Protocol):
    """Something wrapped: batches, and a report about them."""

    def __iter__(self) -> Any: ...
    def report(self) -> Any: ...


class Start(Protocol):
    """Starts the pipeline over these files, for so many seconds; records into ``run``."""

    def __call__(self, paths: list[Path], workers: int, seconds: float, run: Path) -> Loader: ...


@dataclass(frozen=True)
class Subject:
    """One pipeline of the demo."""

    told: str  # what it does, before "and feed"
    workers: str  # "decode worker": what there are too few of
    parameter: str  # of the advice that is applied
    batch: int  # images
    step_s: float  # what the simulated accelerator takes for a batch
    seconds: float  # of each of the two runs, where the user does not say
    start: Start
