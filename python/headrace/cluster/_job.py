"""A job's stages, and its operations, from what its ranks' device traces record of the schedule."""

from __future__ import annotations

import base64
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from statistics import median
from typing import Any

from headrace import _core
from headrace.common.plain import error_line
from headrace.errors import Error, UsageError
from headrace.predict.job import Job

Worker = tuple[int, int]
#: Each stage is given as its ranks, or as a text of them, "0-7" or "0-56/8".
Stages = Sequence[Sequence[int] | str]

#: More operations of a rank do not fit its summary; the newest whole steps that fit are kept.
_MAX_OPERATIONS = 3000
#: Columns of a summary's operations, and the numbers' type; the types of operations are indices.
_CODES = {
    "type": "B",
    "step": "q",
    "start_s": "d",
    "duration_s": "d",
    "chunk": "h",
    "model_chunk": "h",
    "micro_batch": "i",
    "input_s": "f",
    "kernel": "i",
}
#: Ranks of such a group work on the same micro-batches together, so one of them is simulated.
_TOGETHER = ("tensor", "sequence", "expert")
_OVER_STAGES = ("optimizer-clip-main-grad", "embedding-grads-all-reduce")
_OVER_DATA = ("params-all-gather", "grads-reduce-scatter", "separate-grads-all-reduce")


def stages_of(ranks: Mapping[int, Mapping[str, Any]], given: Stages | None) -> dict[int, int]:
    """The stage of each rank; empty if it is unknown for one of them. Raises UsageError for `given`."""
    if given is not None:
        return _given(ranks, given)
    places = {rank: summary.get("places", {}).get("pipeline") for rank, summary in ranks.items()}
    return {rank: place[0] for rank, place in places.items()} if all(places.values()) else {}


def listed(given: Stages) -> list[list[int]]:
    """The ranks of each stage. Raises UsageError for a stage without ranks."""
    stages = [
        _core.ranks_of_text(members) if isinstance(members, str) else list(members) for members in given
    ]
    for stage, members in enumerate(stages):
        if not members:
            raise UsageError(
                f"stage {stage} is {given[stage]!r}; a stage is a list of ranks or '0-7', '0-56/8'"
            )
    return stages


def _given(ranks: Mapping[int, Mapping[str, Any]], given: Stages) -> dict[int, int]:
    stages: dict[int, int] = {}
    for stage, members in enumerate(listed(given)):
        for rank in members:
            if stages.setdefault(rank, stage) != stage:
                raise UsageError(f"rank {rank} is given in stage {stages[rank]} and in stage {stage}")
    absent = [rank for rank in ranks if rank not in stages]
    if absent:
        raise UsageError(f"rank {absent[0]} is in none of the {len(given)} stages")
    return {rank: stages[rank] for rank in ranks}


def packed_operations(
    trace: Any, rank: int, steps: list[int], stages: Sequence[Sequence[int]] = ()
) -> dict[str, Any]:
    """For a rank's summary: its operations, or `missing`: what its trace does not record.

    `stages`: the ranks of each stage, if they do not follow from the trace's process groups.

    `expected`: the trace is of a pipeline or names micro-batches.
    """
    missing, expected, columns = _core.job_operations(trace._traces, rank, steps, stages)
    if missing:
        return {"missing": missing, "expected": expected}
    count = len(columns["step"])
    steps_begin = [i for i, step in enumerate(columns["step"]) if i == 0 or columns["step"][i - 1] != step]
    begin = next((i for i in steps_begin if count - i <= _MAX_OPERATIONS), steps_begin[-1])
    if count - begin > _MAX_OPERATIONS:
        says = f"a step has {count - begin:,} operations of a rank; up to {_MAX_OPERATIONS:,} are simulated"
        return {"missing": says, "expected": expected}
    types = sorted(set(columns["type"]))
    columns["type"] = [types.index(one) for one in columns["type"]]
    packed = {
        name: base64.b64encode(array(code, columns[name][begin:]).tobytes()).decode("ascii")
        for name, code in _CODES.items()
    }
    return {"types": types, "worker": [columns["dp_rank"][0], columns["stage"][0]], **packed}


def _unpacked(summary: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Raises Error for a summary without operations or with damaged ones."""
    job = summary.get("job", {})
    if "types" not in job:
        raise Error(str(job.get("missing") or "only PyTorch's traces record a job's operations"))
    columns: dict[str, list[Any]] = {}
    for name, code in _CODES.items():
        values = array(code)
        values.frombytes(base64.b64decode(job[name]))
        columns[name] = list(values)
    columns["type"] = [job["types"][one] for one in columns["type"]]
    columns["dp_rank"], columns["stage"] = ([one] * len(columns["type"]) for one in job["worker"])
    seen: Counter[tuple[str, int]] = Counter()
    columns["sequence"] = []
    for key in zip(columns["type"], columns["step"], strict=True):
        columns["sequence"].append(seen[key])
        seen[key] += 1
    return columns


def expects_job(ranks: Mapping[int, Mapping[str, Any]]) -> bool:
    """Whether the traces are of a pipeline or name micro-batches, so that a reader expects a simulation."""
    jobs = [summary.get("job", {}) for summary in ranks.values()]
    return any("types" in job or job.get("expected") for job in jobs)


def job_of(ranks: Mapping[int, Mapping[str, Any]]) -> Job:
    """Raises Error: what the traces do not record, and how to add it."""
    workers = _workers(ranks)
    common = set.intersection(*(set(columns["step"]) for columns in workers.values()))
    if not common:
        raise Error("the ranks' traces have no step in common: profile the same steps on all ranks")
    for worker, columns in workers.items():
        kept = [i for i, step in enumerate(columns["step"]) if step in common]
        workers[worker] = {name: [values[i] for i in kept] for name, values in columns.items()}
    shifts = _shifts(workers)
    joined: dict[str, list[Any]] = defaultdict(list)
    for worker, columns in workers.items():
        for name, values in columns.items():
            joined[name] += [value + shifts[worker] for value in values] if name == "start_s" else values
    job = Job(joined)
    if job.unpaired:
        raise Error(
            f"{job.unpaired:,} sends or receives between stages have no partner, so the schedule is unknown: "
            "profile the same whole steps on all ranks"
        )
    return job


def _workers(ranks: Mapping[int, Mapping[str, Any]]) -> dict[Worker, dict[str, list[Any]]]:
    """One rank for each data-parallel rank of each stage."""
    failures: dict[str, list[int]] = defaultdict(list)
    workers: dict[Worker, dict[str, list[Any]]] = {}
    by: dict[Worker, int] = {}
    stages = data = 1
    for rank, summary in sorted(ranks.items()):
        try:
            columns = _unpacked(summary)
        except (Error, ValueError, KeyError) as error:
            failures[error_line(error)].append(rank)
            continue
        worker = (columns["dp_rank"][0], columns["stage"][0])
        places = summary["places"]
        stages = max(stages, worker[1] + 1, places.get("pipeline", (0, 0))[1])
        data = max(data, worker[0] + 1, places.get("data", (0, 0))[1])
        if worker not in workers:
            workers[worker], by[worker] = columns, rank
        elif not any(role in places for role in _TOGETHER):
            raise Error(
                f"ranks {by[worker]} and {rank} are both {_named(worker)}: "
                'describe the group that they differ in (group_desc="dp", "pp", "tp", "cp" or "ep")'
            )
    if failures:
        why, of = max(failures.items(), key=lambda item: len(item[1]))
        some = (
            "" if len(of) == len(ranks) else f" ({len(of):,} of {len(ranks):,} ranks, the first is {of[0]})"
        )
        raise Error(why + some)
    for worker in product(range(data), range(stages)):
        if worker not in workers:
            raise Error(f"{_named(worker)} has no trace: record all ranks of the job")
    return workers


def _named(worker: Worker) -> str:
    return f"data-parallel rank {worker[0]} of stage {worker[1]}"


def _meetings(worker: Worker, columns: Mapping[str, list[Any]]) -> Iterator[tuple[Any, float]]:
    """A key that members of a collective and both ends of a transfer have in common, and when it ended."""
    dp_rank, stage = worker
    for i, kind in enumerate(columns["type"]):
        step, number = columns["step"][i], columns["sequence"][i]
        end_s = columns["start_s"][i] + columns["duration_s"][i]
        if columns["duration_s"][i] <= 0:
            continue
        if kind in _OVER_DATA:
            yield (kind, "stage", stage, step, number), end_s
        elif kind in _OVER_STAGES:
            yield (kind, "rank", dp_rank, step, number), end_s
        elif kind.endswith(("-send", "-recv")):
            chunk = columns["model_chunk"][i]
            if chunk >= 0:
                number = columns["micro_batch"][i]
            forward, sends = kind.startswith("forward"), kind.endswith("-send")
            # Named by the lower of the two stages.
            lower = (chunk if chunk >= 0 else stage) - (0 if forward == sends else 1)
            yield ("forward" if forward else "backward", dp_rank, lower, step, number), end_s


def _shifts(workers: Mapping[Worker, Mapping[str, list[Any]]]) -> dict[Worker, float]:
    """Seconds to add to each worker's times: those that meet end together, and clocks of machines differ."""
    first: dict[Any, tuple[Worker, float]] = {}
    apart: dict[tuple[Worker, Worker], list[float]] = defaultdict(list)
    for worker, columns in workers.items():
        for meeting, end_s in _meetings(worker, columns):
            other, other_end_s = first.setdefault(meeting, (worker, end_s))
            if other != worker:
                apart[other, worker].append(other_end_s - end_s)
    beside: dict[Worker, dict[Worker, float]] = defaultdict(dict)
    for (one, other), differences in apart.items():
        beside[one][other] = median(differences)
        beside[other][one] = -beside[one][other]
    begin = next(iter(workers))
    shifts = {begin: 0.0}
    open_ = [begin]
    while open_:
        one = open_.pop()
        for other, difference in beside[one].items():
            if other not in shifts:
                shifts[other] = shifts[one] + difference
                open_.append(other)
    for worker in workers:
        if worker not in shifts:
            raise Error(
                f"{_named(worker)} shares no recorded collective or transfer with the others, so "
                "its clock is unknown: record communication on all ranks"
            )
    return shifts
