"""Ray Train: ``TorchTrainer(recorded(train_loop), ...)``."""

from __future__ import annotations

import functools
import inspect
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from headrace.errors import UsageError
from headrace.integrations._loops import Loops
from headrace.results.report import Report

try:
    from ray import train
except ImportError:
    raise UsageError("headrace.integrations.ray needs it: pip install 'ray[train]'") from None

#: Ray Train shows what its workers log here.
logger = logging.getLogger("ray.train")

#: This worker's recording, while its training function runs.
_loops: Loops | None = None


def recorded(train_loop: Callable[..., Any], run: str | os.PathLike[str] | None = None) -> Callable[..., Any]:
    """The training function of a worker, with its DataLoaders recorded.

        trainer = TorchTrainer(recorded(train_loop), scaling_config=...)

    Each worker is a rank of one run folder: ``run``, which all of them must reach, by default the folder
    ``headrace`` in the trial's storage. At the end rank 0 logs the verdict. Call `epoch` for one after each
    epoch. UsageError is raised in the workers if the storage is no file system and ``run`` is not given.
    """
    folder = None if run is None else os.fspath(run)
    # Ray passes the configuration to functions that ask for it.
    called = _run_with if inspect.signature(train_loop).parameters else _run
    return functools.partial(called, train_loop, folder)


def epoch() -> dict[str, float]:
    """Log a verdict for each loader that went on since the last call, on rank 0. Returns this epoch's
    figures: ``ray.train.report({"loss": loss, **epoch()})``. Outside of a recorded function: nothing.
    """
    figures: dict[str, float] = {}
    for one in _loops.epoch() if _loops is not None else ():
        if train.get_context().get_world_rank() == 0:
            logger.info(one.sentence)
        figures |= {f"headrace/{name}": value for name, value in one.figures.items()}
    return figures


def reports() -> dict[str, Report]:
    """Reports of this worker's loaders since the beginning, as of the last `epoch`."""
    return _loops.reports if _loops is not None else {}


def _run_with(train_loop: Callable[..., Any], run: str | None, config: dict[str, Any]) -> Any:
    """In a worker."""
    return _run(functools.partial(train_loop, config), run)


def _run(train_loop: Callable[..., Any], run: str | None) -> Any:
    """In a worker."""
    global _loops
    _loops = Loops(_folder() if run is None else run)
    _loops.begin()
    try:
        result = train_loop()
        epoch()
        return result
    finally:
        _loops.end()
        _loops = None


def _folder() -> Path:
    storage = train.get_context().get_storage()
    if getattr(storage.storage_filesystem, "type_name", "") != "local":
        raise UsageError(
            "the trial's storage is no file system: say where with recorded(train_loop, run=...)"
        )
    return Path(storage.storage_fs_path, storage.experiment_dir_name, "headrace")
