"""One open watch: what torch does in a training becomes rows, which a judge reads every two seconds."""

from __future__ import annotations

import functools
import math
import os
import sys
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

from headrace import _core
from headrace.common.handlers import let_through
from headrace.common.messages import warn_once
from headrace.common.plain import typed_error_line
from headrace.errors import WatchError
from headrace.record.session import open_session
from headrace.results import process_files
from headrace.results.figures import Finding
from headrace.results.findings import worst_first
from headrace.watch.batches import Taken, last_taken
from headrace.watch.fields import a_mode_is_on
from headrace.watch.findings import JUDGED_EVERY_S, findings_of
from headrace.watch.rules import RULES, Hit
from headrace.watch.tensors import torch_hooks
from headrace.watch.tensors.names import Names
from headrace.watch.tensors.not_finite import NotFinite, finite_each
from headrace.watch.tensors.rows import (
    DeadUnits,
    OptimizerRows,
    Row,
    parameters_of,
    rate_of,
    read_initial,
    with_gradients,
)
from headrace.watch.tensors.unreached import Unreached
from headrace.watch.tensors.values import Readings, capturing, dense, norms, plainly

#: Places of one kind that are kept (a model has thousands of parameters), rows between two judgements (fewer
#: than an optimizer keeps), and scales of a GradScaler.
_MAX_PLACES, _MAX_UNJUDGED, _MAX_SCALES = 20, 256, 320

_open: weakref.WeakSet[Training] = weakref.WeakSet()


def _judge_all() -> None:
    """A report is read, or the process ends."""
    for one in list(_open):
        one.judge(wait=True)


os.register_at_fork(after_in_child=_open.clear)  # the parent reports its trainings


def _harmless(method: Callable[..., Any]) -> Callable[..., Any]:
    """An error of ours ends the watch, not the training."""

    @functools.wraps(method)
    def guarded(self: Training, *arguments: Any, **named: Any) -> Any:
        if self.closed or a_mode_is_on():
            return None
        try:
            with plainly():
                return method(self, *arguments, **named)
        except Exception as error:
            let_through(error)
            warn_once(f"hr.watch stopped: {typed_error_line(error)}")
            self.closed = True
            self.close()
            return None

    return guarded


class Training:
    """One watch while it is open. `torch_hooks` calls it; rules read its public attributes."""

    def __init__(
        self,
        models: list[Any],
        optimizers: list[Any],
        every: int,
        on_hit: str | Callable[[Finding], object],
        conditions: dict[str, dict[str, Any]],
    ) -> None:
        self.closed = False
        self._token = object()
        self.names = Names(models)
        self.scales: weakref.WeakKeyDictionary[Any, deque[tuple[int, float]]] = weakref.WeakKeyDictionary()
        self._readings = Readings()
        self.not_finite = NotFinite(self.names, self._readings)
        self.unreached = Unreached(self.names)
        self._dead_units = DeadUnits(self.names)
        self._every, self._on_hit, self._conditions = every, on_hit, conditions
        #: By kind and place.
        self._findings: dict[tuple[str, str], Finding] = {}
        #: The fault to raise where the user's loop is, and findings that the user's function has not got.
        self._pending: WatchError | None = None
        self._new: list[Finding] = []
        self._session: _core.Session | None = None
        self._unjudged, self._judged_at = 0, _core.now_s()
        self._named = bool(optimizers)
        self._optimizers: dict[int, OptimizerRows] = {}
        self._strangers: weakref.WeakSet[Any] = weakref.WeakSet()
        #: Losses of the backward pass under way, and those read since the last update.
        self._passed: list[Any] = []
        self._losses: list[float] = []
        #: The optimizer whose closure runs.
        self._in_closure: Any = None
        self._step = 0
        self._taken: Taken | None = None
        for one in optimizers:
            self._add(one)
        process_files.before_reading(_judge_all)
        _open.add(self)

    # --- what torch does ------------------------------------------------------------------------------------

    @_harmless
    def backward_begins(self, losses: list[Any]) -> None:
        if not self.names.all_alive():
            self.close()
            return
        self._readings.poll()
        self.not_finite.close()
        for one in self._optimizers.values():
            one.clearing.backward_begins()
        taken = self._taken = last_taken()
        updates = max((one.updates for one in self._optimizers.values()), default=0)
        self._step = taken.step if taken is not None else updates
        if capturing() or updates % self._every:
            return
        numbers = [one for one in dense(losses) if one.is_floating_point() and one.numel()]
        self._passed = [one.detach().sum().reshape(1).float() for one in numbers]

    def backward_ended(self) -> None:
        self._backward_ended()
        self._raise_pending()

    @_harmless
    def _backward_ended(self) -> None:
        passed, self._passed = self._passed, []
        if self._optimizers and not any(one.clearing.is_reached() for one in self._optimizers.values()):
            passed = []  # the loss of another model
        losses, step, taken = self._losses, self._step, self._taken
        for one in passed:
            self._readings.read(one, lambda values: self._loss_read(values[0], losses, step, taken))
        for one in self._optimizers.values():
            one.clearing.backward_ended()
            one.backward_since = True
        optimizer = None if self._in_closure is None else self._in_closure()
        mine = None if optimizer is None else self._mine(optimizer)
        if mine is not None:
            self._gradients_ready(optimizer, mine)

    def before_step(self, optimizer: Any, closure: Any) -> None:
        mine = self._mine(optimizer)
        if mine is None:
            return
        self._in_closure = None if closure is None else weakref.ref(optimizer)
        if closure is None:  # else backward is inside
            self._gradients_ready(optimizer, mine)
            self._raise_pending()

    def after_step(self, optimizer: Any) -> None:
        mine = self._mine(optimizer)
        self._in_closure = None
        if mine is not None:
            self._updated(optimizer, mine)
            self._deliver()

    @_harmless
    def scaled(self, scaler: Any) -> None:
        scale = getattr(scaler, "_scale", None)
        if scale is None:
            return
        scales, step = self.scales.setdefault(scaler, deque(maxlen=_MAX_SCALES)), self._step
        self._readings.read(scale.detach().reshape(1), lambda values: scales.append((step, values[0])))
        self._end_step()  # a skipped step calls no optimizer

    # --- how rows are written -------------------------------------------------------------------------------

    def _loss_read(self, value: float, losses: list[float], step: int, taken: Taken | None) -> None:
        losses.append(value)
        if not math.isfinite(value):
            self.not_finite.loss(value, step, taken)
            for one in self._optimizers.values():  # the program may skip the update
                one.add(Row(step, one.updates)).losses = [value]
            self._judge_kinds("nonfinite_loss")

    @_harmless
    def _mine(self, optimizer: Any) -> OptimizerRows | None:
        """Its rows; None: it trains something else."""
        found = self._optimizers.get(id(optimizer))
        if found is not None and found.reference() is optimizer:
            if not found.updates:
                self.unreached.stepped(optimizer)
            return found
        self.unreached.stepped(optimizer)
        if self._named or optimizer in self._strangers:
            return None
        names = self.names.parameters()
        if any(id(one) in names for one in parameters_of(optimizer)):
            return self._add(optimizer)
        self._strangers.add(optimizer)
        return None

    def _add(self, optimizer: Any) -> OptimizerRows:
        gone = [key for key, one in self._optimizers.items() if one.reference() is None]
        for key in gone:
            del self._optimizers[key]
        mine = self._optimizers[id(optimizer)] = OptimizerRows(optimizer)
        return mine

    def _parameter(self, kind: str, name: str, default: int = 0) -> int:
        """The parameter of a condition; ``default``: it is off."""
        return int(self._conditions.get(kind, {}).get(name, default))

    @_harmless
    def _gradients_ready(self, optimizer: Any, mine: OptimizerRows) -> None:
        if capturing():
            return
        held, gradients = with_gradients(optimizer)
        row = Row(self._step, mine.updates)
        mine.row = row
        row.uncleared = mine.clearing.before_update(held, mine.backward_since)
        if steps := self._parameter("weight_not_updated", "steps"):
            self.unreached.find_missing(row, steps)
        if steps := self._parameter("detached", "steps", self._parameter("no_gradient", "steps")):
            self.unreached.find_never(optimizer, mine, row, held, steps)
        if row.update == 0 and "bad_initialisation" in self._conditions:
            read_initial(row, self.names, parameters_of(optimizer), self._readings)
        is_due = bool(held) and row.update % self._every == 0
        if is_due or row.uncleared or not row.update:
            mine.add(row)
            self._unjudged += 1
        if not is_due:
            return
        every = self._parameter("weight_change_too_large", "every_steps")
        if every and (row.update == 0 or (row.update + 1) % every == 0):
            mine.changes.before_update(held)
        every = self._parameter("dead_units", "every_steps")
        if every and row.update and row.update % every == 0:
            samples = self._parameter("dead_units", "samples")
            self._dead_units.before_update(row, held, gradients, samples, self._readings)
        self._read_norms(optimizer, row, held, gradients)

    def _read_norms(self, optimizer: Any, row: Row, held: list[Any], gradients: list[Any]) -> None:
        torch = sys.modules["torch"]
        found = norms(gradients)
        skipped = getattr(optimizer, "found_inf", None)  # a GradScaler leaves the skip to a fused optimizer
        scale = getattr(optimizer, "grad_scale", None)
        if skipped is not None:
            found = found / scale if scale is not None else found
            found = torch.cat([found, skipped.detach().reshape(1).to(found)])
        row.losses = self._losses
        count, parameters, taken = len(gradients), [weakref.ref(one) for one in held], self._taken
        row.is_alone = len(self._optimizers) == 1 and torch_hooks.is_alone()
        if row.is_alone and row.update % (4 * self._every) == 0:
            row.labels = _labels_of(taken)
        has_skip, is_scaled = skipped is not None, scale is not None  # no tensor of the scaler's is kept
        # Later the gradients are those of another step: only their norms are known.
        now = gradients if self._readings.at_once(found) else None

        def read(values: list[float]) -> None:
            is_skipped = has_skip and bool(values[count])
            values = values[:count]
            overflowed = not math.isfinite(sum(values))
            if is_skipped or row.is_bad:
                return
            finite = (
                [math.isfinite(one) for one in values] if now is None or not overflowed else finite_each(now)
            )
            if not all(finite):
                names = self.names.parameters()
                named = [names.get(id(one()), "parameter") for one in parameters]
                row.bad_gradient = True
                self.not_finite.gradients(list(zip(named, finite, strict=True)), row.step, taken)
                self._judge_kinds("nonfinite_gradient")
            elif not overflowed or not is_scaled:  # else by the factor of a GradScaler
                row.set_norms(values, parameters, overflowed=overflowed)

        self._readings.read(found, read)

    @_harmless
    def _updated(self, optimizer: Any, mine: OptimizerRows) -> None:
        if mine.row is not None:
            mine.changes.updated(mine.row, rate_of(optimizer), self._readings)
        mine.clearing.updated()
        mine.updates += 1
        mine.backward_since = False
        self._end_step()
        if self._unjudged >= _MAX_UNJUDGED or _core.now_s() - self._judged_at > JUDGED_EVERY_S:
            self._judge()

    def _end_step(self) -> None:
        self._session = _core.current_session() or self._session
        self._taken = None
        self._losses = []

    # --- how rows are judged --------------------------------------------------------------------------------

    def judge(self, *, wait: bool = False) -> None:
        """wait: for the values of a device that are under way."""
        self._judge(wait=wait)
        self._deliver()

    @_harmless
    def _judge(self, *, wait: bool = False) -> None:
        self._readings.poll(wait=wait)
        self._unjudged, self._judged_at = 0, _core.now_s()
        self._judge_kinds(*self._conditions)

    def _judge_kinds(self, *kinds: str) -> None:
        for kind in kinds:
            parameters = self._conditions.get(kind)
            # Without an optimizer so far there is only the loss.
            for rows in [one.all for one in self._optimizers.values()] or [[]]:
                for hit in RULES[kind].holds(self, rows, **parameters) if parameters is not None else ():
                    self._put(kind, hit)

    def _put(self, kind: str, hit: Hit) -> None:
        key = kind, hit.where
        if key not in self._findings and sum(one == kind for one, _ in self._findings) >= _MAX_PLACES:
            return
        session = _core.current_session() or self._session or open_session(None, None)
        known = self._findings.get(key)
        steps = known.steps if known is not None else 0
        kept = findings_of(session)
        trainings = kept.trainings.setdefault(key, [])
        if self._token not in trainings:
            trainings.append(self._token)
        number = trainings.index(self._token) + 1
        where = hit.where if number == 1 else f"{hit.where}, training {number}"
        one = kept.put(RULES[kind], hit._replace(where=where, logged=self._on_hit == "say"), "")
        if one is None:
            self._findings.pop(key, None)
            return
        self._findings[key] = one
        # A loop that caught the first error may have gone on.
        if self._on_hit == "raise" and one.steps > steps and one.severity == "fault" and not self._pending:
            self._pending = WatchError(one)
        elif callable(self._on_hit) and known is None:
            self._new.append(one)

    def _deliver(self) -> None:
        """Call the user's function, outside of what `values.plainly` turns off."""
        while self._new and callable(self._on_hit):
            try:
                self._on_hit(self._new.pop(0))
            except Exception as error:  # noqa: PERF203
                let_through(error)
                warn_once(f"on_hit of hr.watch failed: {typed_error_line(error)}")

    def _raise_pending(self) -> None:
        """Called where an error reaches the user's loop with the model and the optimizer whole."""
        self._deliver()
        if self._pending is not None:
            error, self._pending = self._pending, None
            raise error

    @property
    def findings(self) -> list[Finding]:
        """Faults before notes, and in each the earlier first."""
        return worst_first(list(self._findings.values()))

    def close(self) -> None:
        torch_hooks.leave(self)
        _open.discard(self)
        self.judge(wait=True)
        self.closed = True
        self.not_finite.close()
        self.unreached.close()


def _labels_of(taken: Taken | None) -> list[int]:
    """The last tensor of whole numbers with one dimension."""
    torch = sys.modules["torch"]
    found: list[int] = []
    for _, array in taken.fields() if taken is not None else ():
        is_labels = type(array) is torch.Tensor and array.dtype == torch.int64 and array.dim() == 1
        if is_labels and array.is_cpu and array.numel() > 1:
            found = array.tolist()
    return found
