"""Many jobs beside each other: the accelerator hours that each loses to its input, why, and what to change.

    fleet = hr.Fleet.load("runs")               # the folder with the run folders of all jobs, or a URL
    print(fleet)                                # hours lost, by cause, and the ten jobs that lose most
    fleet.jobs.to_pandas()

Each job is reduced to a summary of about 1 kB where the executor runs. How to read it: docs/fleet.md.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from functools import cached_property
from itertools import islice
from typing import Any

from headrace import _core
from headrace.cluster._files import find_jobs
from headrace.cluster._reading import read_all
from headrace.cluster._view import WORST, Compared, Part, View, number
from headrace.errors import Error, UsageError
from headrace.traces.table import Table
from headrace.traces.table_text import counted

_HOUR_S = 3600
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
        self._summaries = sorted(summaries, key=lambda one: (-_lost_hours(one), one["name"]))
        #: Jobs, or files of their ranks, that could not be read, and why.
        self.read_errors: list[tuple[str, str]] = [*read_errors]
        self.read_errors += [(one["name"], str(why)) for one in self._summaries for why in one["unread"]]
        #: What a reader has to know, a sentence each.
        self.notes: list[str] = list(notes)
        #: Of one accelerator; None: unknown.
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
        return math.fsum(map(_hours, self._summaries))

    @property
    def lost_hours(self) -> float:
        """Accelerator hours lost to input: ranks times the waits of the rank that waited most."""
        return math.fsum(map(_lost_hours, self._summaries))

    @cached_property
    def jobs(self) -> Table:
        """One row a job, the one that loses most first.

        ``hours``: accelerator hours; ``lost_hours``: of these, lost to waits of the training for its input;
        ``lost_share``: their ratio; ``evaluation_hours``: lost to waits of evaluations, not in
        ``lost_hours``. ``rank``: the one that waited most; ``loader``, ``cause``, ``operator`` and ``change``
        are of the loader it waited most for. ``steps``: of the rank with most. ``lost_money``: with a price.
        """
        every = self._summaries
        columns: list[Any] = [
            ("job", [one["name"] for one in every]),
            ("ranks", [one["ranks"] for one in every]),
            ("steps", [one["steps"] for one in every]),
            ("wall_s", [float(one["wall_s"]) for one in every]),
            ("hours", [_hours(one) for one in every]),
            ("lost_hours", [_lost_hours(one) for one in every]),
            ("lost_share", [_ratio(_lost_hours(one), _hours(one)) for one in every]),
            ("evaluation_hours", [one["ranks"] * one["evaluation_wait_s"] / _HOUR_S for one in every]),
            ("rank", [one["rank"] for one in every]),
        ]
        columns += [
            (name, [one[name] for one in every]) for name in ("loader", "cause", "operator", "change")
        ]
        columns += self._money([_lost_hours(one) for one in every])
        return Table(_core.Columns.of(columns, self.notes))

    @cached_property
    def causes(self) -> Table:
        """One row a cause, the one that costs most first; ``lost_share``: of all lost hours."""
        jobs: dict[str, list[float]] = {}
        for one in self._summaries:
            jobs.setdefault(one["cause"], []).append(_lost_hours(one))
        lost = {cause: math.fsum(hours) for cause, hours in jobs.items()}
        order = sorted(lost, key=lambda cause: (-lost[cause], cause))
        columns: list[Any] = [
            ("cause", order),
            ("jobs", [len(jobs[cause]) for cause in order]),
            ("lost_hours", [lost[cause] for cause in order]),
            ("lost_share", [_ratio(lost[cause], self.lost_hours) for cause in order]),
            *self._money([lost[cause] for cause in order]),
        ]
        return Table(_core.Columns.of(columns, []))

    def _money(self, lost_hours: list[float]) -> list[Any]:
        price = self.price_per_hour
        return [] if price is None else [("lost_money", [price * hours for hours in lost_hours])]

    def to_dict(self) -> dict[str, Any]:
        """Everything that the text says, and every job, as plain data."""
        price = self.price_per_hour
        return {
            "version": 1,
            "hours": self.hours,
            "lost_hours": self.lost_hours,
            "price_per_hour": price,
            "lost_money": None if price is None else price * self.lost_hours,
            "causes": json.loads(self.causes.to_json()),
            "jobs": json.loads(self.jobs.to_json()),
            "read_errors": [{"job": name, "says": why} for name, why in self.read_errors],
            "notes": self.notes,
        }

    def _view(self) -> View:
        """Hours lost, by cause, and the jobs that lose most."""
        price = self.price_per_hour
        share = _ratio(self.lost_hours, self.hours)
        shown = f" ({share:.0%})" if self.hours > 0 else ""
        cost = "" if price is None else f", {number(price * self.lost_hours)} at {price:g} an hour"
        jobs = counted(len(self), "job")
        evaluation = math.fsum(self.jobs.to_dict()["evaluation_hours"])
        remarks = [f"waits of evaluations, not counted above: {number(evaluation)} hours"] * (evaluation > 0)
        if damaged := len({name for name, _ in self.read_errors}):
            remarks.append(f"not read, in part or at all: {counted(damaged, 'job')}")
        money = "" if price is None else " lost_money"
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
        for row in islice(self.jobs.rows(), WORST):
            money = f", costs {number(row['lost_money'])}" if "lost_money" in row else ""
            operator = f" at {row['operator']}" if row["operator"] else ""
            lines.append(
                f"{row['job']}: {number(row['lost_hours'])} of {number(row['hours'])} hours "
                f"({row['lost_share']:.0%}){money}, {counted(row['ranks'], 'rank')}, "
                f"{row['cause']}{operator}: {row['change']}"
            )
        return lines

    def __len__(self) -> int:
        return len(self._summaries)

    def __repr__(self) -> str:
        return f"<headrace.Fleet: {len(self):,} jobs, {self.lost_hours:.4g} of {self.hours:.4g} hours lost>"


def _hours(summary: Mapping[str, Any]) -> float:
    return float(summary["ranks"] * summary["wall_s"] / _HOUR_S)


def _lost_hours(summary: Mapping[str, Any]) -> float:
    return float(summary["ranks"] * summary["wait_s"] / _HOUR_S)


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0
