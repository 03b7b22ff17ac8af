"""Accelerate: ``log_verdicts(accelerator)``, one line before `prepare`."""

from __future__ import annotations

import os
from typing import Any

from headrace.errors import UsageError
from headrace.integrations._loops import Loops
from headrace.results.report import Report

try:
    from accelerate.logging import get_logger
except ImportError:
    raise UsageError("headrace.integrations.accelerate needs it: pip install accelerate") from None

logger = get_logger("accelerate.headrace")


def log_verdicts(accelerator: Any, run: str | os.PathLike[str] | None = None) -> Verdicts:
    """Record the loaders that ``accelerator`` prepares from here on, and judge them after each loop.

        accelerator = Accelerator()
        log_verdicts(accelerator)
        model, optimizer, loader = accelerator.prepare(model, optimizer, loader)

    On the main process, the verdict goes to Accelerate's log: as a warning if the loop is held up by its
    input, as information if not. The figures of each epoch go to the accelerator's trackers, if there are
    any: ``headrace/NAME/wait_ratio`` and so on. run: the run folder; default as for `hr.wrap`.
    """
    return Verdicts(accelerator, Loops(run))


class Verdicts:
    """Holds the recording; ``end()`` ends it before the process does."""

    def __init__(self, accelerator: Any, loops: Loops) -> None:
        self._accelerator = accelerator
        self._loops = loops
        self._epochs = 0
        self._prepare = accelerator.prepare_data_loader
        accelerator.prepare_data_loader = self._prepared
        loops.begin()

    @property
    def reports(self) -> dict[str, Report]:
        """Since the beginning, by the loader's name."""
        return self._loops.reports

    def end(self) -> None:
        """Further loops are not recorded."""
        self._loops.end()

    def _prepared(self, *args: Any, **kwargs: Any) -> Any:
        loader = self._prepare(*args, **kwargs)
        own = type(loader)
        # `prepare` must get an object of its own making back, so the object itself gets the class.
        if "_headrace_verdicts" in own.__dict__ or not hasattr(own, "__iter__"):
            return loader
        namespace = {
            "_headrace_verdicts": self,
            "__iter__": _judged(own, self._say),
            "__module__": own.__module__,
            "__qualname__": own.__qualname__,
            "__reduce_ex__": lambda self, protocol: _reduced(self, own, protocol),
        }
        object.__dict__["__class__"].__set__(loader, type(own.__name__, (own,), namespace))
        return loader

    def _say(self) -> None:
        for epoch in self._loops.epoch():
            bound = epoch.report.diagnosis.kind in ("input_bound", "intermittent")
            (logger.warning if bound else logger.info)(epoch.sentence)
            self._epochs += 1
            if getattr(self._accelerator, "trackers", None):
                figures = {f"headrace/{name}": value for name, value in epoch.figures.items()}
                self._accelerator.log(figures, step=self._epochs)


def _judged(own: type, say: Any) -> Any:
    def __iter__(self: Any) -> Any:  # noqa: N807
        try:
            yield from own.__iter__(self)  # type: ignore[attr-defined]
        finally:
            say()

    return __iter__


def _reduced(loader: Any, own: type, protocol: int) -> Any:
    """In another process it is the loader that Accelerate made."""
    plain: Any = object.__new__(own)
    plain.__dict__.update(loader.__dict__)
    return plain.__reduce_ex__(protocol)
