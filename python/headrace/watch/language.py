"""The tokens of language data: what is in a batch, from some of them (docs/watch.md).

Looked into are batches that lie in this process' memory: nothing waits for a device, and nothing of the
program's runs. Which ones depends on the number of the batch alone, so the ranks of a run look into the same.
"""

from __future__ import annotations

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

#: A tokenizer's names of token ids, which need nothing beside them, and others, which need a mask or lengths.
_TOKENIZERS = ("input_ids", "decoder_input_ids")
_OTHERS = ("token_ids", "tokens", "text_ids", "text", "ids", "source", "src")
_MASKS = ("attention_mask", "decoder_attention_mask", "src_mask", "input_mask")
_POSITIONS = ("position_ids", "positions")
_LENGTHS = ("cu_seqlens", "cu_seq_lens_q", "cu_seq_lens", "seq_lens", "seqlens")
#: Larger batches are left alone: a look may take 100 us.
_MOST_PLACES = 1 << 23
#: Batches without tokens until a loader has none.
_MAX_TRIES = 8
_MOST_LENGTHS = 2048
_MOST_STEPS = 512
_MAX_WIDTHS = 64
_SAVED_EVERY_S = 2.0


class Batch(NamedTuple):
    """The tokens of a batch."""

    #: The field of the token ids, as the program writes it.
    where: str
    rows: int
    width: int
    #: Tokens of each sequence.
    lengths: list[int]


class _Loader:
    """The tokens of one loader so far."""

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

    def look(self, batch: Any) -> bool:
        """Whether there are tokens in it."""
        self._tries += 1
        found = tokens_of(fields_of(batch)) if self.batches or self._tries <= _MAX_TRIES else None
        if found is None:
            return False
        tokens = sum(found.lengths)
        self.batches += 1
        self.rows += found.rows
        self.places += found.rows * found.width
        self.tokens += tokens
        self.longest = max(self.longest, *found.lengths, 0)
        if len(self.widths) < _MAX_WIDTHS:
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


def tokens_of(found: list[tuple[str, Any]]) -> Batch | None:
    """Rows and lengths of a batch of token ids; None: there are none, or they are not in this memory.

    found: of `fields_of`. Fields are known by name. Of numbers alone nothing is concluded: counts, classes
    and edges look alike.
    """
    fields = {_key(where): (where, value) for where, value in found}
    arrays = {name: array for name, (_, value) in fields.items() if (array := _numbers(value)) is not None}
    for name in (*_TOKENIZERS, *_OTHERS):
        ids = arrays.get(name)
        if ids is None or ids.ndim not in (1, 2) or not 0 < ids.size <= _MOST_PLACES:
            continue
        rows, width = ids.shape if ids.ndim == 2 else (1, ids.size)
        lengths = _given_lengths(arrays, ids.size)
        if ids.ndim == 2 and lengths is None:
            lengths = _packed(arrays, ids) or _unmasked(arrays, ids)
            if lengths is None and name in _TOKENIZERS:
                lengths = [width] * rows  # a model computes each place that no mask hides
        if lengths is not None:
            return Batch(fields[name][0], rows, width, lengths)
    return None


def _key(field: str) -> str:
    """input_ids of ``batch['input_ids']`` and of ``batch.input_ids``."""
    return re.split(r"[.\[]", field)[-1].strip("]'")


def _numbers(value: Any) -> Any:
    """Whole numbers as an array of NumPy that shares their memory; None: they are elsewhere, or of another
    kind."""
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if numpy is None:
        return None
    if torch is not None and type(value) is torch.Tensor:
        plain = value.is_cpu and value.layout is torch.strided and not value.is_floating_point()
        value = value.detach().numpy() if plain and not a_mode_is_on() else None
    return value if type(value) is numpy.ndarray and value.dtype.kind in "biu" else None


def _given_lengths(arrays: dict[str, Any], places: int) -> list[int] | None:
    for name in _LENGTHS:
        lengths = arrays.get(name)
        if lengths is None or lengths.ndim != 1 or lengths.size < 1:
            continue
        sums = name.startswith("cu_")
        found: list[int] = (lengths[1:] - lengths[:-1] if sums else lengths).tolist()
        if found and min(found) >= 0 and sum(found) <= places:
            return [one for one in found if one > 0]
    return None


def _packed(arrays: dict[str, Any], ids: Any) -> list[int] | None:
    """From positions that begin anew with each sequence."""
    positions = next((arrays[name] for name in _POSITIONS if name in arrays), None)
    if positions is None or positions.shape != ids.shape:
        return None
    flat = positions.reshape(-1)
    starts = (flat == 0).nonzero()[0].tolist()
    if len(starts) <= ids.shape[0] or starts[0] != 0:
        return None  # one sequence a row: a mask tells more
    ends = [*starts[1:], flat.size]
    # Padding has position 0 again and again.
    return [end - start for start, end in zip(starts, ends, strict=True) if end - start > 1]


def _unmasked(arrays: dict[str, Any], ids: Any) -> list[int] | None:
    masks = (arrays[name] for name in _MASKS if name in arrays and arrays[name].shape == ids.shape)
    mask = next(masks, None)
    return None if mask is None else (mask != 0).sum(axis=1).tolist()


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
        if known is None or not known.look(batch):
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


_languages = _Languages()
os.register_at_fork(after_in_child=_languages.__init__)  # type: ignore[misc]


def look_into(handle: _core.LoaderHandle) -> None:
    """The batches of ``handle``'s loops are looked into, now and then."""
    process_files.before_reading(_languages.save)
    _core.look_into_batches(_languages.took)
    _languages.add(handle)
