"""Keras: ``model.fit(loader, callbacks=[HeadraceCallback()])``."""

from __future__ import annotations

import os
import sys
from typing import Any

from headrace.errors import UsageError
from headrace.integrations._loops import Loops
from headrace.loaders.tfdata import TfDataAdapter, keras_fit
from headrace.record.session import enabled
from headrace.results.report import Report

try:
    from absl import logging
    from keras.callbacks import Callback
    from keras.config import is_interactive_logging_enabled
except ImportError:
    raise UsageError("headrace.integrations.keras needs it: pip install keras") from None


#: Keras prints every figure of an epoch in one line.
_LOGGED = ("/exposed_wait_ratio", "/wait_ratio", "/starved_ratio", "/step_seconds")


class HeadraceCallback(Callback):  # type: ignore[misc]
    """Records what `fit`, `evaluate` and `predict` read, and says what held their loops up.

    That is DataLoaders and, with Keras on TensorFlow, datasets of ``tf.data`` (not in `predict`).

    The verdict goes where Keras prints its progress, or to absl's log where that is switched off. Waits and
    step of each epoch are put among its logs, so that ``History`` and the callbacks behind this one have
    them: ``headrace/train/exposed_wait_ratio``, ``wait_ratio``, ``starved_ratio``, ``step_seconds``.
    """

    def __init__(self, run: str | os.PathLike[str] | None = None) -> None:
        """run: the run folder; default as for `hr.wrap`."""
        super().__init__()
        self._role = ""
        self._loops = Loops(run, lambda: self._role)
        self._fits = False

    @property
    def reports(self) -> dict[str, Report]:
        """Since the beginning, by what they are of: ``"train"``, ``"validation"``."""
        return self._loops.reports

    def on_train_begin(self, logs: Any = None) -> None:
        self._fits = True
        self._begin("train")

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._role = "train"

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        figures = self._say()
        if logs is not None:
            logs.update(figures)

    def on_train_end(self, logs: Any = None) -> None:
        self._fits = False
        self._over()

    def on_test_begin(self, logs: Any = None) -> None:
        self._begin("validation" if self._fits else "test")

    def on_test_end(self, logs: Any = None) -> None:
        self._end()

    def on_predict_begin(self, logs: Any = None) -> None:
        self._begin("predict")

    def on_predict_end(self, logs: Any = None) -> None:
        self._end()

    def _begin(self, role: str) -> None:
        self._role = role
        self._loops.begin()
        if enabled() and keras_fit.TRAINER in sys.modules:
            keras_fit.install(TfDataAdapter())
            keras_fit.begin(self._loops, self.model)

    def _over(self) -> None:
        keras_fit.end()
        self._loops.end()

    def _end(self) -> None:
        if not self._fits:  # else at the end of the epoch that it belongs to
            self._say()
            self._over()

    def _say(self) -> dict[str, float]:
        figures: dict[str, float] = {}
        for epoch in self._loops.epoch():
            if is_interactive_logging_enabled():
                print(epoch.sentence)
            else:
                logging.info(epoch.sentence)
            for name, value in epoch.figures.items():
                if name.endswith(_LOGGED):
                    figures[f"headrace/{name}"] = value
        return figures
