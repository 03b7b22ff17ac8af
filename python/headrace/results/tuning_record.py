"""The result of a search for parameters as plain data: a JSON document, its headline and its page."""

from __future__ import annotations

import json
import math
import os
from typing import Any

from headrace.common.folder_files import read_file
from headrace.errors import FormatError
from headrace.pages import plots, render
from headrace.traces.table_text import seconds

#: A search of a day has a tenth of it.
_MAX_BYTES = 64 << 20
#: How each document begins, so that a file can be recognised by its first bytes.
BEGINS = '{"tuning": '
_TITLES = ["change", "#predicted step", "#low", "#high", "#measured step", "#standard error"]
#: Points of a search whose start allowed no prediction: parameter, its value, points.
NO_CURVE: tuple[str, int, list[tuple[int, float, float, float, str]]] = ("", 0, [])
_NUMBERS = ("predicted_step_s", "low_s", "high_s", "measured_step_s", "error_s")


class TuningRecord:
    """``Tuned`` without its reports. Immutable."""

    def __init__(self, found: dict[str, Any]) -> None:
        """found: ``{"of", "changed", "start_step_s", "best_step_s", "took_s", "trials", "notes"}``, and
        ``{"curve", "measured"}`` of the parameter whose steps were predicted from the start; older files have
        no such picture.
        """
        self.found = found

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> TuningRecord:
        """Raises FormatError for a file that `Tuned.save` has not written."""
        try:
            record = cls(json.loads(read_file(path, _MAX_BYTES))["tuning"])
            record._content()  # whatever is missing is found here
        except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError):
            raise FormatError(os.fspath(path), 0, "a file of `headrace tune -o`") from None
        return record

    def to_json(self) -> str:
        """An unknown figure is null."""
        return json.dumps({"tuning": _without_nan(self.found)})

    @property
    def headline(self) -> str:
        start_s, best_s = self.found["start_step_s"], self.found["best_step_s"]
        if not self.found["changed"]:
            return f"TUNED   nothing to change: {seconds(start_s)} a step"
        gain = f"{seconds(start_s)} -> {seconds(best_s)} a step ({start_s / best_s:.2f}x)"
        return f"TUNED   {gain} with {assignments(self.found['changed'])}"

    @property
    def about(self) -> str:
        of = f"{self.found['of']}: " if self.found["of"] else ""
        count = len(self.found["trials"])
        return f"{of}{count} trial{'s' if count != 1 else ''} in {self.found['took_s']:.0f} s"

    def html(self, whole_page: bool) -> str:
        """One page, or one ``<div>``."""
        return render("tuning", whole_page, **self._content())

    def _content(self) -> dict[str, Any]:
        """The document of the page."""
        trials = self.found["trials"]
        points = [
            plots.Point(str(trial["parameter"]), *(_number(trial[name]) for name in _NUMBERS))
            for trial in trials
        ]
        return {
            "headline": self.headline,
            "about": self.about,
            "plot": plots.Curve(self.found.get("curve") or NO_CURVE, None, self.found.get("measured") or []),
            "square": plots.Square(points),
            "titles": _TITLES,
            "rows": [(point.label, *map(_cell, point[1:])) for point in points],
            "remarks": [str(note) for note in self.found["notes"]],
        }


def assignments(settings: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in settings.items())


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _cell(value: float) -> str:
    return "-" if math.isnan(value) else seconds(value)


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nan(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_without_nan(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
