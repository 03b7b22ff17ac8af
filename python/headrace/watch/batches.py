"""The batches of watched loops: their rows of statistics, and the judge that applies the rules to them."""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from headrace import _core
from headrace.common.handlers import let_through
from headrace.common.loader_names import unnumbered
from headrace.common.messages import warn_once
from headrace.results.findings import documents_of
from headrace.watch import field_rules, sample_rules  # noqa: F401 - they are in the table once imported
from headrace.watch.datasets import Order, file_of, plain_index, weakly
from headrace.watch.fields import fields_of
from headrace.watch.findings import JUDGED_EVERY_S, findings_of
from headrace.watch.rows import Epoch, Field, LoopSamples, Row
from headrace.watch.rules import RULES, Hit, Rule, rules_for
from headrace.watch.steps import LoopSteps

#: Share of the time that statistics and judging take at most ...
_SHARE = 0.003
#: ... or, in short runs, seconds in all, spent evenly after the first part of them.
_AT_FIRST_S, _IN_ALL_S, _SHARE_AT_FIRST = 0.3, 1.0, 0.1
#: Loops that are watched at a time, the rows that each keeps (first ones, odd ones, last ones), and how many
#: samples the last ones have: 4 MB a loop.
MAX_LOOPS, _MAX_FIRST, _MAX_ODD, _MAX_LAST, _MAX_SAMPLES = 16, 16, 128, 512, 1 << 14


class Taken(NamedTuple):
    """A batch, and where it comes from."""

    #: Batches that this loader's loops took before it, over all epochs.
    step: int
    #: Dataset index of each row; None: not known.
    indices: list[Any] | None
    #: -1: not known.
    worker: int
    #: Names and weak references of the batch's arrays.
    arrays: list[tuple[str, weakref.ref[Any]]]
    #: Gives the dataset of the indices; None: not known, or gone.
    dataset: Callable[[], Any] = lambda: None

    def fields(self) -> list[tuple[str, Any]]:
        """Those that the program still holds."""
        return [(name, array) for name, one in self.arrays if (array := one()) is not None]


class _Last(threading.local):
    taken: Taken | None = None


_last = _Last()
_open: list[WatchedLoop] = []


def last_taken() -> Taken | None:
    """The batch that a watched loop of this thread took last."""
    return _last.taken


class WatchedLoop:
    """The loops over one loader. Used by the thread that takes its batches."""

    #: Epochs whose workers write where their random numbers begin, at most.
    MAX_RANDOM_EPOCHS = 3

    def __init__(self, handle: _core.LoaderHandle, name: str | None = None) -> None:
        """name: of a part of the loader's batches; None: the loader's."""
        self.handle = handle
        self.name = name or handle.name
        #: See `datasets.signature_of`; None: not known.
        self.signature: tuple[Any, ...] | None = None
        #: The sampler that draws the indices; None: not known.
        self.order: Order | None = None
        #: Worker processes; 0: none, or not known.
        self.workers = 0
        #: Random states that workers wrote.
        self.starts: list[dict[str, Any]] = []
        self.samples = LoopSamples()
        self._starts_read: set[str] = set()
        self._parts: dict[tuple[Any, ...], WatchedLoop] = {}
        self._dataset: Callable[[], Any] = lambda: None
        self._findings = findings_of(handle.session)
        self._findings.judges.append(self._judge)
        self._first: list[Row] = []
        self._odd: deque[Row] = deque(maxlen=_MAX_ODD)
        self._rows: deque[Row] = deque()
        self._row_samples = 0
        #: The epoch under way and the one before.
        self._epochs: deque[Epoch] = deque(maxlen=2)
        self._step = 0
        self._epoch = -1
        self._in_epoch = 0
        #: Fields that had a number that is not finite: the first one of each is judged at once.
        self._nonfinite: set[str] = set()
        #: Identity of the iterator of the last batch; None: no weak reference can be made to it.
        self._iterator: tuple[int, weakref.ref[Any] | None] = 0, None
        self._number = -1
        #: Indices that were drawn, by the number of their batch.
        self._drawn: dict[int, list[Any]] = {}
        self._began = self._used_at = _core.now_s()
        self._spent = self._judged_at = 0.0
        #: Whether it trains.
        self.steps = LoopSteps()
        self._closed = False
        _open.append(self)
        if len(_open) > MAX_LOOPS:
            min(_open, key=lambda one: one._used_at)._close()

    def _close(self) -> None:
        """Judge a last time, and free the rows."""
        self._judge()
        self._closed = True
        _open.remove(self)
        self._findings.judges.remove(self._judge)
        self.steps.forget()
        for kept in (self._first, self._odd, self._rows, self._epochs, self._drawn):
            kept.clear()
        self.samples = LoopSamples()

    # --- what rules read ------------------------------------------------------------------------------------

    @property
    def rows(self) -> list[Row]:
        """The first ones, those between with samples that are not finite or constant, and the last ones."""
        return [*self._first, *self._odd, *self._rows]

    @property
    def dataset(self) -> Any:
        """The dataset whose indices its batches have; None: not known, or gone."""
        return self._dataset()

    @dataset.setter
    def dataset(self, dataset: Any) -> None:
        """It is not kept alive."""
        self._dataset = weakly(dataset)

    @property
    def epochs(self) -> int:
        """So many have begun."""
        return self._epoch + 1

    def beside(self) -> list[WatchedLoop]:
        """Loops of the run that began an epoch after optimizers had stepped on this one's batches."""
        same_run = (one for one in _open if one is not self and one._findings is self._findings)
        return [one for one in same_run if self.steps in one.steps.follows]

    # --- what happens ---------------------------------------------------------------------------------------

    def part_of(self, signature: tuple[Any, ...]) -> WatchedLoop:
        """The loop for an iterator of the same record: another one, where it reads other data."""
        if self.signature is None:
            self.signature = signature
        if self.signature == signature:
            return self
        if signature not in self._parts:
            size = f"{signature[1]} samples" if signature[1] >= 0 else f"part {len(self._parts) + 2}"
            part = f"{self.handle.name}, {size}"
            while part in self._findings.parts:
                part += " "
            self._findings.parts[part] = self.handle.name
            self._parts[signature] = made = WatchedLoop(self.handle, part)
            made.signature = signature
        return self._parts[signature]

    def goes_on_as(self, handle: _core.LoaderHandle, signature: tuple[Any, ...] | None) -> bool:
        """Whether a loader that is made again, where this one was made, is its next epoch."""
        same = signature == self.signature and unnumbered(handle.name) == unnumbered(self.name)
        if self._epoch < 0 or self._closed or not same:
            return False
        self._findings.made_again[handle.name] = self.name
        self.handle = handle
        return True

    def drew(self, number: int, indices: Any) -> None:
        """The sampler gave the indices of a batch: of the epoch's ``number``-th."""
        if number == 0:
            self._drawn.clear()
        listed = [plain_index(one) for one in (indices if type(indices) in (list, tuple) else [indices])]
        if None not in listed:  # a stream has none
            self._drawn[number] = listed

    def seeing(self, hand_over: Callable[[Any], Any] | None) -> Callable[[Any], Any]:
        """Hands over the items of a pass of a native pipeline, each after its row was written."""
        one_pass = object()

        def hand(item: Any) -> Any:
            batch = item if hand_over is None else hand_over(item)
            try:
                self.took(one_pass, -1, -1, batch)
            except Exception as error:  # the loop must go on
                let_through(error)
                warn_once(f"batches of {self.name!r} are not looked at: {error!r}")
            return batch

        return hand

    def took(self, iterator: Any, number: int, worker: int, batch: Any) -> bool:
        """The loop has a batch. number: in its epoch, -1: the next one. Returns whether it has a row."""
        if self._closed:
            return False
        began = self._used_at = _core.now_s()
        if not self._goes_on(iterator, number):
            self._begin_epoch(iterator)
        self._number = number
        self.steps.took()
        indices = self._drawn.pop(number if number >= 0 else self._in_epoch, None)
        fields = fields_of(batch)
        arrays = [(name, weakref.ref(one)) for name, one in fields]
        _last.taken = Taken(self._step, indices, worker, arrays, self._dataset)
        if indices is not None:
            self._epochs[-1].take(self._step, indices, -1, by_index=True)
            if self._epoch == 0:
                self._findings.keep_samples(self.name, self.samples.draw(self.dataset, indices))
        has_row = self._has_time(began)
        if has_row:
            self._add_row(fields, indices, worker)
            if began - self._judged_at > JUDGED_EVERY_S:
                self._judged_at = began
                self._findings.save()
        self._step += 1
        self._in_epoch += 1
        self._spent += _core.now_s() - began
        return has_row

    def _add_row(self, fields: list[tuple[str, Any]], indices: list[Any] | None, worker: int) -> None:
        compared = self._epoch == 0 and self.samples.wants_contents
        hashed = compared or indices is None
        row = Row(fields, self._step, worker, indices, self._file_of, hashed=hashed)
        if compared:
            contents = self.samples.add_contents(row.hashes, by_index=row.indices is not None)
            self._findings.keep_samples(self.name, contents)
        if row.indices is None and row.hashes:
            self._epochs[-1].take(self._step, row.hashes, worker, by_index=False)
        if len(self._first) < _MAX_FIRST:
            self._first.append(row)
        else:
            self._rows.append(row)
            self._row_samples += row.size
            while len(self._rows) > _MAX_LAST or self._row_samples > max(_MAX_SAMPLES, row.size):
                oldest = self._rows.popleft()
                self._row_samples -= oldest.size
                if any(one.nonfinite_rows or one.constant_rows for one in oldest.fields):
                    self._odd.append(oldest)
        new = {one.where for one in row.fields if one.nonfinite_rows} - self._nonfinite
        if new:  # the program may be killed by what it found
            self._nonfinite |= new
            self._apply([RULES["nonfinite_batch"]])

    def _begin_epoch(self, iterator: Any) -> None:
        can_be_weak = type(iterator).__weakrefoffset__ != 0
        self._iterator = id(iterator), weakref.ref(iterator) if can_be_weak else None
        self._epoch += 1
        self._in_epoch = 0
        self.steps.begin_epoch()
        self._apply(rules_for("epochs"))
        self._epochs.append(Epoch(self._epoch, self._step))

    def _goes_on(self, iterator: Any, number: int) -> bool:
        """Whether the batch is of the epoch of the one before."""
        identity, alive = self._iterator
        same = id(iterator) == identity and (alive is None or alive() is iterator)
        return same and not 0 <= number <= self._number

    def _has_time(self, now: float) -> bool:
        lasted = now - self._began
        at_first = min(_IN_ALL_S, _AT_FIRST_S + _SHARE_AT_FIRST * lasted)
        return self._spent < max(_SHARE * lasted, at_first)

    def _file_of(self, index: int) -> str:
        dataset = self.dataset
        return "" if dataset is None else file_of(dataset, index)

    # --- how it is judged -----------------------------------------------------------------------------------

    def _judge(self) -> None:
        if self.workers and self.steps.trains is not False:
            session = self.handle.session
            documents = documents_of(session.run, session.rank, self._starts_read)
            written = (one for document in documents for one in document.get("random") or [])
            self.starts += [one for one in written if one.get("loader") == self.name]
        self._apply(rules_for("fields", "epochs", "loop"))

    def _apply(self, rules: list[Rule]) -> None:
        fields: dict[str, list[tuple[Row, Field]]] = {}
        for row in self.rows if any(one.needs == "fields" for one in rules) else ():
            for field in row.fields:
                fields.setdefault(field.where, []).append((row, field))
        for rule in rules:
            try:
                for hit in self._hits(rule, fields):
                    self._findings.put(rule, hit, self.name)
            except Exception as error:  # noqa: PERF203 - the loop must go on
                let_through(error)
                warn_once(f"{rule.kind} is not judged for all of {self.name!r}: {error!r}")

    def _hits(self, rule: Rule, fields: dict[str, list[tuple[Row, Field]]]) -> Iterable[Hit]:
        if rule.needs == "fields":
            for where, seen in fields.items():
                yield from rule.holds(self, where, seen)
        elif rule.needs == "loop":
            yield from rule.holds(self)
        elif self._epochs:
            yield from rule.holds(self, list(self._epochs))
