"""`compare`: two runs side by side."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from headrace import _core
from headrace.common.page import HasPage
from headrace.common.plain import plain
from headrace.errors import UsageError
from headrace.results.report import Report

Side = Report | str | os.PathLike[str]


def check_slowdown(name: str, share: float) -> None:
    """Raises UsageError for what is no share that a step may take longer: a ratio, for example."""
    if not 0 <= share < 1:
        hint = (
            f"; a step that takes {share:g} times as long is {share - 1:g} longer" if 1 <= share < 100 else ""
        )
        raise UsageError(f"{name} is a share from 0 to 1, such as 0.05 for 5 % longer, not {share:g}{hint}")


@dataclass(frozen=True)
class ComparedFigure:
    """One figure of both sides, of several runs their mean."""

    a: float
    b: float
    #: b / a; equal runs lie between ``low`` and ``high`` in 99 of 100 pairs.
    ratio: float
    low: float
    #: None: too little was recorded to tell.
    high: float | None
    #: The interval leaves 1 out, and the difference is 2 % or more.
    changed: bool


@dataclass(frozen=True)
class Change:
    """Something that is not the same on both sides."""

    #: "setting", "operator" (its demand, seconds a batch / workers), "new operator" or "gone operator".
    what: str
    name: str
    a: Any
    b: Any


class Comparison(HasPage):
    """Two runs, or two sets of runs. ``print(comparison)`` is the text. Immutable."""

    def __init__(self, a: Sequence[Report], b: Sequence[Report], names: tuple[str, str] = ("A", "B")) -> None:
        """names: what text and page call the two sides."""
        self._compared = _core.ComparedReports(
            [each._parsed for each in a], [each._parsed for each in b], *map(plain, names)
        )

    @cached_property
    def _document(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self._compared.json(-1))
        return document

    @property
    def step(self) -> ComparedFigure:
        """Seconds a step."""
        return ComparedFigure(**self._document["step"])

    @property
    def wait(self) -> ComparedFigure:
        """Seconds of a step in GetNext."""
        return ComparedFigure(**self._document["wait"])

    @property
    def compute(self) -> ComparedFigure:
        """Seconds of a step in the training step."""
        return ComparedFigure(**self._document["compute"])

    @property
    def operators(self) -> dict[str, ComparedFigure]:
        """The demand of each operator that both sides timed, the largest difference first."""
        return {
            each["name"]: ComparedFigure(**each["demand"])
            for each in self._document["operators"]
            if each["demand"]
        }

    @property
    def changes(self) -> list[Change]:
        """Settings that differ, then operators that are new, gone, slower or faster."""
        found = [Change("setting", each["name"], each["a"], each["b"]) for each in self._document["settings"]]
        for each in self._document["operators"]:
            demand = each["demand"]
            if each["in_a"] != each["in_b"]:
                found.append(
                    Change("new operator" if each["in_b"] else "gone operator", each["name"], None, None)
                )
            elif demand and demand["changed"]:
                found.append(Change("operator", each["name"], demand["a"], demand["b"]))
        return found

    @property
    def reason(self) -> str:
        """Why the steps cannot be compared; empty if they can."""
        return str(self._document["reason"])

    @property
    def notes(self) -> list[str]:
        """Explanations of a difference beside the change itself, such as other processes on the machine."""
        return [str(note) for note in self._document["notes"]]

    @property
    def headline(self) -> str:
        """The first line of the text."""
        return self._compared.headline()

    def to_text(self, width: int = 100, color: bool = False) -> str:
        """The comparison for people, no line wider than ``width`` columns (at least 40)."""
        return self._compared.text(int(width), bool(color))

    def _page(self) -> str:
        return self._html()

    def _html(self, whole_page: bool = True) -> str:
        from headrace.pages import render

        return render("comparison", whole_page, page=json.loads(self._compared.page()))

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data."""
        document: dict[str, Any] = json.loads(self.to_json())
        return document

    def to_json(self, indent: int | None = 2) -> str:
        """All of it in JSON; an interval without an end has null there."""
        return self._compared.json(-1 if indent is None else indent)

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return f"<headrace.Comparison: {self.headline}>"


def compare(a: Side | Sequence[Side], b: Side | Sequence[Side]) -> Comparison:
    """The differences of ``b``, and their effect on the step.

    a, b: a `Report`, what `Report.load` reads, or a list of these: runs of the same program, of which the
    mean is compared and whose differences widen the interval. Raises UsageError for an empty list, and what
    `Report.load` raises.
    """
    first = _reports(a)
    return Comparison(first, _reports(b, first[0]), side_names(a, b))


def counterpart(loader: str, its: Sequence[str], names: Sequence[str]) -> str | None:
    """The one of a run's loaders ``names`` that is ``loader`` of another run, which has ``its`` loaders.

    `headrace run` names a loader by its dataset's class, the file and the line, and lines move: alike are
    loaders of one class in one file, else of one class, in the order of their lines. Where both runs have
    one loader, these are compared. None: there is none like it.
    """
    for like in (_without_line, _without_place):
        here, there = (
            sorted((one for one in side if like(one) == like(loader)), key=_line) for side in (its, names)
        )
        if loader in here and here.index(loader) < len(there):
            return there[here.index(loader)]
    return names[0] if len(its) == len(names) == 1 else None


def _without_line(loader: str) -> str:
    name, colon, line = loader.rpartition(":")
    return name if colon and line.isdigit() else loader


def _without_place(loader: str) -> str:
    return _without_line(loader).rpartition(" at ")[0] or loader


def _line(loader: str) -> int:
    line = loader.rpartition(":")[2]
    return int(line) if line.isdigit() else 0


def like_it(first: Report, load: Callable[[str | None], Report]) -> Report:
    """The report of another run on the loader that is the first one's; ``load`` loads a loader by its name.

    Raises UsageError where that run has none like it.
    """
    second = load(None)
    name = counterpart(first.loader, first.loaders, second.loaders)
    if name is None:
        there = ", ".join(second.loaders)
        raise UsageError(f"the other run has no loader like {first.loader}: name one of its own ({there})")
    return second if name == second.loader else load(name)


def side_names(a: Side | Sequence[Side], b: Side | Sequence[Side]) -> tuple[str, str]:
    """The last parts of two paths; "A" and "B" where there are none, or they are the same."""
    if not isinstance(a, (str, os.PathLike)) or not isinstance(b, (str, os.PathLike)):
        return "A", "B"
    first, second = (os.path.basename(os.path.abspath(os.fspath(path))) for path in (a, b))  # noqa: PTH100, PTH119
    return (first, second) if first and second and first != second else ("A", "B")


def _reports(side: Side | Sequence[Side], like: Report | None = None) -> list[Report]:
    """A run that is loaded here gives its loader like the one of ``like``, else the first one."""
    sides: Sequence[Side] = [side] if isinstance(side, (Report, str, os.PathLike)) else side
    if not sides:
        raise UsageError("a comparison needs at least one run on each side")
    reports: list[Report] = []
    for each in sides:
        if isinstance(each, Report):
            reports.append(each)
        elif like is None:
            reports.append(Report.load(each))
        else:
            reports.append(like_it(like, partial(loaded, each, None)))
    return reports


def loaded(path: str | os.PathLike[str], rank: int | None, loader: str | None) -> Report:
    """`Report.load` with the loader last, for `like_it`."""
    return Report.load(path, loader=loader, rank=rank)
