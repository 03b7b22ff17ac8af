"""A row of statistics for each batch that is looked at; the samples of an epoch, and of the first one.

Samples are told apart by dataset index, or by content.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

from headrace import _core
from headrace.common.handlers import let_through
from headrace.common.messages import warn_once
from headrace.watch import language
from headrace.watch.datasets import base_of, remove_when_gone
from headrace.watch.fields import Array, array_of

_FLOATS = frozenset(("float16", "bfloat16", "float32", "float64"))
_INTEGERS = frozenset(("uint8", "int8", "int16", "int32", "int64"))
#: Values of a field that are kept one by one: classes, and numbers of a row that tell a mask.
_MAX_VALUES = 4096
#: Shorter rows (16 floats) may be equal by chance: `healthy_fields` has masks and flags.
_ROW = 16
#: Samples that an epoch or a loop keeps, 100 bytes each: 64 MB at most for `batches.MAX_LOOPS` loops.
_MAX_SAMPLES = 1 << 14
#: Samples that are written for the comparison of ranks.
_MAX_WRITTEN = 4096
#: A smaller share comes by chance: samples that fill up a batch, or look alike.
CHANCE = 0.01


class Moments(NamedTuple):
    """Moments of the finite numbers."""

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
    """Statistics of one array of a batch."""

    def __init__(self, where: str, array: Array, are_samples: bool = True, *, hashed: bool = False) -> None:
        """hashed: samples are told apart by this field."""
        self.where, self.dtype, self.shape = where, array.dtype, array.shape
        self.are_samples = are_samples
        self.rows, self.row_size = array.shape[0], array.row_size
        self.is_float = array.dtype in _FLOATS
        #: Images, recordings, features: neither classes nor masks of a few values.
        self.is_data = are_samples and self.row_size >= _ROW and (self.is_float or array.dtype == "uint8")
        self.is_image = self.is_data and len(self.shape) in (3, 4)
        self.all = Moments(0, 0, 0, 0, 0, 0)
        #: More than one only of images with few channels in front: N, C, H, W.
        self.channels: list[Moments] = []
        #: The largest magnitude of each row.
        self.peaks: list[float] = []
        self.nonfinite_rows: list[int] = []
        self.constant_rows: list[int] = []
        #: Numbers of a field with one integer a sample; None for any other.
        self.values: list[int] | None = None
        if self.is_float or self.is_data or hashed:
            self._read_statistics(array)
        if not self.is_float and are_samples and self.row_size == 1 and 0 < self.rows <= _MAX_VALUES:
            self.values = array.kept.reshape(-1).tolist()
        #: Rows have few different values, as masks and flags do.
        self.has_few_values = bool(self.constant_rows) and self._has_few_values(array)
        #: A number for each row that is long enough; rows of one value all over are left out.
        self.hashes = self._hashes(array) if hashed else []

    @property
    def is_mask(self) -> bool:
        """An additive mask: 0 and minus infinity."""
        return self.all.min == self.all.max == 0

    def _read_statistics(self, array: Array) -> None:
        parts = self.shape[1] if len(self.shape) == 4 and self.shape[1] <= 4 else 1
        found = _core.array_statistics(array.address, self.dtype, self.rows, parts, self.row_size // parts)
        self.all, self.channels = Moments(*found[0]), [Moments(*one) for one in found[1]]
        self.peaks, self.nonfinite_rows, self.constant_rows = found[2], found[3], found[4]

    def _has_few_values(self, array: Array) -> bool:
        constant = set(self.constant_rows)
        other = next((row for row in range(self.rows) if row not in constant), None)
        return other is None or len(set(array.kept[other].reshape(-1)[:_MAX_VALUES].tolist())) <= _ROW

    def _hashes(self, array: Array) -> list[int]:
        row_bytes = int(array.kept.nbytes) // self.rows
        if row_bytes < 4 * _ROW:
            return []
        constant = set(self.constant_rows)
        hashes = _core.row_hashes(array.address, self.rows, row_bytes, 0)
        return [one for row, one in enumerate(hashes) if row not in constant]


class Row:
    """One batch that was looked at. The batch itself is not kept."""

    def __init__(
        self,
        fields: list[tuple[str, Any]],
        step: int,
        worker: int,
        indices: list[Any] | None,
        file_of: Callable[[int], str],
        *,
        hashed: bool,
    ) -> None:
        """fields: of `fields.fields_of`. hashed: keep a hash of each sample."""
        self.step, self.worker, self._file_of = step, worker, file_of
        arrays = _arrays_in(fields)
        self.size = rows = len(indices) if indices else (arrays[0][1].shape[0] if arrays else 0)
        first = next((at for at, (_, one) in enumerate(arrays) if one.shape[0] == rows), -1)
        #: Rows are the batch's samples, or something else: the nodes of graphs, time in front.
        self.fields = [
            Field(where, one, one.shape[0] == rows, hashed=hashed and at == first)
            for at, (where, one) in enumerate(arrays)
        ]
        #: Dataset index of each row; None: not known.
        self.indices = indices if first >= 0 else None
        self.hashes = self.fields[first].hashes if first >= 0 else []
        #: Rows and lengths of token ids; None: the batch holds no language data, or lies on a device.
        self.tokens = language.tokens_of(fields)

    def sample(self, row: int) -> str:
        """ "row 14: dataset index 137 (img_0137.png), read by worker 2"; what is not known is left out."""
        says = f"row {row}"
        if self.indices is not None:
            index = self.indices[row]
            file = self._file_of(index) if isinstance(index, int) else ""
            says += f": dataset index {index}" + (f" ({file})" if file else "")
        return says + (f", read by worker {self.worker}" if self.worker >= 0 else "")

    def indices_of(self, rows: list[int]) -> list[int]:
        """Dataset indices of some rows, as far as they are known and numbers."""
        known = self.indices or []
        return [known[row] for row in rows if row < len(known) and isinstance(known[row], int)]


def _arrays_in(fields: list[tuple[str, Any]]) -> list[tuple[str, Array]]:
    found = []
    for where, value in fields:
        try:
            array = array_of(value)
        except Exception as error:  # of an array class that is not as it seems
            let_through(error)
            warn_once(f"{where} is not looked at: {type(error).__name__}")
            continue
        if array is not None and array.shape and (array.dtype in _FLOATS or array.dtype in _INTEGERS):
            found.append((where, array))
    return found


class Epoch:
    """The samples of an epoch."""

    def __init__(self, number: int, step: int) -> None:
        self.number, self.step = number, step
        self.samples: list[Any] = []
        #: Step and worker of each sample.
        self.origins: list[tuple[int, int]] = []
        self.by_index = True
        #: Batches, and samples, from the begin of the epoch without a gap.
        self.batches = self.leading = 0

    def take(self, step: int, samples: list[Any], worker: int, *, by_index: bool) -> None:
        if len(self.samples) >= _MAX_SAMPLES:
            return
        self.by_index = by_index
        if step == self.step + self.batches:
            self.batches += 1
            self.leading += len(samples)
        self.samples += samples
        self.origins += [(step, worker)] * len(samples)


class LoopSamples:
    """The samples of a loop's first epoch."""

    def __init__(self) -> None:
        #: By identity of a dataset, as long as it is alive: the indices.
        self._indices: dict[int, tuple[weakref.ref[Any], set[Any]]] = {}
        self._contents: set[int] = set()
        self._drawn = 0

    @property
    def wants_contents(self) -> bool:
        return len(self._contents) < _MAX_SAMPLES

    def draw(self, dataset: Any, indices: list[Any]) -> list[int]:
        """Returns the indices to write for other ranks."""
        if dataset is None or self._drawn >= _MAX_SAMPLES:
            return []
        self._drawn += len(indices)
        base, own = base_of(dataset, indices)
        # The end of a list cannot be observed, so contents are compared.
        if type(base).__weakrefoffset__:
            known = self._indices.setdefault(id(base), (remove_when_gone(base, self._indices), set()))[1]
            known.update(one for one in own if type(one) in (int, str))
        return [one for one in own if type(one) is int] if self._drawn <= _MAX_WRITTEN else []

    def add_contents(self, hashes: list[int], *, by_index: bool) -> list[int]:
        """Returns what to write for other ranks, where no index is known: numbers below 0."""
        self._contents.update(hashes)
        is_written = not by_index and len(self._contents) <= _MAX_WRITTEN
        return [-1 - one for one in hashes] if is_written else []

    def shared_with(self, other: LoopSamples) -> tuple[int, int, list[int]]:
        """How many samples, of how many; 0: none, or as few as come by chance. Their indices, where known."""
        same: set[Any] = set()
        for base, (_, indices) in self._indices.items():
            same |= indices & other._indices.get(base, (None, set()))[1]
        of = sum(len(indices) for _, indices in other._indices.values())
        if len(same) >= max(3, CHANCE * of):
            return len(same), of, sorted(one for one in same if isinstance(one, int))
        count, of = len(self._contents & other._contents), len(other._contents)
        return (count if count >= max(3, CHANCE * of) else 0), of, []
