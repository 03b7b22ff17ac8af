"""Many jobs beside each other: the accelerator hours that each loses to its input, why, and what to change.

    fleet = hr.Fleet.load("runs")               # the folder with the run folders of all jobs, or a URL
    print(fleet)                                # hours lost, by cause, and the ten jobs that lose most
    fleet.jobs.to_pandas()

Each job is reduced to a summary of about 1 kB where the executor runs. How to read it: docs/cluster.md.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from functools import cached_property
from typing import Any

from headrace.cluster._files import find_jobs
from headrace.cluster._reading import read_all
from headrace.cluster._view import WORST, Compared, Part, View, number
from headrace.errors import Error, UsageError
from headrace.traces.table import Table
from headrace.traces.table_text import counted

_HOUR_S = 3600
_COLUMNS = (
    "job ranks steps wall_s hours lost_hours lost_share evaluation_hours rank loader cause operator change"
)
#: From this share on, the page marks the loss as one to act on.
_BAD_SHARE = 0.05
#: Columns that text and page show; with a price, its own behind them.
_CAUSES = "lost_hours lost_share jobs cause"
_JOBS = "job ranks hours lost_hours lost_share cause operator change"


class Fleet(Compared):
    """The jobs of a fleet. Immutable once loaded; any thread may use it."""

    def __init__(
        self,
        summaries: Sequence[Mapping[str, Any]],
        read_errors: Sequence[tuple[str, str]] = (),
        notes: Sequence[str] = (),
        price_per_hour: float | None = None,
    ) -> None:
        rows = [_row(summary, price_per_hour) for summary in summaries]
        self._rows = sorted(rows, key=lambda row: (-row["lost_hours"], row["job"]))
        #: Jobs, or files of their ranks, that could not be read, and why.
        self.read_errors: list[tuple[str, str]] = [*read_errors]
        self.read_errors += [(row["job"], str(why)) for row in self._rows for why in row["unread"]]
        #: A sentence for each thing that a reader has to know.
        self.notes: list[str] = list(notes)
        #: Price of one accelerator; None: unknown.
        self.price_per_hour = price_per_hour

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        executor: Executor | None = None,
        *,
        cache: str | os.PathLike[str] | None = None,
        price_per_hour: float | None = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> Fleet:
        """Read the jobs at any depth below a folder, or a URL that fsspec opens.

        A job is a folder with ``rank*.hrseg``, or one with such folders ``rank0``, ``rank1``, ... in it.
        ``executor``: where jobs are read (default: a pool of processes, which do not import the script).
        ``cache``: where summaries are kept; default: the user's cache folder, nowhere behind a URL.
        ``price_per_hour``: of one accelerator, in any currency. ``progress`` is called with the jobs that
        are done and all of them.

        Jobs and ranks that cannot be read are in `read_errors`. Raises Error if there is no job or none can
        be read, UsageError for a price that is not a number from 0 on.
        """
        if price_per_hour is not None and not (math.isfinite(price_per_hour) and price_per_hour >= 0):
            raise UsageError(f"price per hour: a number from 0 on, not {price_per_hour}")
        jobs, notes = find_jobs(path)
        summaries, errors, problems = read_all(path, jobs, executor, cache, progress)
        if not summaries:
            name, why = errors[0]
            raise Error(f"{name}: {why}; none of the {len(jobs):,} jobs can be read")
        return cls(summaries, errors, notes + problems, price_per_hour)

    @property
    def hours(self) -> float:
        """Accelerator hours of all jobs: ranks times the wall clock of the rank that ran longest."""
        return math.fsum(row["hours"] for row in self._rows)

    @property
    def lost_hours(self) -> float:
        """Accelerator hours lost to input: ranks times the waits of the rank that waited most."""
        return math.fsum(row["lost_hours"] for row in self._rows)

    @cached_property
    def jobs(self) -> Table:
        """One row a job, the one that loses most first.

        ``hours``: accelerator hours; ``lost_hours``: of these, lost to waits of the training for its input;
        ``lost_share``: their ratio; ``evaluation_hours``: lost to waits of evaluations, not in
        ``lost_hours``. ``rank``: the one that waited most; ``loader``, ``cause``, ``operator`` and ``change``
        are of the loader it waited most for. ``steps``: of the rank with most. ``lost_money``: with a price.
        """
        return Table.of_rows(_COLUMNS.split() + self._money, self._rows, self.notes)

    @cached_property
    def causes(self) -> Table:
        """One row a cause, the one that costs most first; ``lost_share``: of all lost hours."""
        hours: dict[str, list[float]] = {}
        for row in self._rows:
            hours.setdefault(row["cause"], []).append(row["lost_hours"])
        rows: list[dict[str, Any]] = []
        for cause, each in hours.items():
            lost = _lost(math.fsum(each), self.lost_hours, self.price_per_hour)
            rows.append({"cause": cause, "jobs": len(each), **lost})
        rows.sort(key=lambda row: (-row["lost_hours"], row["cause"]))
        return Table.of_rows(["cause", "jobs", "lost_hours", "lost_share", *self._money], rows)

    @property
    def _money(self) -> list[str]:
        return [] if self.price_per_hour is None else ["lost_money"]

    def to_dict(self) -> dict[str, Any]:
        """Everything that the text says, and every job, as plain data."""
        price = self.price_per_hour
        return {
            "version": 1,
            "hours": self.hours,
            "lost_hours": self.lost_hours,
            "price_per_hour": price,
            "lost_money": None if price is None else price * self.lost_hours,
            "causes": self.causes.json_rows(),
            "jobs": self.jobs.json_rows(),
            "read_errors": [{"job": name, "says": why} for name, why in self.read_errors],
            "notes": self.notes,
        }

    def _view(self) -> View:
        """Hours lost, by cause, and the jobs that lose most."""
        price = self.price_per_hour
        share = self.lost_hours / self.hours if self.hours > 0 else 0.0
        shown = f" ({share:.0%})" if self.hours > 0 else ""
        cost = "" if price is None else f", {number(price * self.lost_hours)} at {price:g} an hour"
        jobs = counted(len(self), "job")
        evaluation = math.fsum(row["evaluation_hours"] for row in self._rows)
        remarks = [f"waits of evaluations, not counted above: {number(evaluation)} hours"] * (evaluation > 0)
        if damaged := len({name for name, _ in self.read_errors}):
            remarks.append(f"not read, in part or at all: {counted(damaged, 'job')}")
        money = " ".join(["", *self._money])
        return View(
            jobs,
            f"{jobs}, {number(self.hours)} accelerator hours: {number(self.lost_hours)} hours{shown} lost to "
            f"input{cost}",
            share >= _BAD_SHARE,
            parts=[
                Part("Lost by cause", self.causes, _CAUSES + money),
                Part("Jobs that lose most", self.jobs, _JOBS + money, self._worst()),
            ],
            remarks=[*remarks, *self._not_read(), *(f"note: {note}" for note in self.notes)],
        )

    def _worst(self) -> list[str]:
        lines = []
        for row in self._rows[:WORST]:
            money = f", costs {number(row['lost_money'])}" if self._money else ""
            operator = f" at {row['operator']}" if row["operator"] else ""
            lines.append(
                f"{row['job']}: {number(row['lost_hours'])} of {number(row['hours'])} hours "
                f"({row['lost_share']:.0%}){money}, {counted(row['ranks'], 'rank')}, "
                f"{row['cause']}{operator}: {row['change']}"
            )
        return lines

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"<headrace.Fleet: {len(self):,} jobs, {self.lost_hours:.4g} of {self.hours:.4g} hours lost>"


def _row(summary: Mapping[str, Any], price: float | None) -> dict[str, Any]:
    """A row of the table of jobs."""

    def hours(name: str) -> float:
        return float(summary["ranks"] * summary[name] / _HOUR_S)

    more = {"job": summary["name"], "hours": hours("wall_s"), "evaluation_hours": hours("evaluation_wait_s")}
    return {**summary, **more, **_lost(hours("wait_s"), more["hours"], price)}


def _lost(hours: float, of: float, price: float | None) -> dict[str, Any]:
    share = hours / of if of > 0 else 0.0
    return {"lost_hours": hours, "lost_share": share, "lost_money": 0.0 if price is None else price * hours}
