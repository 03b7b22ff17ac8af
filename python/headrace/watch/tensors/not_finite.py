"""A loss or a gradient that is NaN or Inf: where it began, and which samples were in the batch."""

from __future__ import annotations

import math
import sys
import weakref
from collections.abc import Callable
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

from headrace.watch.batches import Taken
from headrace.watch.datasets import file_of
from headrace.watch.fields import array_of, fields_of
from headrace.watch.rows import Field
from headrace.watch.rules import Hit
from headrace.watch.tensors.names import Names, weights_of
from headrace.watch.tensors.torch_hooks import ModuleCalls
from headrace.watch.tensors.values import Readings, dense, is_tensor, norms

#: Findings whose batch is searched (a pass over all of it), those after which a step is observed (some
#: microseconds more for each module), and calls of outermost modules in such a step.
_MAX_SEARCHED, _MAX_OBSERVED, _MAX_CALLS = 20, 3, 64

_SKIP = "Correct or remove these samples; until then, skip a batch whose loss is not finite"
_LOSS = "Look for a division by zero, a logarithm or a root of zero in the loss"
_UNKNOWN = "Skip updates whose loss is not finite: the next step that has one then names the module"
_MODULE = "Look for a division by zero, a logarithm of zero or an overflow there; a smaller rate may help"
_SLOPE = "Look for a root, a norm or a division at zero there: its value is finite, its slope is not"


class NotFinite:
    """Hits of ``nonfinite_loss``, ``nonfinite_gradient`` and ``nonfinite_module`` in one training."""

    def __init__(self, names: Names, readings: Readings) -> None:
        #: By kind and place.
        self.hits: dict[tuple[str, str], Hit] = {}
        self._names, self._readings = names, readings
        self._searched = self._observed = 0
        self._first: _FirstModule | None = None
        #: "loss became NaN at step 7", of the first loss.
        self._became = ""
        #: The last step that was observed had finite outputs.
        self._outputs_finite = False

    def loss(self, value: float, step: int, taken: Taken | None) -> None:
        """``value`` is NaN or Inf."""
        known = self.hits.get(("nonfinite_loss", "loss"))
        if self._has_spread():
            if known is not None:
                self._put("nonfinite_loss", known._replace(steps=[step], samples=[]))
            return
        rows, samples = self._bad_rows(taken)
        became = f"loss became {_word(value)} at step {step}"
        self._became = self._became or became
        says, cure = (f"{became}: {rows}", _SKIP) if rows else (became, _UNKNOWN)
        if known is not None:
            says, cure = known.says, known.cure
            if not rows and self._outputs_finite:
                where = "in the loss, because the outputs of the model are finite in a step like it"
                says, cure = f"{self._became}: {where}", _LOSS
        self._put("nonfinite_loss", Hit("loss", says, [step], samples=samples, cure=cure))
        self.close()
        if self._observed < _MAX_OBSERVED:  # the forward pass of the next step
            self._observed += 1
            self._first = _FirstModule(self._names, self._readings, lambda first: self._seen(first, step))

    def gradients(self, named: list[tuple[str, bool]], step: int, taken: Taken | None) -> None:
        """Some are not finite while the loss is.

        named: the parameters in the order of the optimizer, and whether the gradient of each is finite.
        """
        if self._has_spread():
            return
        bad = [at for at, (_, finite) in enumerate(named) if not finite]
        where = named[bad[-1]][0]
        says = f"the gradient of {where} became NaN or Inf at step {step}, and the loss is finite"
        ranks = _ranks()
        if bad[-1] + 1 < len(named):
            says += f": that of {named[bad[-1] + 1][0]} is finite, so it began between the two"
        elif ranks > 1:
            says += f" of this rank: {ranks} ranks average their gradients, so another one may have made it"
        else:
            says += ": it began in the backward pass of the loss or of the last layer"
        rows, samples = self._bad_rows(taken)
        says += f"; {rows}" if rows else ""
        figures = {"parameters": len(bad)}
        hit = Hit(where, says, [step], samples=samples, figures=figures, cure=_SLOPE)
        self._put("nonfinite_gradient", hit)

    def close(self) -> None:
        """A forward pass has ended: nothing of the backward pass is observed."""
        if self._first is not None:
            self._first.close()
            self._first = None

    def _put(self, kind: str, hit: Hit) -> None:
        before = self.hits.get((kind, hit.where), Hit("", ""))
        steps, samples = [*before.steps, *hit.steps], [*before.samples, *hit.samples]
        self.hits[kind, hit.where] = hit._replace(steps=steps, samples=samples, newest=True)

    def _seen(self, first: _FirstModule, step: int) -> None:
        self._outputs_finite = first.outputs_finite
        if first.name and not any(kind == "nonfinite_module" for kind, _ in self.hits):
            self._observed = _MAX_OBSERVED
            self.close()
            what = f"the output of {first.name} ({first.kind}) is not finite in the step after it"
            says = f"{self._became}: {what}, its inputs are"
            loss = "nonfinite_loss", "loss"
            self.hits[loss] = self.hits[loss]._replace(says=says, cure=_MODULE)
            self._put("nonfinite_module", Hit(first.name, says, [step], cure=_MODULE))

    def _has_spread(self) -> bool:
        """Whether the weights are not finite since an earlier hit: what follows is no finding of its own."""
        if not self.hits:
            return False
        found = norms(dense([one for one in weights_of(self._names.models) if is_tensor(one)]))
        return not bool(sys.modules["torch"].isfinite(found).all())

    def _bad_rows(self, taken: Taken | None) -> tuple[str, list[int]]:
        self._searched += 1
        return bad_rows(taken) if self._searched <= _MAX_SEARCHED else ("", [])


def bad_rows(taken: Taken | None) -> tuple[str, list[int]]:
    """The rows of a batch that are not finite, and their dataset indices.

    "batch 20, row 14 of images is not finite: dataset index 137, read by worker 2"; "": no batch is known, or
    what the program still holds of it is finite, or is on a device.
    """
    for name, value in taken.fields() if taken is not None else ():
        array = array_of(value)
        rows = [] if array is None or not array.shape else Field(name, array).nonfinite_rows
        if taken is None or not rows:
            continue
        says = f"batch {taken.step}, row {rows[0]} of {name} is not finite"
        says += f" ({len(rows)} rows are not)" if len(rows) > 1 else ""
        indices = taken.indices or []
        samples = [indices[row] for row in rows if row < len(indices)]
        file = file_of(taken.dataset(), samples[0]) if samples else ""
        known = [f"dataset index {samples[0]}" + (f" ({file})" if file else "")] if samples else []
        known += [f"read by worker {taken.worker}"] if taken.worker >= 0 else []
        return says + (f": {', '.join(known)}" if known else ""), samples
    return "", []


class _Call(NamedTuple):
    """One that ended. A tensor of one bool for each tensor that went in or came out: nothing waits."""

    name: str
    module: weakref.ref[Any]
    outermost: bool
    inputs: list[Any]
    outputs: list[Any]


class _FirstModule:
    """The first module of a forward pass whose output is not finite while its inputs and weights are.

    Observes until `close`; calls ``judged`` after each call of an outermost module.
    """

    def __init__(self, names: Names, readings: Readings, judged: Callable[[_FirstModule], None]) -> None:
        self.name = self.kind = ""
        #: All outputs of outermost modules so far.
        self.outputs_finite = True
        self._readings, self._judged = readings, judged
        #: Modules that run, and the state of their arguments.
        self._running: list[tuple[Any, list[Any]]] = []
        self._ended: list[_Call] = []
        self._calls = 0
        self._hooks = ModuleCalls(names, self._begins, self._ends)

    def close(self) -> None:
        self._hooks.close()
        self._running.clear()

    def _begins(self, module: Any, arguments: Any) -> None:
        self._running.append((module, _not_finite(arguments)))

    def _ends(self, name: str, module: Any, named: Any, output: Any) -> None:
        while self._running and self._running[-1][0] is not module:
            self._running.pop()  # its forward pass raised an exception
        if not self._running:
            return
        inputs = self._running.pop()[1] + _not_finite(named)
        outermost = not self._running
        self._ended.append(_Call(name, weakref.ref(module), outermost, inputs, _not_finite(output)))
        if not outermost:
            return
        calls, self._ended = self._ended, []
        flat = [one for call in calls for one in (*call.inputs, *call.outputs)]
        if flat:
            together = [one.to(flat[-1].device, non_blocking=True) for one in flat]
            self._readings.read(sys.modules["torch"].stack(together), lambda bad: self._judge(calls, bad))
        self._calls += 1
        if self._calls >= _MAX_CALLS:
            self.close()

    def _judge(self, calls: list[_Call], bad: list[float]) -> None:
        sizes = (size for call in calls for size in (len(call.inputs), len(call.outputs)))
        states = [any(bad[begin:end]) for begin, end in pairwise(accumulate(sizes, initial=0))]
        for call, inputs, outputs in zip(calls, states[::2], states[1::2], strict=True):
            self.outputs_finite = self.outputs_finite and not (call.outermost and outputs)
            module = call.module()
            # Weights that are not finite come from the update before, and say nothing of where it began.
            if outputs and not inputs and not self.name and _has_finite_weights(module):
                self.name, self.kind = call.name, type(module).__name__
        self._judged(self)


def _not_finite(value: Any) -> list[Any]:
    """NaN or +Inf. -Inf is what masks are made of."""
    torch = sys.modules["torch"]
    tensors = [one for _, one in fields_of(value) if is_tensor(one) and one.is_floating_point()]
    return [(torch.isnan(one) | torch.isposinf(one)).any() for one in dense(tensors)]


def _has_finite_weights(module: Any) -> bool:
    """And all modules inside; False: it is gone."""
    weights = [] if module is None else [one for one in weights_of([module]) if is_tensor(one)]
    return module is not None and bool(sys.modules["torch"].isfinite(norms(dense(weights))).all())


def _word(value: float) -> str:
    return "NaN" if math.isnan(value) else ("Inf" if value > 0 else "-Inf")


def _ranks() -> int:
    distributed = sys.modules["torch"].distributed
    together = distributed.is_available() and distributed.is_initialized()
    return int(distributed.get_world_size()) if together else 1


def finite_each(gradients: list[Any]) -> list[bool]:
    """Asked only when a norm is not: a norm overflows from gradients of 1e19, all of them finite."""
    torch = sys.modules["torch"]
    return [bool(torch.isfinite(one).all()) for one in gradients]
