"""A row of statistics for each update of an optimizer, and what writes it."""

from __future__ import annotations

import math
import sys
import weakref
from collections import deque
from typing import Any

from headrace.watch.tensors.names import Names, modules_in, parameters_in
from headrace.watch.tensors.values import Readings, dense, is_sharded, is_tensor

#: Rows that are kept: the first ones (a flat loss needs 300), and the last ones.
_MAX_FIRST, _MAX_LAST = 320, 320
#: Elements of a weight whose change is measured.
_MAX_ELEMENTS = 1 << 16
#: Parameters by which cleared gradients are known.
_MAX_PROBES = 3


class Row:
    """One update. Values of a device arrive a step later. No tensor is kept."""

    def __init__(self, step: int, update: int) -> None:
        #: From 0: the batch's number where a watched loader is taken from, else the update's.
        self.step = step
        #: Updates of this optimizer before it.
        self.update = update
        #: Losses of its backward passes.
        self.losses: list[float] = []
        #: No other optimizer is watched; the labels of some batches of such a training.
        self.is_alone = False
        self.labels: list[int] = []
        #: A gradient is not finite, and the loss is.
        self.bad_gradient = False
        #: The 2-norm of all gradients; Inf: beyond float32, and each of them finite; None: not read.
        self.norm: float | None = None
        #: The parameter with the largest gradient.
        self.largest: Any = None
        #: In the first 50 updates and in every tenth later: weights with norm and size, all norms are zero,
        #: parameters whose gradient is exactly 0.
        self.weights: list[tuple[float, int, Any]] | None = None
        self.is_zero = False
        self.zeros: list[Any] = []
        #: How many updates in a row were made without clearing the gradients.
        self.uncleared = 0
        #: Before the first update, by name of a layer and fan-in: root mean square, share of zeros, whether
        #: all units are alike.
        self.initial: dict[tuple[str, int], list[float]] = {}
        #: By parameter and fan-in: mean of |change| and of |weight| in this update.
        self.changes: dict[tuple[Any, int], list[float]] = {}
        #: By name of a layer and its units: those that had no gradient in some updates.
        self.dead: dict[tuple[str, int], list[float]] = {}

    @property
    def is_bad(self) -> bool:
        """The loss or a gradient is not finite."""
        return self.bad_gradient or not all(map(math.isfinite, self.losses))

    def set_norms(self, values: list[float], parameters: list[weakref.ref[Any]], *, overflowed: bool) -> None:
        """parameters: in the order of ``values``."""
        self.norm = float("inf") if overflowed else sum(one * one for one in values) ** 0.5
        if values:
            self.largest = parameters[max(range(len(values)), key=values.__getitem__)]
        if overflowed or not (self.update < 50 or not self.update % 10):
            return
        alive = [(norm, one(), one) for norm, one in zip(values, parameters, strict=True)]
        weights = [(norm, one.numel(), own) for norm, one, own in alive if one is not None and one.dim() > 1]
        self.weights = [one for one in weights if one[1]]
        self.is_zero = not any(values)
        self.zeros = [reference for norm, _, reference in weights if norm == 0]


class OptimizerRows:
    """The rows of one optimizer, and the state that is needed to write them."""

    def __init__(self, optimizer: Any) -> None:
        self.reference = weakref.ref(optimizer)
        self._first: list[Row] = []
        self._last: deque[Row] = deque(maxlen=_MAX_LAST)
        #: The row of the update under way, or of the last one.
        self.row: Row | None = None
        self.updates = 0
        #: Whether a backward pass ended since its last update.
        self.backward_since = False
        #: Parameters that have had a gradient in one of its updates, by identity; None: judged.
        self.had_gradient: set[int] | None = set()
        self.clearing = Clearing()
        self.changes = Changes()

    @property
    def all(self) -> list[Row]:
        return [*self._first, *self._last]

    def add(self, row: Row) -> Row:
        (self._first if len(self._first) < _MAX_FIRST else self._last).append(row)
        return row


class Clearing:
    """Whether gradients are cleared between two updates of their optimizer.

    A gradient is cleared if it is another object than at the last update, or if it was written to outside of
    a backward pass (zeroed in place). A GAN's second backward pass runs into the first one's gradients before
    these are cleared, so this is judged at the optimizer's own next update.
    """

    def __init__(self) -> None:
        #: A parameter, its gradient and its version at the end of the update or of the last backward pass.
        self._probes: list[tuple[Any, Any, int]] = []
        self._chosen: list[weakref.ref[Any]] = []
        self._cleared = True
        self._in_a_row = 0
        #: Identity and version of their gradients when the backward pass began.
        self._begun: list[tuple[int, int]] = []

    def backward_begins(self) -> None:
        if not self._cleared:
            self._cleared = any(_replaced(*one[:2]) or _version(one[1]) != one[2] for one in self._probes)
        self._begun = self._gradients()

    def is_reached(self) -> bool:
        """Whether the backward pass made gradients of this optimizer; True: there is none to tell it by."""
        return not self._begun or self._begun != self._gradients()

    def _gradients(self) -> list[tuple[int, int]]:
        held = [one.grad for parameter, _, _ in self._probes if (one := parameter()) is not None]
        return [(id(one), -1 if one is None or one.is_inference() else one._version) for one in held]

    def backward_ended(self) -> None:
        if not self._cleared:
            self._probes = [(*probe[:2], _version(probe[1])) for probe in self._probes]

    def before_update(self, parameters: list[Any], backward_since: bool) -> int:
        """How many updates in a row were made without clearing. parameters: those with a gradient."""
        chosen = parameters[:: max(1, len(parameters) // _MAX_PROBES)][:_MAX_PROBES]
        self._chosen = [weakref.ref(one) for one in chosen]
        if not self._probes or not backward_since:
            return 0
        if self._cleared or any(_replaced(*probe[:2]) for probe in self._probes):
            self._in_a_row = 0
        elif self._in_a_row or any(_holds_values(probe[1]) for probe in self._probes):
            self._in_a_row += 1  # else zeroed between the backward pass and the update
        return self._in_a_row

    def updated(self) -> None:
        alive = [(one, found.grad) for one in self._chosen if (found := one()) is not None]
        probes = [(one, weakref.ref(gradient)) for one, gradient in alive if gradient is not None]
        self._probes = [(*one, _version(one[1])) for one in probes]
        self._cleared = False


def _version(gradient: Any) -> int:
    found = gradient()
    return -1 if found is None or found.is_inference() else int(found._version)


def _holds_values(gradient: Any) -> bool:
    """Waits for a device, so it is asked only on a suspicion."""
    found = gradient()
    return found is not None and (found.is_sparse or bool(found.any()))


def _replaced(parameter: Any, gradient: Any) -> bool:
    owner, found = parameter(), gradient()
    return owner is None or found is None or owner.grad is not found


class Changes:
    """How far an update moves the weights."""

    def __init__(self) -> None:
        #: Until the update is done: weights, and their values before it.
        self._before: list[tuple[weakref.ref[Any], Any]] = []

    def before_update(self, parameters: list[Any]) -> None:
        weights = [one for one in parameters if one.dim() > 1 and not one.is_sparse]
        self._before = [(weakref.ref(one), _values(one).clone()) for one in weights]

    def updated(self, row: Row, rate: float, readings: Readings) -> None:
        before, self._before = self._before, []
        stack = sys.modules["torch"].stack
        means = {
            (one, alive[0].numel()): stack(
                [(_values(alive) - old).abs().float().mean(), old.abs().float().mean()]
            )
            for one, old in before
            if rate != 0 and (alive := one()) is not None
        }
        readings.read_each(means, row.changes)


def _values(parameter: Any) -> Any:
    whole = parameter.to_local() if is_sharded(parameter) else parameter
    return whole.detach().reshape(-1)[:_MAX_ELEMENTS]


def read_initial(row: Row, names: Names, parameters: list[Any], readings: Readings) -> None:
    """The layers of an optimizer before its first update."""
    owners = names.owners()
    modules = dict(owners[id(one)] for one in parameters if id(one) in owners)
    weights = {name: layer_weight(module) for name, module in modules.items()}
    layers = {
        (name, one[0].numel()): one.detach()
        for name, one in weights.items()
        if one is not None and one.is_floating_point() and one.numel()
    }
    stack = sys.modules["torch"].stack
    means = {
        layer: stack([one.float().square().mean().sqrt(), (one == 0).float().mean(), _rows_alike(one)])
        for layer, one in layers.items()
    }
    readings.read_each(means, row.initial)


def _rows_alike(weight: Any) -> Any:
    """1.0 if there are several units, each of several values, and all are the same."""
    torch = sys.modules["torch"]
    if weight.shape[0] < 2 or weight[0].numel() < 2:
        return torch.zeros((), device=weight.device)
    return (weight == weight[:1]).all().float()


def layer_weight(module: Any) -> Any:
    """Weight of a dense or convolutional layer; None: of another one.

    A weight that is computed, as that of spectral_norm, would be computed once more if it was asked for.
    """
    torch = sys.modules["torch"]
    is_layer = isinstance(module, torch.nn.Linear | torch.nn.modules.conv._ConvNd)
    weight = dict(parameters_in(module)).get("weight") if is_layer else None
    return weight if type(weight) is torch.nn.Parameter else None


class DeadUnits:
    """Units whose gradient is exactly 0. No activation is needed: a unit that is cut off has no gradient."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._alive: dict[int, Any] = {}
        self._layers: list[tuple[str, Any]] | None = None
        self._samples = 0

    def before_update(
        self, row: Row, parameters: list[Any], gradients: list[Any], samples: int, readings: Readings
    ) -> None:
        """One sample; the row of every ``samples``-th one has the units that none of them reached."""
        if self._layers is None:
            self._layers = self._hidden_layers()
        known = {id(one): gradient for one, gradient in zip(parameters, gradients, strict=True)}
        self._samples += 1
        for _, reference in self._layers:
            weight = reference()
            gradient = known.get(id(weight))
            if gradient is None or gradient.is_sparse or is_sharded(gradient):
                self._alive.pop(id(weight), None)
                continue
            moved = gradient.detach().flatten(1).ne(0).any(1)
            before = self._alive.get(id(weight))
            self._alive[id(weight)] = moved if before is None else moved | before
        if self._samples % samples:
            return
        alive = [(name, self._alive.get(id(weight()))) for name, weight in self._layers]
        dead = {(name, one.numel()): (~one).sum().reshape(1) for name, one in alive if one is not None}
        self._alive.clear()
        readings.read_each(dead, row.dead)

    def _hidden_layers(self) -> list[tuple[str, Any]]:
        """Dense and convolutional layers but the last of each model, of which a loss may use few outputs."""
        found: list[tuple[str, Any]] = []
        for model in self._names.models:
            inside = {id(module) for _, module in modules_in(model)}
            layers = [
                (name, weakref.ref(weight))
                for name, module in self._names.modules()
                if id(module) in inside
                and (weight := layer_weight(module)) is not None
                # The rows of these are outputs, those of transposed convolutions are inputs.
                and not getattr(module, "transposed", False)
            ]
            found += layers[:-1]
        return found


def parameters_of(optimizer: Any) -> list[Any]:
    return [one for group in optimizer.param_groups for one in group["params"]]


def with_gradients(optimizer: Any) -> tuple[list[Any], list[Any]]:
    """Its parameters that have a gradient, and these. In one pass, because it runs in each step."""
    parameters, gradients = [], []
    for group in optimizer.param_groups:
        for one in group["params"]:
            gradient = one.grad if is_tensor(one) else None
            if gradient is not None and is_tensor(gradient):
                parameters.append(one)
                gradients.append(gradient)
    return parameters, dense(gradients)


def rate_of(optimizer: Any) -> float:
    """The largest learning rate of its groups."""
    rates = [group.get("lr", 1.0) for group in optimizer.param_groups]
    known = [float(one) for one in rates if type(one) in (int, float) or (is_tensor(one) and one.is_cpu)]
    return max(known, default=1.0)
