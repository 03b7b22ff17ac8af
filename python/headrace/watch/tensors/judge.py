"""One open watch: calls, backward passes and updates of a training, handed to those who judge them."""

from __future__ import annotations

import functools
import math
import sys
import weakref
from collections.abc import Callable
from typing import Any

from headrace.common.handlers import let_through
from headrace.common.messages import warn_once
from headrace.common.plain import typed_error_line
from headrace.watch.batches import Taken, last_taken
from headrace.watch.fields import a_mode_is_on
from headrace.watch.tensors import interposed
from headrace.watch.tensors.clearing import Clearing
from headrace.watch.tensors.dead_units import DeadUnits
from headrace.watch.tensors.explosion import Explosion
from headrace.watch.tensors.flat_loss import FlatLoss
from headrace.watch.tensors.gradients import dense, norms
from headrace.watch.tensors.left_out import LeftOut
from headrace.watch.tensors.names import Names
from headrace.watch.tensors.not_finite import NotFinite, finite_each
from headrace.watch.tensors.reporting import Reporting
from headrace.watch.tensors.scaler import ScalerSkips
from headrace.watch.tensors.trends import Trends
from headrace.watch.tensors.updates import Moment, Updates, parameters_of, rate_of, with_gradients
from headrace.watch.tensors.values import Readings, capturing, plainly
from headrace.watch.tensors.weights import Changes, Initialisation


def _harmless(method: Callable[..., Any]) -> Callable[..., Any]:
    """An error of ours ends the watch, not the training."""

    @functools.wraps(method)
    def guarded(self: Judge, *arguments: Any) -> Any:
        if self.closed or a_mode_is_on():
            return None
        try:
            with plainly():
                return method(self, *arguments)
        except Exception as error:
            let_through(error)
            warn_once(f"hr.watch stopped: {typed_error_line(error)}")
            self.close()
            return None

    return guarded


class Judge:
    """One watch while it is open: an `interposed.Listener`."""

    def __init__(self, reporting: Reporting, models: list[Any], optimizers: list[Any], every: int) -> None:
        self.closed = False
        self._reporting = reporting
        self._every = every
        self._names = Names(models)
        self._readings = Readings()
        self._not_finite = NotFinite(reporting, self._names, self._readings)
        self._left_out = LeftOut(reporting, self._names)
        self._flat_loss = FlatLoss(reporting)
        self._dead_units = DeadUnits(reporting, self._names, self._readings)
        self._named = bool(optimizers)
        self._optimizers: dict[int, _Optimizer] = {}
        self._strangers: weakref.WeakSet[Any] = weakref.WeakSet()
        self._scalers: weakref.WeakKeyDictionary[Any, ScalerSkips] = weakref.WeakKeyDictionary()
        #: Losses of backward passes since the last update that are not read yet, and those that are.
        self._unread: list[Any] = []
        self._losses: list[float] = []
        self._loss_was_bad = False
        self._bad_losses: list[float] = []
        #: How many of the losses came before the backward pass under way.
        self._kept = 0, 0
        #: The optimizer whose closure runs.
        self._in_closure: Any = None
        self._step = 0
        self._taken: Taken | None = None
        for one in optimizers:
            self._add(one)

    # --- what interposed calls ------------------------------------------------------------------------------

    def backward_begins(self, losses: list[Any]) -> None:
        self._backward_begins(losses)

    def backward_ended(self) -> None:
        self._backward_ended()
        self._reporting.raise_pending()

    @_harmless
    def _backward_ended(self) -> None:
        bad, self._bad_losses = self._bad_losses, []
        if self._optimizers and not any(one.clearing.is_reached() for one in self._optimizers.values()):
            bad = []  # the loss of another model
            del self._unread[self._kept[0] :], self._losses[self._kept[1] :]
        for value in bad:
            self._not_finite.loss(value, self._step, self._taken)
            self._end_of_growth()
        for one in self._optimizers.values():
            one.clearing.backward_ended()
            one.updates.backward_since = True
        optimizer = None if self._in_closure is None else self._in_closure()
        mine = None if optimizer is None else self._mine(optimizer)
        if mine is not None:
            self._gradients_ready(optimizer, mine)

    def before_step(self, optimizer: Any, closure: Any) -> None:
        mine = self._mine(optimizer)
        if mine is None:
            return
        self._in_closure = None if closure is None else weakref.ref(optimizer)
        if closure is not None:  # backward is inside
            return
        self._gradients_ready(optimizer, mine)
        self._reporting.raise_pending()

    def after_step(self, optimizer: Any) -> None:
        mine = self._mine(optimizer)
        self._in_closure = None
        if mine is not None:
            self._updated(optimizer, mine)
            self._reporting.deliver()

    @_harmless
    def scaled(self, scaler: Any) -> None:
        scale = getattr(scaler, "_scale", None)
        if scale is None:
            return
        skips = self._scalers.setdefault(scaler, ScalerSkips(self._reporting))
        step = self._step
        self._readings.read(scale.detach().reshape(1), lambda values: skips.add(values[0], step))
        self._end_step()  # a skipped step calls no optimizer

    # --- how it judges --------------------------------------------------------------------------------------

    @_harmless
    def _backward_begins(self, losses: list[Any]) -> None:
        if not self._names.all_alive():
            self.close()
            return
        self._readings.poll()
        self._not_finite.backward_begins()
        self._kept = len(self._unread), len(self._losses)
        for one in self._optimizers.values():
            one.clearing.backward_begins()
        taken = self._taken = last_taken()
        self._step = taken.step if taken is not None else self._most_updates()
        if capturing() or not self._due():
            return
        for loss in dense(losses):
            if not loss.is_floating_point() or not loss.numel():
                continue
            one = loss if loss.numel() == 1 else loss.detach().sum()
            if self._readings.at_once(one):
                self._loss_read(one.item())
            else:
                self._unread.append(one.detach().reshape(1).float())

    def _loss_read(self, value: float) -> None:
        if math.isfinite(value):
            self._losses.append(value)
        else:
            self._loss_was_bad = True
            self._bad_losses.append(value)  # reported when the backward pass has freed its memory

    def _end_of_growth(self) -> None:
        for one in self._optimizers.values():
            one.explosion.not_finite()

    def _due(self) -> bool:
        return self._every == 1 or self._most_updates() % self._every == 0

    def _most_updates(self) -> int:
        return max((one.updates.count for one in self._optimizers.values()), default=0)

    @_harmless
    def _mine(self, optimizer: Any) -> _Optimizer | None:
        """Its state; None: it trains something else."""
        found = self._optimizers.get(id(optimizer))
        if found is not None and found.reference() is optimizer:
            if not found.updates.count:
                self._left_out.stepped(optimizer)
            return found
        self._left_out.stepped(optimizer)
        if self._named or optimizer in self._strangers:
            return None
        names = self._names.parameters()
        if any(id(one) in names for one in parameters_of(optimizer)):
            return self._add(optimizer)
        self._strangers.add(optimizer)
        return None

    def _add(self, optimizer: Any) -> _Optimizer:
        gone = [key for key, one in self._optimizers.items() if one.reference() is None]
        for key in gone:
            del self._optimizers[key]
        mine = self._optimizers[id(optimizer)] = _Optimizer(
            optimizer, self._reporting, self._names, self._readings
        )
        return mine

    @_harmless
    def _gradients_ready(self, optimizer: Any, mine: _Optimizer) -> None:
        if capturing():
            return
        self._readings.poll()
        held, gradients = with_gradients(optimizer)
        moment = Moment(self._step, mine.updates.count, held, dense(gradients), self._taken)
        mine.clearing.choose(held)
        mine.clearing.before_update(moment, mine.updates.backward_since)
        self._left_out.before_update(optimizer, mine.updates, moment)
        if moment.update == 0:
            mine.initialisation.judge(optimizer, moment)
        if not held or moment.update % self._every:
            return
        mine.changes.before_update(moment)
        self._dead_units.before_update(moment)
        self._read_norms(optimizer, mine, moment)

    def _read_norms(self, optimizer: Any, mine: _Optimizer, moment: Moment) -> None:
        torch = sys.modules["torch"]
        found = norms(moment.gradients)
        skipped = getattr(optimizer, "found_inf", None)  # a GradScaler leaves the skip to a fused optimizer
        scale = getattr(optimizer, "grad_scale", None)
        scaled, is_skipped = scale is not None, skipped is not None
        if skipped is not None:
            found = found / scale if scaled else found
            found = torch.cat([found, skipped.detach().reshape(1).to(found)])
        unread, self._unread = self._unread, []
        losses, self._losses = self._losses, []
        bad, self._loss_was_bad = self._loss_was_bad, False
        if unread:
            found = torch.cat([found, *(one.to(found.device, non_blocking=True) for one in unread)])
        count = len(moment.gradients)
        one_optimizer = len(self._optimizers) == 1 and interposed.is_alone()
        late = len(unread)

        def read(values: list[float], moment: Moment | None) -> None:
            was_bad, all_losses = bad, list(losses)
            if moment is None:
                return
            if is_skipped and values[count]:
                return
            for value in values[len(values) - late :] if late else ():
                if math.isfinite(value):
                    all_losses.append(value)
                else:
                    was_bad = True
                    self._not_finite.loss(value, moment.step, moment.taken)
                    self._end_of_growth()
            if was_bad:
                return
            if one_optimizer:
                for value in all_losses[-1:]:
                    self._flat_loss.add(value, moment.step)
            self._judge_norms(mine, moment, values[:count], all_losses, scaled)

        if self._readings.at_once(found):
            read(found.tolist(), moment)
            return
        later = moment.later()
        self._readings.read(found, lambda values: read(values, later.moment()))

    def _judge_norms(
        self, mine: _Optimizer, moment: Moment, values: list[float], losses: list[float], scaled: bool
    ) -> None:
        overflowed = not math.isfinite(sum(values))
        if overflowed:
            # Later the gradients are those of another step: only their norms are known.
            finite = finite_each(moment.gradients) or [math.isfinite(one) for one in values]
            if not all(finite):
                names = self._names.parameters()
                told = [
                    (names.get(id(one), "parameter"), good)
                    for one, good in zip(moment.parameters, finite, strict=True)
                ]
                self._not_finite.gradients(told, moment.step, moment.taken)
                mine.explosion.not_finite()
                return
            if scaled:
                return  # by the factor of a GradScaler
        mine.explosion.add(moment, values, losses, overflowed)
        if not overflowed:
            mine.trends.add(moment, values)

    @_harmless
    def _updated(self, optimizer: Any, mine: _Optimizer) -> None:
        mine.changes.updated(mine.updates.count, self._step, rate_of(optimizer))
        mine.clearing.updated()
        mine.updates.count += 1
        mine.updates.backward_since = False
        self._end_step()

    def _end_step(self) -> None:
        self._taken = None
        self._unread, self._losses, self._loss_was_bad = [], [], False

    def look(self) -> None:
        """Hand on all values that are under way."""
        self._look()
        self._reporting.deliver()

    @_harmless
    def _look(self) -> None:
        self._readings.poll(wait=True)

    def close(self) -> None:
        interposed.leave(self)
        if not self.closed:
            try:
                self._readings.poll(wait=True)
            except Exception as error:
                let_through(error)
                warn_once(f"hr.watch stopped: {typed_error_line(error)}")
        self.closed = True
        self._not_finite.close()
        self._left_out.close()


class _Optimizer:
    """What is known of one watched optimizer."""

    def __init__(self, optimizer: Any, reporting: Reporting, names: Names, readings: Readings) -> None:
        self.reference = weakref.ref(optimizer)
        self.updates = Updates()
        self.clearing = Clearing(reporting)
        self.explosion = Explosion(reporting, names)
        self.trends = Trends(reporting, names)
        self.initialisation = Initialisation(reporting, names, readings)
        self.changes = Changes(reporting, names, readings)
