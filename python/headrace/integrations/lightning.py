"""Lightning: ``Trainer(callbacks=[HeadraceCallback()])``."""

from __future__ import annotations

import os
from typing import Any

from headrace.errors import UsageError
from headrace.integrations._loops import Loops
from headrace.results.report import Report

try:
    from lightning.pytorch.callbacks import Callback
    from lightning.pytorch.utilities import rank_zero_info
except ImportError:
    try:
        from pytorch_lightning.callbacks import Callback
        from pytorch_lightning.utilities import rank_zero_info
    except ImportError:
        raise UsageError("headrace.integrations.lightning needs Lightning: pip install lightning") from None

#: Lightning's stages, as reports call them. The sanity check runs the loader that validates later.
_ROLES = {"train": "train", "validate": "validation", "sanity_check": "validation"}


class HeadraceCallback(Callback):  # type: ignore[misc]
    """Records the trainer's DataLoaders, and says after each epoch what held its loops up.

    The verdict goes to Lightning's log, on rank 0. The figures of the epoch go to the trainer's loggers:
    ``headrace/train/wait_ratio`` and so on (docs/integrations.md lists them).
    """

    def __init__(self, run: str | os.PathLike[str] | None = None) -> None:
        """run: the run folder; default as for `hr.wrap`."""
        super().__init__()
        self._loops = Loops(run, self._role_now)
        self._trainer: Any = None

    @property
    def reports(self) -> dict[str, Report]:
        """Since the beginning, by what they are of: ``"train"``, ``"validation"``."""
        return self._loops.reports

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Lightning makes the iterators of its loops after it."""
        self._trainer = trainer
        # Processes that Lightning launches itself have no RANK in its environment.
        self._loops.begin(trainer.global_rank if trainer.world_size > 1 else None)

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        self._say(trainer)

    def on_validation_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        if trainer.state.fn != "fit":  # else at the end of the epoch that it belongs to
            self._say(trainer)

    def on_test_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        self._say(trainer)

    def on_predict_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        self._say(trainer)

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        self._loops.end()
        self._trainer = None

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """Lightning calls no `teardown` then."""
        self._loops.end()

    def _role_now(self) -> str:
        stage = getattr(getattr(self._trainer, "state", None), "stage", None)
        name = str(getattr(stage, "value", stage) or "")
        return _ROLES.get(name, name)

    def _say(self, trainer: Any) -> None:
        for epoch in self._loops.epoch():
            rank_zero_info(epoch.sentence)
            figures = {f"headrace/{name}": value for name, value in epoch.figures.items()}
            for logger in trainer.loggers if trainer.is_global_zero else ():
                logger.log_metrics(figures, step=trainer.global_step)
