"""Many ranks beside each other: which one is slow, since when, why, and what the job would gain.

    cluster = hr.Cluster.load("runs/job")       # the folder with the ranks' files, or a URL
    print(cluster)                              # the verdict on the job, the worst ranks, the distribution
    cluster.diagnosis.slow[0].rank

Each rank is reduced to a summary of at most 256 kB where the executor runs; the verdict is made of these.
How to read it, engines and limits: docs/cluster.md.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import cached_property
from itertools import islice
from statistics import median_low
from typing import TYPE_CHECKING, Any

from headrace import _core
from headrace.cluster import _causes, _summary
from headrace.cluster._diagnosis import JobDiagnosis, diagnose
from headrace.cluster._files import Files, find_ranks
from headrace.cluster._job import Stages, expects_job, job_of, listed, stages_of
from headrace.cluster._reading import read_all
from headrace.cluster._view import WORST, Compared, Part, View
from headrace.common.plain import error_line
from headrace.errors import Error, UsageError
from headrace.pages import plots
from headrace.predict.job import Job
from headrace.traces.table import Table
from headrace.traces.table_text import counted, seconds

if TYPE_CHECKING:
    from headrace.results.timeline import Timeline

__all__ = ["Cluster", "JobDiagnosis"]

#: In the JSON: slow ones come first.
_MAX_LINKS = 1000
_MAX_MISSING = 100_000
#: Ranks without a file that are named.
_NAMED_MISSING = 20
_QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
_TITLES = {
    "slow_rank": "SLOW RANK",
    "uneven_stages": "UNEVEN STAGES",
    "pauses": "PAUSES",
    "slow_link": "SLOW LINK",
    "even": "NO SLOW RANK",
    "undetermined": "UNDETERMINED",
}
#: Stages that a text shows.
_SHOWN_STAGES = 32
#: Columns that text and page show; the first ones also where there is little room.
_STAGES = "stage ranks own_s beyond_share compute_s input_s communication_s bubble_s host_s"
_LINKS = "ranks slow bandwidth_gbps usual_gbps excess_s kind latency_s usual_latency_s calls bytes busy_s"
_RANKS = "rank late_s own_s late_share last_share input_share steps step_s file"


class Cluster(Compared):
    """The ranks of a job. Immutable once loaded; any thread may use it."""

    def __init__(
        self,
        summaries: Iterable[dict[str, Any]],
        read_errors: Sequence[tuple[str, str]] = (),
        notes: Sequence[str] = (),
        files: Sequence[Files] = (),
        stages: Stages | None = None,
    ) -> None:
        self._files = {one.name: one for one in files}
        #: Files that could not be read, and why.
        self.read_errors: list[tuple[str, str]] = [*read_errors]
        ranks: dict[int, dict[str, Any]] = {}
        for summary in sorted(map(_summary.opened, summaries), key=lambda one: str(one["name"])):
            if ranks.setdefault(summary["rank"], summary) is not summary:
                self.read_errors.append((str(summary["name"]), f"rank {summary['rank']} has another file"))
        self._ranks = dict(sorted(ranks.items()))
        self._stage_of = stages_of(self._ranks, stages)
        self._notes = list(notes)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        executor: Executor | None = None,
        *,
        cache: str | os.PathLike[str] | None = None,
        stages: Stages | None = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> Cluster:
        """Read a job's ranks: run folders, torch traces, Ascend profiles, in one folder or a folder each.

        ``path``: a folder or a URL that fsspec opens. ``executor``: where ranks are read (default: a pool of
        processes, which do not import the script). ``cache``: where summaries are kept; default:
        the user's cache folder, nowhere behind a URL. ``stages``: the ranks of each stage of the pipeline,
        in lists or as "0-7", "0-56/8"; default: as the traces' process groups say. ``progress`` is called
        with the ranks that are done and all of them.

        A rank that is missing, damaged or cut off is listed, in `read_errors` or `missing`. Raises Error if
        no rank is found or none can be read, UsageError for stages that are not those of the ranks.
        """
        found, notes = find_ranks(path)
        if stages is not None:
            listed(stages)  # before the ranks are read
            given = tuple(one if isinstance(one, str) else tuple(one) for one in stages)
            found = [replace(one, stages=given) for one in found]
        summaries, errors, problems = read_all(path, found, executor, cache, progress)
        if not summaries:
            name, why = errors[0]
            raise Error(f"{os.fspath(path)}: none of {len(errors)} ranks can be read; {name}: {why}")
        return cls(summaries, errors, notes + problems, found, stages)

    @property
    def missing(self) -> list[int]:
        """Ranks below the highest one that have no readable file."""
        missing = (rank for rank in range(max(self._ranks, default=-1) + 1) if rank not in self._ranks)
        return list(islice(missing, _MAX_MISSING))

    @property
    def running(self) -> list[int]:
        """Ranks that are still being recorded."""
        return [rank for rank, summary in self._ranks.items() if summary.get("running")]

    @cached_property
    def _recorded_columns(self) -> list[tuple[int, int, bytes, bytes, bytes, float]]:
        return [
            (rank, self._stage_of.get(rank, 0), steps["step"], steps["total"], steps["own"], demand_s)
            for rank, summary in self._ranks.items()
            for steps, demand_s in [(summary["steps"], float(summary.get("demand_s", 0.0)))]
        ]

    @cached_property
    def _in_step(self) -> bool:
        """Whether ranks meet in every step, so that their steps take equally long."""
        return _core.in_step(self._recorded_columns)

    @cached_property
    def _columns(self) -> list[tuple[int, int, bytes, bytes, bytes, float]]:
        """Recordings do not show waits for others: their whole steps count if the ranks are not in step."""
        if self._in_step:
            return self._recorded_columns
        return [
            (rank, stage, step, total, total if self._ranks[rank]["source"] == "segment" else own, demand_s)
            for rank, stage, step, total, own, demand_s in self._recorded_columns
        ]

    @cached_property
    def _judged(self) -> dict[str, Any]:
        return _core.slow_ranks(self._columns)

    @cached_property
    def diagnosis(self) -> JobDiagnosis:
        """The verdict on the job: the slow ranks, since when, why, and what the job would gain."""
        slowdown = 0.0 if isinstance(self._simulated, str) else self._simulated.slowdown
        most_gain = max(0.0, 1 - 1 / slowdown) if slowdown else 1.0
        found = diagnose(self._judged, self._ranks, self._balance, self._stage_parts, self._links, most_gain)
        if found.verdict == "even":
            found.advice += _causes.communication_advice(self.step_shares)
        return found

    @cached_property
    def _balance(self) -> dict[str, Any]:
        return _core.stage_balance(self._columns)

    @cached_property
    def _stage_parts(self) -> dict[int, dict[str, float]]:
        return _causes.parts_by_stage(self._ranks, self._stage_of)

    @cached_property
    def _links(self) -> dict[str, Any]:
        texts = [(rank, str(summary.get("links", ""))) for rank, summary in self._ranks.items()]
        return _core.judge_links([one for one in texts if one[1]])

    @cached_property
    def step_shares(self) -> dict[str, float]:
        """Parts of the mean step of all ranks, as shares of it; names as in `step_times`.

        Empty for recordings of loops, which do not show communication.
        """
        return _causes.shares_of(self._ranks.values())

    @cached_property
    def step_times(self) -> Table:
        """One row a rank: what its mean step consists of, the first step left out. NaN: not recorded.

        ``step_s`` is the sum of ``compute_s``, ``communication_s`` (exposed), ``bubble_s`` (waits for another
        stage of the pipeline), ``input_s`` and ``host_s`` (the device is idle for another reason).
        ``overlapped_s``: communication that computation hides. ``stage``: -1 if it is unknown.
        """
        rows = [
            {"rank": rank, "stage": self._stage_of.get(rank, -1), **_in_seconds(summary.get("parts", {}))}
            for rank, summary in self._ranks.items()
        ]
        return Table.of_rows(["rank", "stage", *(f"{name}_s" for name in _summary.PARTS)], rows)

    @cached_property
    def stages(self) -> Table:
        """One row a stage of the pipeline: its own time, the median of its ranks, and the parts of it.

        ``beyond_share``: beyond the mean of the stages. Its own time is without ``communication_s`` (exposed)
        and ``bubble_s`` (waits for another stage). Empty if the stages are unknown or there is one.
        """
        rows = []
        for stage, ranks, own_s, beyond in self._balance["stages"]:
            parts = {name: self._median_part(stage, name) for name in ("communication", "bubble")}
            parts |= self._stage_parts.get(stage, {})
            row = {"stage": stage, "ranks": ranks, "own_s": own_s, "beyond_share": beyond}
            rows.append(row | _in_seconds(parts))
        names = "stage ranks own_s beyond_share compute_s input_s host_s communication_s bubble_s"
        return Table.of_rows(names.split(), rows)

    def _median_part(self, stage: int, name: str) -> float:
        """Over the ranks of a stage; NaN if no rank's files record it."""
        every = (self._ranks[rank].get("parts", {}) for rank, of in self._stage_of.items() if of == stage)
        values = [parts[name] for parts in every if name in parts]
        return median_low(values) if values else math.nan

    @cached_property
    def links(self) -> Table:
        """One row a pair or a group of ranks that communicates: slow links first, by what they cost.

        ``bandwidth_gbps``: over the busiest link, of the largest messages; ``latency_s``: of small ones.
        ``usual_gbps``, ``usual_latency_s``: the median of links of its kind. ``excess_s``: what a step would
        be shorter by, at most, if it were as fast. Empty if the files do not tell.
        """
        names = ["bandwidth_gbps", "usual_gbps", "latency_s", "usual_latency_s", "calls", "bytes", "busy_s"]
        names.append("excess_s")
        rows = [
            {"ranks": row["ranks"], "kind": row["kind"], "slow": int(row["slow"])}
            | {name: float(row[name]) for name in names if row[name] is not None}
            for row in self._links["links"]
        ]
        return Table.of_rows(["ranks", "kind", "slow", *names], rows, self._link_notes)

    @property
    def _link_notes(self) -> list[str]:
        if sum(summary["source"] == "trace" for summary in self._ranks.values()) < 2:
            return []
        if not self._links["links"]:
            return ["links are unknown: the traces do not say which ranks their collectives join"]
        unknown = counted(self._links["unknown"], "record")
        why = f"{unknown} of links are left out: files of ranks at the ends are missing"
        return [why] if self._links["unknown"] else []

    @property
    def places(self) -> dict[int, dict[str, tuple[int, int]]]:
        """By rank: its index and the size of its pipeline, tensor, data, sequence and expert group.

        As the traces' process groups say; only those that are known.
        """
        return {
            rank: {str(role): (int(place[0]), int(place[1])) for role, place in summary["places"].items()}
            for rank, summary in self._ranks.items()
            if summary.get("places")
        }

    @cached_property
    def _simulated(self) -> Job | str:
        """The job, or why it cannot be simulated."""
        try:
            return job_of(self._ranks)
        except Error as error:
            return error_line(error)

    @property
    def job(self) -> Job:
        """The job simulated from the operations in its traces: what its imbalances and its input cost.

        Raises Error if the traces do not record the schedule; it says what is missing and how to record it.
        """
        if isinstance(self._simulated, str):
            raise Error(f"the job cannot be simulated: {self._simulated}")
        return self._simulated

    @cached_property
    def ranks(self) -> Table:
        """One row a rank, the latest first: ``late_s`` is its own time beyond the median of the ranks.

        ``late_share``: in how many of its steps it is late; ``last_share``: in how many no rank is later.
        NaN for a rank without steps in common with others.
        """
        names = ["rank", "steps", "step_s", "own_s", "late_s", "late_share", "last_share", "input_share"]
        names.append("file")
        rows = []
        for rank, steps, *times in sorted(
            self._judged["ranks"], key=lambda row: (row[1] == 0, -row[4], row[0])
        ):
            known = times if steps else [None] * len(times)
            values = (rank, steps, *known, self._input_share(rank), self._ranks[rank]["name"])
            rows.append(dict(zip(names, values, strict=True)))
        return Table.of_rows(names, rows, self.notes)

    def _input_share(self, rank: int) -> float:
        inputs, totals = (_causes.floats_of(self._ranks[rank], name) for name in ("input", "total"))
        whole = math.fsum(totals)
        return math.fsum(inputs) / whole if whole > 0 else math.nan

    @property
    def notes(self) -> list[str]:
        """A sentence for each thing that a reader has to know."""
        notes = list(self._notes)
        sources = {str(summary["source"]) for summary in self._ranks.values()}
        if "segment" in sources and len(self._ranks) > 1:
            notes.append(
                "recordings of loops do not show waits for other ranks; the ranks are compared by their "
                "waits for the input"
                if self._in_step
                else "the ranks are not in step; they are compared by their whole steps"
            )
        notes += self._link_notes
        if self._link_notes and not self._stage_of and not self.places:
            notes.append(
                "stages are unknown: the traces name no groups of ranks; --stage (stages=) gives them"
            )
        if isinstance(self._simulated, str) and expects_job(self._ranks):
            notes.append(f"the job is not simulated: {self._simulated}")
        said = Counter(str(note) for summary in self._ranks.values() for note in summary["notes"])
        for note, count in said.most_common(5):
            of_ranks = "" if len(self._ranks) == 1 else f" ({count:,} of {len(self._ranks):,} ranks)"
            notes.append(note + of_ranks)
        return notes

    def what_if(self, *, without_rank: int | Sequence[int]) -> dict[str, float | None]:
        """``step_s`` and ``speedup`` of the job if these ranks were never later than the latest other one.

        Raises UsageError for a rank that is not there.
        """
        without = [without_rank] if isinstance(without_rank, int) else list(without_rank)
        for rank in without:
            if rank not in self._ranks:
                raise UsageError(f"no rank {rank} in this job")
        now = self._judged["step_s"]
        then = _core.step_without(self._columns, without)
        return {"step_s": then, "speedup": now / then if then and now else None}

    def lateness(self, ranks: Sequence[int], steps: Sequence[int]) -> list[list[float]]:
        """How late each of the ranks is in each of the steps, beside the median of all; NaN: not known."""
        # Lateness is beside all ranks, so all are asked for and the wanted rows are taken.
        ordered = sorted(steps)
        flat = _core.lateness(self._columns, ordered)
        width = len(ordered)
        at = {column[0]: i for i, column in enumerate(self._columns)}
        return [flat[at[rank] * width : (at[rank] + 1) * width] for rank in ranks]

    @property
    def step_quantiles(self) -> dict[str, float | None]:
        """Step times of all ranks, from their histograms (9 % exact)."""
        counts: Counter[str] = Counter()
        for summary in self._ranks.values():
            counts.update(summary["histogram"])
        return {name: _summary.quantile(counts, share) for name, share in _QUANTILES.items()}

    def to_dict(self) -> dict[str, Any]:
        """Everything that the text says, as plain data."""
        return {
            "version": 1,
            "diagnosis": self.diagnosis.to_dict(),
            "ranks": self.ranks.json_rows(),
            "stages": self.stages.json_rows(),
            "step_times": self.step_times.json_rows(),
            "step_shares": self.step_shares,
            "links": self.links.json_rows(_MAX_LINKS),
            "steps": self.step_quantiles,
            "what_ifs": [] if isinstance(self._simulated, str) else self._simulated.what_ifs.json_rows(),
            "missing": self.missing,
            "running": self.running,
            "read_errors": [{"file": name, "says": why} for name, why in self.read_errors],
            "notes": self.notes,
        }

    def _view(self) -> View:
        diagnosis = self.diagnosis
        gain = f", whole job {diagnosis.speedup:.2f} x" if diagnosis.gain_share > 0 else ""
        known = [f"{name} {seconds(s)}" for name, s in self.step_quantiles.items() if s is not None]
        parts = [Part("Stages", self.stages, _STAGES, most=_SHOWN_STAGES), Part("Links", self.links, _LINKS)]
        if not isinstance(job := self._simulated, str):
            recorded, simulated = (seconds(sum(one) / len(one)) for one in (job.recorded_s, job.simulated_s))
            heading = f"What if: a step of {recorded}, simulated without launch delays {simulated}"
            parts.insert(1, Part(heading, job.what_ifs, "step_s speedup without"))
        return View(
            f"{counted(len(self), 'rank')}{', step ' if known else ''}{', '.join(known)}",
            diagnosis.summary,
            diagnosis.verdict not in ("even", "undetermined"),
            _TITLES[diagnosis.verdict] + gain,
            diagnosis.advice,
            [*parts, Part("Ranks", self.ranks, _RANKS)],
            self._remarks(),
        )

    def _remarks(self) -> list[str]:
        remarks = []
        late = sorted(row["late_s"] for row in self.ranks.rows() if row["steps"])
        if len(late) > WORST:
            at = {"p1": 0.01, "p10": 0.1, **_QUANTILES}
            said = ", ".join(f"{name} {seconds(late[int(share * len(late))])}" for name, share in at.items())
            remarks.append(f"late by, all {len(late):,} ranks: {said}")
        remarks += _causes.shares_in_words(self.step_shares)
        if links := len(self.links):
            slow = sum(self.links.column("slow"))
            slow_ones = f"{slow:,}" if slow else "none"
            remarks.append(f"{counted(links, 'link')}, {slow_ones} slow beside others of their kind")
        if missing := self.missing:
            more = len(missing) - _NAMED_MISSING
            named = ", ".join(map(str, missing[:_NAMED_MISSING]))
            remarks.append(f"no file of rank: {named}{f' and {more:,} more' if more > 0 else ''}")
        if self.running:
            remarks.append(f"still running: {counted(len(self.running), 'rank')}")
        return remarks + self._not_read() + [f"note: {note}" for note in self.notes]

    def _maps(self) -> list[tuple[str, plots.HeatMap]]:
        """Ranks against steps: the latest ones, then all. Empty without common steps."""
        every = _core.heat_map(self._columns, [])
        rows = len(every[0])
        found = [("All ranks", plots.HeatMap(every, min(16.0, max(3.0, 480 / (rows + 1)))))] if rows else []
        worst = [row["rank"] for row in islice(self.ranks.rows(), WORST) if row["steps"]]
        if worst and len(worst) < rows:
            latest = plots.HeatMap(_core.heat_map(self._columns, worst), 16.0)
            found.insert(0, ("The latest ranks, step by step", latest))
        return found

    def timeline(
        self, out: str | os.PathLike[str], ranks: Sequence[int] | None = None, **options: Any
    ) -> Timeline:
        """Write ranks below each other into one file for Perfetto; see `hr.timeline.merge`.

        ``ranks``: default the latest, the median and the earliest one. Clocks of device traces are laid over
        the first rank's by the collectives that both have; ``notes`` say by how much and what may remain.
        Raises UsageError for a rank that is not there, Error if its file is gone.
        """
        from headrace.results.timeline import write_timeline

        if ranks is None:
            known = [int(row["rank"]) for row in self.ranks.rows() if row["steps"]]
            ranks = list(dict.fromkeys([*known[:1], *known[len(known) // 2 :][:1], *known[-1:]]))
        for rank in ranks:
            if rank not in self._ranks:
                raise UsageError(f"no rank {rank} in this job")
        chosen = [self._files.get(str(self._ranks[rank]["name"])) for rank in ranks]
        files = [one for one in chosen if one is not None]
        if not files:
            raise UsageError("this job was not loaded from files")
        segments = [one.path for one in files if one.kind == "segment"]
        traces = [one.path for one in files if one.kind != "segment"]
        return write_timeline(segments, traces, out, **options)

    def __len__(self) -> int:
        return len(self._ranks)

    def __repr__(self) -> str:
        return f"<headrace.Cluster of {len(self):,} ranks: {self.diagnosis.verdict}>"


def _in_seconds(parts: dict[str, float]) -> dict[str, float]:
    return {f"{name}_s": value for name, value in parts.items()}
