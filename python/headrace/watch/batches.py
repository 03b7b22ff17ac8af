"""The batches that watched loops take: which step, samples and worker, and what is wrong with them."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

from headrace import _core
from headrace.common.handlers import let_through
from headrace.common.loader_names import unnumbered
from headrace.common.messages import warn_once
from headrace.watch.checks import CHECKS, Check
from headrace.watch.datasets import Order, file_of, plain_index, weakly
from headrace.watch.fields import fields_of
from headrace.watch.findings import findings_of
from headrace.watch.looked_at import Seen
from headrace.watch.overlap import Overlap
from headrace.watch.random_state import EPOCHS, WorkersRandom
from headrace.watch.steps import LoopSteps, are_counted

#: Batches are looked at while that takes no more than this share of the time ...
_SHARE = 0.003
#: ... or, in short runs, so much in all, spent evenly after the first part of it.
_AT_FIRST_S = 0.3
_IN_ALL_S = 1.0
_SHARE_AT_FIRST = 0.1
#: Findings are judged and saved so often.
_JUDGED_EVERY_S = 2.0


#: Loops whose batches are looked at: the state of each one's checks has 4 MB at most.
MOST_LOOPS = 16


class Taken(NamedTuple):
    """A batch, and where it comes from."""

    loader: str
    #: Batches that this loader's loops took before it, over all epochs.
    step: int
    #: From 0.
    epoch: int
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


def arrays_of(batch: Any) -> list[tuple[str, weakref.ref[Any]]]:
    """See `Taken.arrays`."""
    return [(name, weakref.ref(one)) for name, one in fields_of(batch)]


_open: list[WatchedLoop] = []


class _Last(threading.local):
    taken: Taken | None = None


_last = _Last()


def last_taken() -> Taken | None:
    """The batch that a watched loop of this thread took last."""
    return _last.taken


class WatchedLoop:
    """The loops over one loader. Used by the thread that takes its batches."""

    #: Epochs whose workers say where their random numbers begin.
    random_epochs = EPOCHS

    def __init__(self, handle: _core.LoaderHandle, name: str | None = None) -> None:
        """name: of a part of the loader's batches; None: the loader's."""
        self.handle = handle
        self.name = name or handle.name
        #: See `datasets.signature_of`; None: not known.
        self.signature: tuple[Any, ...] | None = None
        self._parts: dict[tuple[Any, ...], WatchedLoop] = {}
        self._dataset: Callable[[], Any] = lambda: None
        self.order: Order | None = None
        self.workers = 0
        self._findings = findings_of(handle.session)
        self._findings.judges.append(self._judge)
        self._checks: list[Check] = [kind(self) for kind in CHECKS]
        self._overlap = Overlap(self, self._findings)
        self._random = WorkersRandom(self, self._findings, handle.session)
        self._step = 0
        self._epoch = -1
        self._in_epoch = 0
        #: Identity of the iterator of the last batch; None: no weak reference can be made to it.
        self._iterator: tuple[int, weakref.ref[Any] | None] = 0, None
        self._number = -1
        #: Indices that were drawn, by the number of their batch.
        self._drawn: dict[int, list[Any]] = {}
        self._began = _core.now_s()
        self._spent = 0.0
        self._steps = LoopSteps()
        are_counted()
        self._judged_at = 0.0
        self._closed = False
        self._used_at = self._began
        _open.append(self)
        if len(_open) > MOST_LOOPS:
            min(_open, key=lambda one: one._used_at)._close()

    def _close(self) -> None:
        """Judge a last time, and free what the checks keep."""
        self._judge()
        self._closed = True
        _open.remove(self)
        self._findings.judges.remove(self._judge)
        self._steps.forget()
        self._checks.clear()
        self._drawn.clear()
        self._overlap = Overlap(self, self._findings)

    # --- what checks ask and say ---

    @property
    def training(self) -> bool | None:
        return self._steps.trains if are_counted() else None

    @property
    def dataset(self) -> Any:
        return self._dataset()

    @dataset.setter
    def dataset(self, dataset: Any) -> None:
        """It is not kept alive."""
        self._dataset = weakly(dataset)

    @property
    def epochs(self) -> int:
        """So many have begun."""
        return self._epoch + 1

    @property
    def evaluates(self) -> bool:
        return self.training is False and self._steps.evaluates

    @property
    def is_no_training(self) -> bool:
        return self.training is False and self._steps.is_no_training

    def follows(self, other: WatchedLoop) -> bool:
        return other._steps in self._steps.follows

    def add(self, kind: str, where: str, says: str, **more: Any) -> None:
        self._findings.add(kind, where, f"{self.name}: {says}", loader=self.name, **more)

    def tell(self, kind: str, where: str, says: str, **more: Any) -> None:
        self._findings.tell(kind, where, f"{self.name}: {says}", loader=self.name, **more)

    def say(self, kind: str, where: str) -> None:
        self._findings.say(kind, where, self.name)

    def replace(self, kind: str, where: str, **changes: Any) -> None:
        if "says" in changes:
            changes["says"] = f"{self.name}: {changes['says']}"
        self._findings.replace(kind, where, self.name, **changes)

    def withdraw(self, kind: str, where: str) -> None:
        self._findings.withdraw(kind, where, self.name)

    # --- what happens ---

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
        """What hands over the items of a pass of a native pipeline, and looks at them; None: as they are."""
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
        """The loop has a batch. number: in its epoch, -1: the next one. Returns whether it was looked at."""
        if self._closed:
            return False
        began = self._used_at = _core.now_s()
        if not self._goes_on(iterator, number):
            self._begin_epoch(iterator)
        self._number = number
        taken_number = number if number >= 0 else self._in_epoch
        self._steps.took()
        indices = self._drawn.pop(taken_number, None)
        arrays = arrays_of(batch)
        _last.taken = Taken(self.name, self._step, self._epoch, indices, worker, arrays, self._dataset)
        if indices is not None:
            self._run(lambda check: check.draw(self._step, self._epoch, indices))
            self._overlap.draw(self._epoch, indices)
        looked = self._is_looked_at(began)
        if looked:
            seen = Seen(
                batch,
                step=self._step,
                epoch=self._epoch,
                in_epoch=self._in_epoch,
                indices=indices,
                worker=worker,
                file_of=self._file_of,
            )
            self._run(lambda check: check.see(seen))
            self._overlap.see(seen)
        self._step += 1
        self._in_epoch += 1
        if began - self._judged_at > _JUDGED_EVERY_S:
            self._judged_at = began
            self._findings.save()
        self._spent += _core.now_s() - began
        return looked

    def _begin_epoch(self, iterator: Any) -> None:
        can_be_weak = type(iterator).__weakrefoffset__ != 0
        self._iterator = id(iterator), weakref.ref(iterator) if can_be_weak else None
        self._epoch += 1
        self._in_epoch = 0
        self._steps.begin_epoch()
        self._run(lambda check: check.begin_epoch(self._epoch))

    def _goes_on(self, iterator: Any, number: int) -> bool:
        """Whether the batch is of the epoch of the one before."""
        identity, alive = self._iterator
        same = id(iterator) == identity and (alive is None or alive() is iterator)
        return same and not 0 <= number <= self._number

    def _is_looked_at(self, now: float) -> bool:
        lasted = now - self._began
        at_first = min(_IN_ALL_S, _AT_FIRST_S + _SHARE_AT_FIRST * lasted)
        return self._spent < max(_SHARE * lasted, at_first)

    def _run(self, what: Any) -> None:
        for check in list(self._checks):
            try:
                what(check)
            except Exception as error:  # noqa: PERF203 - the loop must go on
                let_through(error)
                warn_once(f"{type(check).__name__} has not looked at all of {self.name!r}: {error!r}")

    def _judge(self) -> None:
        self._run(lambda check: check.judge())
        self._overlap.judge()
        self._random.judge()

    def _file_of(self, index: int) -> str:
        dataset = self.dataset
        return "" if dataset is None else file_of(dataset, index)
