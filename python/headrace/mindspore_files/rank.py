"""The files of one rank, all of them read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from headrace.errors import Error, FormatError
from headrace.mindspore_files.batches import (
    Batches,
    Call,
    GetNexts,
    calls_on_device,
    read_batches,
    read_getnext,
)
from headrace.mindspore_files.cpu import Cpu, read_cpu
from headrace.mindspore_files.folder import LOOKED_FOR, ProfilerFolder
from headrace.mindspore_files.pipeline import Pipeline, Written, read_profiling, read_summary, read_table
from headrace.mindspore_files.steps import StepTrace, read_points, read_steps
from headrace.mindspore_files.texts import file_problem


@dataclass
class RankFiles:
    """The content of the files; None where a file is missing or damaged."""

    rank: int
    #: Ranks in the folder, this one included.
    ranks_beside: int
    #: A file of the rank was written by a device's profiler.
    has_device: bool
    pipeline: Pipeline | None = None
    written: Written | None = None
    #: Sink mode: a thread feeds the device.
    device_queue: Batches | None = None
    #: The loop takes batches itself.
    dataset_iterator: Batches | None = None
    getnext: GetNexts | None = None
    cpu: Cpu | None = None
    steps: StepTrace | None = None
    points: tuple[str, str] | None = None
    #: A line for each file that is missing or could not be read.
    notes: list[str] = field(default_factory=list)

    @property
    def batches(self) -> Batches | None:
        """The records of the host queue."""
        return self.device_queue or self.dataset_iterator

    @property
    def in_sink_mode(self) -> bool:
        return self.device_queue is not None or self.getnext is not None

    @property
    def steps_on_device(self) -> bool:
        """Whether the steps are those between the device's GetNext calls, which have another clock."""
        return self.getnext is not None and len(self.getnext.calls) > 1

    @property
    def calls(self) -> list[Call]:
        """The training loop's waits for batches; empty where no file has their times."""
        if self.steps_on_device and self.getnext is not None:
            return calls_on_device(self.getnext)
        in_order = self.pipeline is None or not self.pipeline.has_queues_per_worker
        return self.batches.calls(self.device_queue is not None, in_order) if self.batches else []

    @property
    def span_ms(self) -> tuple[int, int] | None:
        """From the end of the first batch to that of the last one, where the ends are known."""
        return self.batches.span_ms if self.batches is not None else None


def read_rank(folder: ProfilerFolder, rank: int) -> RankFiles:
    """Every file of the rank. One that is damaged is noted, and the others are still read.

    Raises FormatError if all of them are damaged, Error if the rank has none.
    """
    own = folder.ranks[rank]
    files = RankFiles(rank, len(folder.ranks), own.has_device)
    problems: list[FormatError] = []
    read_one = False

    def take(kind: str, read: Callable[[str], Any]) -> Any:
        nonlocal read_one
        if kind not in own.paths:
            return None
        try:
            found = read(own.paths[kind])
        except FormatError as error:
            problems.append(error)
            files.notes.append(file_problem(own.paths[kind], error))
            return None
        read_one = True
        return found

    files.written = take("pipeline_summary", read_summary) or take("pipeline_summary_table", read_summary)
    files.pipeline = take("pipeline_profiling", read_profiling)
    if files.pipeline is None and (table := take("pipeline_table", read_table)):
        files.pipeline = table
        files.notes.append(
            "the operators are read from minddata_pipeline_raw, which leaves out those without a queue"
        )
    elif files.pipeline is None and files.written is not None:
        files.pipeline = files.written.pipeline
        files.notes.append(
            "the operators are read from minddata_pipeline_summary, which has averages and no samples"
        )
    files.device_queue = take("device_queue", read_batches)
    files.dataset_iterator = take("dataset_iterator", read_batches)
    for kind in ("getnext_ascend", "getnext_gpu", "getnext_raw"):
        files.getnext = files.getnext or take(kind, partial(read_getnext, own.raw, kind))
    files.cpu = take("cpu", read_cpu)
    files.steps = take("step_trace", read_steps)
    files.points = take("step_points", read_points)
    if not read_one and problems:
        raise problems[0]
    if not read_one:
        raise Error(f"rank {rank}: no data-preparation file and no step trace; {LOOKED_FOR}")
    files.notes += folder.notes
    return files
