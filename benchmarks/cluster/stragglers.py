"""Reproduces the published figures of recorded jobs from their operations.

    python benchmarks/cluster/stragglers.py FOLDER

FOLDER has, for each job NAME, `trace-NAME.parquet` (one row an operation), `result-NAME.json` and, where they
were published, `ms-NAME.json` and `mw-NAME.json`. Every number in these is compared with ours. The last lines
are the largest deviation and `all within 1 %`, or what is not; the exit status is 1 then. Needs pyarrow.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from headrace.errors import Error
from headrace.job import By, Job

LIMIT = 0.01
#: Entries that describe the job or that the study did not publish.
NOT_FIGURES = {"job_meta"}


def read_job(path: Path) -> Job:
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(path)
    return Job({name: table.column(name).to_pylist() for name in table.column_names})


def results(job: Job) -> dict[str, Any]:
    """Ours, under the names of `result-*.json`."""
    ours: dict[str, Any] = {
        "step_t_base": dict(zip(job.steps, job.recorded_s, strict=True)),
        "step_t_nodelay": dict(zip(job.steps, job.simulated_s, strict=True)),
        "step_t_noblk": dict(zip(job.steps, job.even_s, strict=True)),
        "launch_slowdown": job.launch_slowdown,
        "blocking_slowdown": job.slowdown,
        "launch_step_slowdown": quotients(job, job.recorded_s, job.simulated_s),
        "blocking_step_slowdown": quotients(job, job.simulated_s, job.even_s),
    }
    by: By
    for by in ("dp_rank", "stage", "optype"):
        ours[f"blocking_decompose_by_{by}"] = job.slowdown_of(by)
        ours[f"blocking_decompose_by_{by}_per_step"] = job.slowdown_of_steps(by)
    return ours


def quotients(job: Job, above: list[float], below: list[float]) -> dict[int, float]:
    return {step: a / b for step, a, b in zip(job.steps, above, below, strict=True)}


def shares(job: Job, name: str) -> dict[str, Any]:
    """Ours, under the names of `mw-*.json` (the slowest workers) or `ms-*.json` (the last stage)."""
    share = job.share_of_workers() if name == "Mw" else job.share_of_last_stage()
    return {
        "trem": share["without_s"],
        "tadd": share["only_s"],
        "tori": mean(job.simulated_s),
        "tideal": mean(job.even_s),
        "rem": share["gone"],
        "add": share["alone"],
        name: share["gone"],
    }


def mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)


def compare(expected: Any, ours: Any, path: str) -> Iterator[tuple[str, float, str]]:
    """Every number of `expected`: its path, its deviation (infinite where ours is missing) and a sentence."""
    if expected is None:
        return
    if isinstance(expected, dict):
        found = {str(key): value for key, value in ours.items()} if isinstance(ours, dict) else {}
        for key, value in expected.items():
            yield from compare(value, found.get(str(key)), f"{path}.{key}")
        return
    if isinstance(expected, bool) or not isinstance(expected, int | float):
        yield path, math.inf, f"{path}: {expected!r} is not a number"
    elif ours is None:
        yield path, math.inf, f"{path}: published {expected}, ours missing"
    else:
        off = abs(ours - expected) / abs(expected) if expected else abs(ours)
        yield path, off, f"{path}: published {expected:.6g}, ours {ours:.6g}, {off:.3%} off"


def check_job(trace: Path) -> Iterator[tuple[str, float, str]]:
    name = trace.stem.removeprefix("trace-")
    began = time.perf_counter()
    job = read_job(trace)
    files = {
        f"result-{name}.json": results(job),
        f"ms-{name}.json": shares(job, "Ms"),
        f"mw-{name}.json": shares(job, "Mw"),
    }
    took = time.perf_counter() - began
    print(
        f"{name}: {len(job.steps)} steps, {len(job.dp_ranks)} data-parallel ranks x {len(job.stages)} "
        f"stages, read and simulated in {took:.2f} s"
    )
    print(f"  slowdown {job.slowdown:.4f}, without launch delays {job.launch_slowdown:.4f}", end="")
    if job.unpaired:
        print(f", {job.unpaired} sends and receives without a partner", end="")
    print()
    compared = 0
    for file, ours in files.items():
        path = trace.with_name(file)
        if not path.exists():
            print(f"  {file} is absent")
            continue
        expected = json.loads(path.read_text(encoding="utf-8"))
        if file.startswith("result-"):
            expected = {key: value for key, value in expected.items() if key not in NOT_FIGURES}
        entries = list(compare(expected, ours, file.removesuffix(".json")))
        compared += len(entries)
        yield from entries
    print(f"  {compared} published figures compared")


def entries_of(trace: Path) -> list[tuple[str, float, str]]:
    """One entry that says what is wrong where a job cannot be read."""
    try:
        return list(check_job(trace))
    except (Error, OSError, ValueError, TypeError) as error:
        return [(trace.name, math.inf, f"{trace.name}: {' '.join(str(error).split())}")]


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    folder = Path(sys.argv[1])
    traces = sorted(folder.glob("trace-*.parquet"))
    if not traces:
        print(f"{folder} has no trace-*.parquet", file=sys.stderr)
        return 1
    entries: list[tuple[str, float, str]] = []
    for trace in traces:
        entries.extend(entries_of(trace))
    wrong = [entry for entry in entries if not entry[1] <= LIMIT]
    for _, _, sentence in wrong:
        print(f"not within 1 %: {sentence}")
    if not entries:
        print("nothing to compare: no result-*.json, ms-*.json or mw-*.json beside the traces")
        return 1
    print(f"largest deviation: {max(entries, key=lambda entry: entry[1])[2]}")
    print("all within 1 %" if not wrong else f"{len(wrong)} of {len(entries)} not within 1 %")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
