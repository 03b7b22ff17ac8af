"""Dumps of tensors that MindSpore and msprobe left: which operator's numbers went wrong first."""

from __future__ import annotations

import csv
import json
import math
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from headrace import _core
from headrace.common.folder_files import read_file
from headrace.common.plain import plain, typed_error_line
from headrace.errors import Error, FormatError
from headrace.traces.table import Table

_MAX_BYTES = 1 << 30
#: More would not fit into a column of the table.
_MAX_COUNT = 1 << 63
_STATISTICS = "statistic.csv"
_MSPROBE = "dump.json"
#: A gradient whose root mean square is less has vanished.
_LEAST_GRADIENT = 1e-9
_NUMBER = re.compile(r"(\d+)")
_OF_GRADIENT = re.compile(r"backward|gradients/|grad", re.IGNORECASE)


class Tensor(NamedTuple):
    """One input or output of an operator; NaN: a figure that the dump does not have."""

    step: int
    rank: int
    #: The operator's number in its step, as it ran.
    order: int
    name: str
    is_output: bool
    slot: str
    max: float
    min: float
    mean: float
    norm: float
    elements: int
    #: Numbers that are NaN or infinite; -1: not counted.
    nonfinite: int

    def checked(self) -> Tensor:
        """Itself, with names that can be printed. Raises ValueError for numbers that no program counts to."""
        if not all(0 <= one < _MAX_COUNT for one in (self.step, self.rank, self.elements)):
            raise ValueError(f"step {self.step}, rank {self.rank}, {self.elements} elements")
        return self._replace(name=plain(self.name), slot=plain(self.slot))

    @property
    def is_finite(self) -> bool:
        if self.nonfinite >= 0:
            return self.nonfinite == 0
        return (
            not any(math.isinf(one) for one in (self.max, self.min, self.mean, self.norm))
            and not self._is_nan
        )

    @property
    def _is_nan(self) -> bool:
        """A dump that has its figures writes NaN where the tensor has one."""
        return self.elements > 0 and math.isnan(self.max) and math.isnan(self.min)

    @property
    def is_gradient(self) -> bool:
        return _OF_GRADIENT.search(self.name) is not None

    @property
    def root_mean_square(self) -> float:
        return self.norm / math.sqrt(self.elements) if self.elements > 0 else math.nan


def is_dump(path: str | os.PathLike[str]) -> bool:
    """Whether a folder has files of a dump, a few levels deep."""
    return next(_files(Path(path)), None) is not None


def check_dump(path: str | os.PathLike[str], *, largest: float = math.inf) -> Table:
    """Findings in the tensors of a dump, in the order in which the operators ran.

    path: a folder of MindSpore's dump (with ``statistic.csv``) or of msprobe (with ``dump.json``), of one
    step or of many. largest: magnitudes from it on are named, too.

    Columns: step, rank, order, operator, tensor (``output 0``), kind, says. Kinds: ``nonfinite_module`` and
    ``nonfinite_gradient`` (an output that is not finite), ``gradient_vanishing`` (root mean square below
    1e-9), ``explosion`` (from ``largest`` on). The first row of a step whose operator had finite inputs is
    where it began, and says so. Raises Error where there is no dump, FormatError for a damaged one.
    """
    files = list(_files(Path(path)))
    if not files:
        raise Error(f"{path}: no dump: expected {_STATISTICS} (MindSpore) or {_MSPROBE} (msprobe) in it")
    rows = [row for file in files for row in _rows_of(file, largest)]
    rows.sort(key=lambda row: row[:3])
    names = ("step", "rank", "order", "operator", "tensor", "kind", "says")
    columns = [(name, [row[k] for row in rows]) for k, name in enumerate(names)]
    return Table(_core.Columns.of(columns, [] if rows else ["nothing is wrong with the dumped tensors"]))


def _files(root: Path) -> Iterator[Path]:
    for folder, below, names in os.walk(root):
        if len(Path(folder).relative_to(root).parts) > 6:
            below.clear()
        below.sort()
        for name in (_STATISTICS, _MSPROBE):
            if name in names:
                yield Path(folder) / name


def _rows_of(file: Path, largest: float) -> list[tuple[Any, ...]]:
    try:
        text = read_file(file, _MAX_BYTES).decode()
        tensors = (_of_statistics if file.name == _STATISTICS else _of_msprobe)(file, text)
        return list(_wrong([one.checked() for one in tensors], largest))
    except (
        ValueError,
        TypeError,
        AttributeError,
        LookupError,
        ArithmeticError,
        RecursionError,
        csv.Error,
    ) as error:
        raise FormatError(str(file), 0, f"a dump's {file.name} ({typed_error_line(error)})"[:200]) from None


def _wrong(tensors: list[Tensor], largest: float) -> Iterator[tuple[Any, ...]]:
    """Rows of one file."""
    began = False
    clean_inputs: dict[int, bool] = {}
    for one in tensors:
        if not one.is_output:
            clean_inputs[one.order] = clean_inputs.get(one.order, True) and one.is_finite
    for one in tensors:
        if not one.is_output:
            continue
        kind, says = _judged(one, largest)
        if not kind:
            continue
        if kind.startswith("nonfinite") and not began and clean_inputs.get(one.order, True):
            began = True
            says += "; its inputs are finite: it begins here"
        yield one.step, one.rank, one.order, one.name, f"output {one.slot}", kind, says


def _judged(one: Tensor, largest: float) -> tuple[str, str]:
    if not one.is_finite:
        counted = f" ({one.nonfinite} of {one.elements})" if one.nonfinite > 0 else ""
        return "nonfinite_gradient" if one.is_gradient else "nonfinite_module", f"not finite{counted}"
    peak = max(abs(one.max), abs(one.min))
    if peak >= largest:
        return "explosion", f"reaches {peak:.3g}"
    if one.is_gradient and one.root_mean_square < _LEAST_GRADIENT:
        return "gradient_vanishing", f"root mean square {one.root_mean_square:.2g}"
    return "", ""


def _number_in(file: Path, word: str, or_else: int) -> int:
    """The number of ``rank_3`` or ``step12`` in the path."""
    for part in reversed(file.parts):
        found = _NUMBER.search(part)
        if part.startswith(word) and found:
            return int(found[1])
    return or_else


# --- MindSpore: a line a tensor ---


def _of_statistics(file: Path, text: str) -> Iterator[Tensor]:
    # rank_0/<net>/<graph>/<iteration>/statistic.csv
    above = file.parent.name
    step, rank = int(above) if above.isdecimal() else 0, _number_in(file, "rank", 0)
    orders: dict[tuple[str, str], int] = {}
    lines = sorted(csv.DictReader(text.splitlines()), key=lambda one: float(one["Timestamp"] or 0))
    for line in lines:
        operator = line["Op Name"], line["Task ID"]
        counts = [line.get(f"{name} Count") for name in ("NaN", "Negative Inf", "Positive Inf")]
        known = [int(float(one)) for one in counts if one not in (None, "")]
        shape = [int(one) for one in _NUMBER.findall(line["Shape"])]
        yield Tensor(
            step,
            rank,
            orders.setdefault(operator, len(orders)),
            line["Op Name"],
            line["IO"].strip().lower() == "output",
            line["Slot"],
            _number(line.get("Max Value")),
            _number(line.get("Min Value")),
            _number(line.get("Avg Value")),
            _number(line.get("L2Norm Value")),
            math.prod(shape),
            sum(known) if known else -1,
        )


# --- msprobe: an entry an operator ---


def _of_msprobe(file: Path, text: str) -> Iterator[Tensor]:
    # step0/rank0/dump.json
    step, rank = _number_in(file, "step", 0), _number_in(file, "rank", 0)
    for order, (name, parts) in enumerate(json.loads(text)["data"].items()):
        for part, tensors in parts.items():
            if part not in ("input_args", "input_kwargs", "input", "output", "grad", "parameters"):
                continue
            for slot, tensor in _inside(tensors, ""):
                is_output = part == "output" or part == "grad"
                most, least, mean, norm = (_number(tensor.get(key)) for key in ("Max", "Min", "Mean", "Norm"))
                shape = [int(one) for one in tensor["shape"]] if tensor["Max"] is not None else [0]
                yield Tensor(
                    step,
                    rank,
                    order,
                    name,
                    is_output,
                    slot or "0",
                    most,
                    least,
                    mean,
                    norm,
                    math.prod(shape),
                    -1,
                )


def _inside(value: Any, slot: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Tensors in lists and dicts of them, with where they stand."""
    if isinstance(value, dict) and "shape" in value and "Max" in value:
        yield slot, value
    elif isinstance(value, (list, dict)):
        entries = value.items() if isinstance(value, dict) else enumerate(value)
        for key, one in entries:
            yield from _inside(one, f"{slot}.{key}" if slot else str(key))


def _number(value: Any) -> float:
    """A figure; texts like "nan" and "-inf", too."""
    return math.nan if value in (None, "") else float(value)
