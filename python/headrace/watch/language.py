"""The tokens of language data: what is in a batch, from some of them (docs/tokens.md).

Looked into are batches that lie in this process' memory: nothing waits for a device, and nothing of the
program's runs. Which ones depends on the number of the batch alone, so the ranks of a run look into the same.
"""

from __future__ import annotations

import atexit
import os
import random
import re
import sys
import weakref
from typing import Any, NamedTuple

from headrace import _core
from headrace.common.folder_files import replace_file
from headrace.common.loader_names import unnumbered
from headrace.results import process_files
from headrace.watch.fields import a_mode_is_on, fields_of

#: Names of token ids in batches, the surest first, and those of other data, too; of what tells them from
#: padding; of packed ones.
_IDS = ("input_ids", "token_ids", "tokens", "ids", "text_ids", "decoder_input_ids", "text", "source", "src")
_ALSO_OTHERS = {"ids", "source", "src"}
#: Names of counts of words, too.
_ALSO_COUNTS = {"text", "tokens"}
_MASKS = ("attention_mask", "mask", "src_mask", "input_mask")
_POSITIONS = ("position_ids", "positions")
_LENGTHS = ("cu_seqlens", "cu_seq_lens_q", "cu_seq_lens", "seq_lens", "seqlens")
#: Ids without a name of theirs: narrower rows are taken for features.
_LEAST_WIDTH = 8
_LEAST_PADDING = 3
_MOST_OF_A_BYTE = 255
#: Of a row of a mask: padding is at its end, at its beginning, or at both.
_MOST_EDGES = 2
_MOST_PLACES = 1 << 23
#: Batches without tokens until a loader has none.
_TRIES = 8
_MOST_LENGTHS = 2048
_MOST_STEPS = 512
_SAVED_EVERY_S = 2.0


class Batch(NamedTuple):
    """What is in one."""

    rows: int
    width: int
    #: Tokens of each sequence.
    lengths: list[int]


class _Loader:
    """What was seen of one loader."""

    def __init__(self, handle: _core.LoaderHandle) -> None:
        self.name = unnumbered(handle.name)
        self._handle = weakref.ref(handle)
        self._tries = 0
        self._random = random.Random(0)
        self.batches = self.rows = self.places = self.tokens = self.sequences = self.longest = 0
        self.widths: set[int] = set()
        self.lengths: list[int] = []
        #: By number: tokens of the batch.
        self.steps: dict[int, int] = {}

    @property
    def has_none(self) -> bool:
        return not self.batches and self._tries >= _TRIES

    def look(self, batch: Any) -> bool:
        """Whether there are tokens in it."""
        self._tries += 1
        found = tokens_of(batch)
        if found is None:
            return False
        tokens = sum(found.lengths)
        self.batches += 1
        self.rows += found.rows
        self.places += found.rows * found.width
        self.tokens += tokens
        self.longest = max(self.longest, *found.lengths, 0)
        if len(self.widths) < 64:
            self.widths.add(found.width)
        handle = self._handle()
        if handle is not None and len(self.steps) < _MOST_STEPS:
            self.steps[handle.steps] = tokens
        for length in found.lengths:  # a reservoir: each sequence is as likely to be kept
            self.sequences += 1
            if len(self.lengths) < _MOST_LENGTHS:
                self.lengths.append(length)
            elif (at := self._random.randrange(self.sequences)) < _MOST_LENGTHS:
                self.lengths[at] = length
        return True

    def as_json(self) -> dict[str, Any]:
        names = ("name", "batches", "rows", "places", "tokens", "sequences", "longest", "lengths")
        return {name: getattr(self, name) for name in names} | {
            "widths": sorted(self.widths),
            "steps": list(self.steps.items()),
        }


def tokens_of(batch: Any) -> Batch | None:
    """Rows and lengths of a batch of token ids; None: there are none, or they are not in this memory."""
    named = {_key(field): array for field, array in fields_of(batch)}
    for name in _IDS:
        sure = name not in _ALSO_OTHERS
        counts = name in _ALSO_COUNTS
        if name in named and (found := _read(named[name], named, sure=sure, may_count=counts)) is not None:
            return found
    first = next((array for name, array in named.items() if name.isdigit()), None)
    return None if first is None else _read(first, named, sure=False)


def _key(field: str) -> str:
    """input_ids of ``batch['input_ids']`` and of ``batch.input_ids``, 0 of ``batch[0]`` and of ``batch``."""
    last = re.split(r"[.\[]", field)[-1]
    return "0" if field == "batch" else last.strip("]'")


def _read(ids: Any, named: dict[str, Any], *, sure: bool, may_count: bool = False) -> Batch | None:
    """``sure``: rows of ids, padded or not. ``may_count``: or how often each word or class occurs."""
    array = _numbers(ids)
    if array is None or array.dtype.kind not in "iu" or array.size == 0 or array.size > _MOST_PLACES:
        return None
    if array.ndim == 1:
        lengths = _given_lengths(named, array.size) if sure else None
        return None if lengths is None else Batch(1, array.size, lengths)
    if array.ndim != 2 or array.shape[1] < _LEAST_WIDTH:
        return None
    rows, width = array.shape
    lengths = _given_lengths(named, array.size) or _packed(named, array)
    if lengths is None:
        mask = next(
            (found for name in _MASKS if (found := _mask(name, named.get(name), array)) is not None), None
        )
        lengths = _unmasked(array) if mask is None else mask
        if not sure and mask is None and not _looks_like_tokens(array, lengths):
            return None
        if may_count and mask is None and _are_counts(array, lengths):
            return None
    return Batch(rows, width, lengths)


def _looks_like_tokens(ids: Any, lengths: list[int]) -> bool:
    """Not so a table of whole numbers, a series with an end of its own, or the bytes of a picture."""
    rows, width = ids.shape
    padded = [length for length in lengths if length <= width - _LEAST_PADDING]
    if ids.dtype.itemsize < 2 or 2 * len(padded) < rows or int(ids.max()) <= _MOST_OF_A_BYTE:
        return False
    if len(padded) > 1 and len(set(padded)) == 1:
        return False  # sentences differ
    return int(ids.min()) >= 0 and not _are_counts(ids, lengths)


def _are_counts(ids: Any, lengths: list[int]) -> bool:
    """Whether these are counts, not ids. Padding is a value that no row holds, except at its end; most counts
    are 0, and stand anywhere."""
    rows, width = ids.shape
    at = next((at for at, length in enumerate(lengths) if length < width), None)
    if at is None:
        return bool(2 * int((ids == 0).sum()) > ids.size)
    row = ids[at]
    padding = row[-1] if row[-1] == row[-2] else row[0]
    inside = int((ids == padding).sum()) - (ids.size - sum(lengths))
    return bool(inside > rows)


def _numbers(value: Any) -> Any:
    """As an array of NumPy that shares its memory; None: it is elsewhere, or of another kind."""
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if numpy is None:
        return None
    if torch is not None and type(value) is torch.Tensor:
        plain = value.is_cpu and value.layout is torch.strided and not value.is_floating_point()
        return value.detach().numpy() if plain and not a_mode_is_on() else None
    return value if type(value) is numpy.ndarray else None


def _mask(name: str, value: Any, ids: Any) -> list[int] | None:
    mask = None if value is None else _numbers(value)
    if mask is None or mask.shape != ids.shape or mask.dtype.kind not in "biu":
        return None
    kept = mask != 0
    if name == "mask" and ((kept[:, 1:] != kept[:, :-1]).sum(axis=1) > _MOST_EDGES).any():
        return None  # of tokens that are hidden or scored, not of padding
    found: list[int] = kept.sum(axis=1).tolist()
    return found


def _given_lengths(named: dict[str, Any], places: int) -> list[int] | None:
    for name in _LENGTHS:
        lengths = None if name not in named else _numbers(named[name])
        if lengths is None or lengths.ndim != 1 or lengths.dtype.kind not in "iu" or lengths.size < 1:
            continue
        sums = name.startswith("cu_")
        found: list[int] = (lengths[1:] - lengths[:-1] if sums else lengths).tolist()
        if found and min(found) >= 0 and sum(found) <= places:
            return [one for one in found if one > 0]
    return None


def _packed(named: dict[str, Any], ids: Any) -> list[int] | None:
    """From positions that begin anew with each sequence."""
    positions = next((found for name in _POSITIONS if (found := _numbers(named.get(name))) is not None), None)
    if positions is None or positions.shape != ids.shape:
        return None
    flat = positions.reshape(-1)
    starts = (flat == 0).nonzero()[0].tolist()
    if len(starts) <= ids.shape[0] or starts[0] != 0:
        return None  # one sequence a row: a mask tells more
    ends = [*starts[1:], flat.size]
    # Padding has position 0 again and again.
    return [end - start for start, end in zip(starts, ends, strict=True) if end - start > 1]


def _unmasked(ids: Any) -> list[int]:
    """Padding is the run of one value at the end of rows, or at their beginning, that several rows share."""
    rows, width = ids.shape
    for ends in (ids[:, ::-1], ids):
        values = ends[:, 0]
        padded = (ends[:, 0] == ends[:, 1]).nonzero()[0]
        if padded.size == 0:
            continue
        pad = values[padded[0]]
        other = ends != pad
        runs = other.argmax(axis=1)
        runs[~other.any(axis=1)] = width
        if (runs > 1).sum() >= max(1, (rows - 1) // 4):
            found: list[int] = (width - runs).tolist()
            return found
    return [width] * rows


class _Languages:
    """All loaders of this process."""

    def __init__(self) -> None:
        self._loaders: dict[int, tuple[_Loader, str]] = {}
        #: By the file that they are kept in.
        self._kept: dict[str, list[_Loader]] = {}
        self._saved_at = 0.0

    def add(self, handle: _core.LoaderHandle) -> None:
        session = handle.session
        path = process_files.path_of("tokens", session.run, session.rank, os.getpid())
        self._loaders[handle.id] = _Loader(handle), path

    def took(self, loader: int, batch: Any) -> bool:
        known, path = self._loaders.get(loader, (None, ""))
        if known is None or known.has_none or not known.look(batch):
            return False
        kept = self._kept.setdefault(path, [])
        if known not in kept:
            kept.append(known)
        now = _core.now_s()
        if now - self._saved_at >= _SAVED_EVERY_S:
            self._saved_at = now
            self.save()
        return True

    def save(self) -> None:
        if not self._kept:
            return
        import json  # costs more to import than the rest

        for path, loaders in list(self._kept.items()):
            text = json.dumps({"version": 1, "loaders": [one.as_json() for one in loaders]})
            try:
                replace_file(path, text)
            except (OSError, ValueError):  # a full disk, of which the recording tells; no folder any more
                pass

    def forget(self) -> None:
        """A forked child's loaders are its own."""
        self.__init__()  # type: ignore[misc]


_languages = _Languages()
os.register_at_fork(after_in_child=_languages.forget)


def look_into(handle: _core.LoaderHandle) -> None:
    """The batches of ``handle``'s loops are looked into, now and then."""
    if _languages.save not in process_files.before_reading:
        process_files.before_reading.append(_languages.save)
        atexit.register(_languages.save)
        _core.look_into_batches(_languages.took)
    _languages.add(handle)
