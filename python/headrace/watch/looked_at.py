"""A batch as the checks see it: statistics of its fields, and where it comes from."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

from headrace import _core
from headrace.common.handlers import let_through
from headrace.common.messages import warn_once
from headrace.watch import language
from headrace.watch.fields import Array, array_of, fields_of

_FLOATS = frozenset(("float16", "bfloat16", "float32", "float64"))
_INTEGERS = frozenset(("uint8", "int8", "int16", "int32", "int64"))
#: Classes, lengths and the like are looked at one by one.
_MOST_VALUES = 4096
#: Smaller rows may be equal by chance.
_LEAST_ROW_BYTES = 64


class Moments(NamedTuple):
    """Of the finite numbers."""

    min: float
    max: float
    mean: float
    deviation: float
    finite: int
    nonfinite: int

    @property
    def peak(self) -> float:
        """The largest magnitude."""
        return max(abs(self.min), abs(self.max)) if self.finite else 0.0


class Field:
    """One array of a batch; its rows are samples. What costs time is computed when it is first asked for."""

    def __init__(self, where: str, array: Array) -> None:
        self.where = where
        self.array = array
        self.dtype = array.dtype
        self.shape = array.shape
        self.rows = array.shape[0] if array.shape else 1
        self.row_size = array.row_size if array.shape else 1

    @property
    def is_float(self) -> bool:
        return self.dtype in _FLOATS

    @property
    def is_integer(self) -> bool:
        return self.dtype in _INTEGERS

    @property
    def is_image(self) -> bool:
        """Rows of two dimensions or more, with channels or without."""
        return len(self.shape) in (3, 4) and min(self.shape[-2:]) >= 1 and self.row_size >= 64

    @cached_property
    def _statistics(self) -> Any:
        # Channels of images: N, C, H, W. Those that stand last are not told apart.
        parts = self.shape[1] if len(self.shape) == 4 and self.shape[1] <= 4 else 1
        return _core.array_statistics(
            self.array.address, self.dtype, self.rows, parts, self.row_size // parts
        )

    @property
    def all(self) -> Moments:
        return Moments(*self._statistics[0])

    @property
    def channels(self) -> list[Moments]:
        """More than one only of images with few channels in front."""
        return [Moments(*one) for one in self._statistics[1]]

    @property
    def peaks(self) -> list[float]:
        """The largest magnitude of each row."""
        peaks: list[float] = self._statistics[2]
        return peaks

    @property
    def nonfinite_rows(self) -> list[int]:
        rows: list[int] = self._statistics[3]
        return rows

    @property
    def constant_rows(self) -> list[int]:
        rows: list[int] = self._statistics[4]
        return rows

    @cached_property
    def values(self) -> list[int] | None:
        """The numbers of a field with one integer a sample; None for any other."""
        if not self.is_integer or self.row_size != 1 or not 0 < self.rows <= _MOST_VALUES:
            return None
        values: list[int] = self.array.kept.reshape(-1).tolist()
        return values

    def distinct_in_row(self, row: int, most: int = 4096) -> int:
        """How many different numbers the beginning of a row has."""
        return len(set(self.array.kept[row].reshape(-1)[:most].tolist()))

    @cached_property
    def row_hashes(self) -> list[int]:
        """A number for each row; equal rows have equal ones."""
        return _core.row_hashes(self.array.address, self.rows, self._row_bytes, 0)

    @property
    def told_apart(self) -> list[int] | None:
        """Of the rows that are no other sample's by chance; None: rows are too small for that."""
        if self._row_bytes < _LEAST_ROW_BYTES:
            return None
        constant = set(self.constant_rows)
        return [one for row, one in enumerate(self.row_hashes) if row not in constant]

    @property
    def _row_bytes(self) -> int:
        return int(self.array.kept.nbytes) // self.rows


class Seen:
    """A batch that is looked at."""

    def __init__(
        self,
        batch: Any,
        *,
        step: int,
        epoch: int,
        in_epoch: int,
        indices: list[Any] | None,
        worker: int,
        file_of: Callable[[int], str],
    ) -> None:
        self.step = step
        self.epoch = epoch
        #: Its number in the epoch.
        self.in_epoch = in_epoch
        self.worker = worker
        self._file_of = file_of
        self._batch = batch
        self._indices = indices

    @cached_property
    def fields(self) -> list[Field]:
        """Those whose rows are the batch's samples."""
        made = self._arrays
        if not made:
            return []
        rows = len(self._indices) if self._indices else made[0].rows
        return [one for one in made if one.rows == rows]

    @property
    def others(self) -> list[Field]:
        """Those whose rows are something else: the nodes of graphs, time in front."""
        return [one for one in self._arrays if one not in self.fields]

    @cached_property
    def _arrays(self) -> list[Field]:
        made: list[Field] = []
        for where, value in fields_of(self._batch):
            try:
                array = array_of(value)
            except Exception as error:  # of an array class that is not as it seems
                let_through(error)
                warn_once(f"{where} is not looked at: {type(error).__name__}")
                continue
            if array is not None and array.shape:
                made.append(Field(where, array))
        return [one for one in made if one.is_float or one.is_integer]

    @property
    def rows(self) -> int:
        return self.fields[0].rows if self.fields else 0

    @cached_property
    def tokens(self) -> language.Batch | None:
        """Rows and lengths of token ids. None: the batch holds no language data, or lies on a device."""
        return language.tokens_of(self._batch)

    @property
    def indices(self) -> list[Any] | None:
        """Dataset index of each row; None: not known."""
        known = self._indices
        return known if known is not None and len(known) == self.rows else None

    def sample(self, row: int) -> str:
        """ "row 14: dataset index 137 (img_0137.png), read by worker 2"; what is not known is left out."""
        says = f"row {row}"
        if self.indices is not None:
            index = self.indices[row]
            file = self._file_of(index) if isinstance(index, int) else ""
            says += f": dataset index {index}" + (f" ({file})" if file else "")
        if self.worker >= 0:
            says += f", read by worker {self.worker}"
        return says

    def named(self, kind: str) -> str:
        """How to get the samples of a finding; "" where their indices are not known."""
        return "" if self.indices is None else f" (report.samples({kind!r}))"

    def indices_of(self, rows: list[int]) -> list[int]:
        """Dataset indices of some rows, as far as they are known and numbers."""
        known = self.indices
        return [] if known is None else [known[row] for row in rows if isinstance(known[row], int)]
