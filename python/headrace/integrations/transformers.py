"""Hugging Face Trainer: ``Trainer(..., callbacks=[HeadraceCallback()])``."""

from __future__ import annotations

import os
from typing import Any

from headrace.errors import UsageError
from headrace.integrations._loops import Loops
from headrace.results.report import Report

try:
    from transformers import TrainerCallback
    from transformers.utils import logging
except ImportError:
    raise UsageError("headrace.integrations.transformers needs it: pip install transformers") from None

logger = logging.get_logger("transformers.headrace")


class HeadraceCallback(TrainerCallback):  # type: ignore[misc]
    """Records the trainer's DataLoaders, and says after each epoch what held its loops up.

    On rank 0, the verdict goes to the log of transformers: as a warning if the loop is held up by its
    input, as information if not. The figures of the epoch go to ``trainer.state.log_history``, which the
    trainer saves with its checkpoints: ``headrace/train/wait_ratio`` and so on.
    """

    def __init__(self, run: str | os.PathLike[str] | None = None) -> None:
        """run: the run folder; default as for `hr.wrap`."""
        self._loops = Loops(run)

    @property
    def reports(self) -> dict[str, Report]:
        """Since the beginning, by what they are of: ``"train"``, ``"validation"``."""
        return self._loops.reports

    def on_init_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Before the trainer makes its first loader, so that loaders have the names of their purpose."""
        self._loops.begin()

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._loops.begin()

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._say(state, "train")

    def on_evaluate(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._say(state, "validation")

    def on_predict(self, args: Any, state: Any, control: Any, metrics: Any, **kwargs: Any) -> None:
        self._say(state, "test")

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._say(state, "train")  # an epoch that `max_steps` cut short

    def end(self) -> None:
        """Loops that begin from here on are not recorded. Without it, recording ends with the process:
        a trainer may evaluate after its training.
        """
        self._loops.end()

    def _say(self, state: Any, role: str) -> None:
        for epoch in self._loops.epoch(role):
            if not state.is_world_process_zero:
                continue
            bound = epoch.report.diagnosis.kind in ("input_bound", "intermittent")
            (logger.warning if bound else logger.info)(epoch.sentence)
            figures = {f"headrace/{name}": value for name, value in epoch.figures.items()}
            state.log_history.append({**figures, "epoch": state.epoch, "step": state.global_step})
