"""`hr.watch`, and what it returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

from headrace.record.session import enabled
from headrace.results.figures import Finding
from headrace.watch.tensors import interposed
from headrace.watch.tensors.arguments import check_every, check_on_hit, models_of, optimizers_of
from headrace.watch.tensors.conditions import chosen
from headrace.watch.tensors.judge import Judge
from headrace.watch.tensors.reporting import Reporting


def watch(
    model: Any,
    optimizer: Any = None,
    *,
    every: int = 1,
    on_hit: str | Callable[[Finding], object] = "say",
    conditions: Mapping[str, Any] | None = None,
) -> Watch:
    """Say what is wrong with the tensors of a training.

    A loss that became NaN, and with which sample and module; gradients that explode, vanish or are not
    cleared; layers that no update reaches.

        hr.watch(model, optimizer)
        for batch in hr.wrap(loader): ...
        print(loader.report().findings)

    model: the module that the loop calls (for `torch.compile`, DistributedDataParallel: what they return), or
    several. optimizer: one or several; None: those that hold parameters of the models, found when they step.
    every: look at the loss and the gradients in every n-th update. on_hit: "say" logs one line for each new
    finding; "raise" raises WatchError for a fault, out of ``backward()`` or ``optimizer.step()`` before it
    updates; a function is called with each new Finding. conditions: parameters by condition
    (docs/watch.md); ``{"detached": False}`` turns one off.

    Losses, gradients, weights, random states and saved models stay what they are; the models get no hooks. It
    works for one thread that trains, until the returned object's `close` or the end of a ``with`` over it.
    With ``HEADRACE=0`` nothing is watched. Raises UsageError for anything else than torch's modules and
    optimizers.
    """
    parameters = chosen(conditions)
    models, optimizers = models_of(model), optimizers_of(optimizer)
    check_every(every)
    check_on_hit(on_hit)
    watching = Watch(Reporting(on_hit, parameters))
    if enabled():
        watching._judge = Judge(watching._reporting, models, optimizers, every)
        interposed.listen(watching._judge)
    return watching


class Watch:
    """What `watch` returns."""

    def __init__(self, reporting: Reporting) -> None:
        self._reporting = reporting
        self._judge: Judge | None = None

    @property
    def findings(self) -> list[Finding]:
        """What was found so far, faults first. Values of a device arrive one step later."""
        if self._judge is not None:
            self._judge.look()
        return self._reporting.all()

    def close(self) -> None:
        """Stop watching, and take every hook back. Calling it twice is harmless."""
        if self._judge is not None:
            judge, self._judge = self._judge, None
            judge.close()

    def __enter__(self) -> Watch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<headrace.Watch: {len(self._reporting.all())} findings>"
