"""``model.fit(dataset)`` and ``model.evaluate(dataset)`` of Keras on TensorFlow.

Keras draws a batch inside the graph of its step, where nothing can be timed. A recorded step draws its
batches in Python and gives them to the same function of Keras, which takes iterators of Python, too.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from functools import partial
from itertools import islice
from types import FrameType
from typing import Any

from headrace import _core
from headrace.common.messages import warn_once
from headrace.loaders.kit import every_loop
from headrace.loaders.kit.base import Adapter
from headrace.loaders.kit.every_loop import Watcher
from headrace.loaders.kit.names import callers
from headrace.record.session import enabled

TRAINER = "keras.src.backend.tensorflow.trainer"
#: The trainer's method that loops, and the step that it calls.
_STEPS = {"fit": "train_function", "evaluate": "test_function"}
#: Frames of Keras between that method and the beginning of an iteration.
_BETWEEN = 8


class _Recording:
    """The loop that is recorded now."""

    always = False  #: under ``headrace run``
    knows_datasets = False  #: these ask, when a loop over them begins
    watcher: Watcher | None = None


def install(adapter: Adapter) -> None:
    """Keras's steps can be recorded from now on; they are between `begin` and `end`. Idempotent."""
    trainer = getattr(sys.modules.get(TRAINER), "TensorFlowTrainer", None)
    if trainer is None:
        return
    if not all(hasattr(trainer, f"make_{step}") for step in _STEPS.values()):
        warn_once("operator detail unavailable: keras changed make_train_function; fit is not recorded")
        return
    for step in _STEPS.values():
        make = getattr(trainer, f"make_{step}")
        if not isinstance(make, _core.HookedCall):
            setattr(trainer, f"make_{step}", _core.HookedCall(make, None, partial(_made, step)))
    kind: Any = sys.modules["tensorflow.python.data.ops.dataset_ops"].DatasetV2
    if not _Recording.knows_datasets:
        _Recording.knows_datasets = True
        kind.__iter__ = _core.HookedCall(kind.__iter__, None, partial(_batches, adapter))


def begin(watcher: Watcher | None, model: Any = None) -> None:
    """``watcher``: for the loops of its fit; None: until the end of the process. ``model``: has its steps."""
    if watcher is None:
        _Recording.always = True
    else:
        _Recording.watcher = watcher
    for step in _STEPS.values():
        if getattr(model, step, None) is not None:
            _record_step(model, step)


def end() -> None:
    _Recording.watcher = None


class _Batches:
    """The iterator of a loop of Keras. Recorded from its first batch on: Keras makes some and takes none."""

    def __init__(self, bare: Any, recorded: Callable[[], Any]) -> None:
        self.bare = bare
        self._make = recorded
        self._recorded: Any = None

    def __iter__(self) -> _Batches:
        return self

    def __next__(self) -> Any:
        if self._recorded is None:
            self._recorded = self._make()
        return next(self._recorded)


class _Step:
    """A step of Keras that draws the batches of a recorded iterator itself."""

    def __init__(self, bare: Any, trainer: Any) -> None:
        functools.update_wrapper(self, bare)
        self._bare = bare
        self._trainer = trainer

    def __call__(self, iterator: Any) -> Any:
        if type(iterator) is not _Batches:
            return self._bare(iterator)
        batches = list(islice(iterator, self._trainer.steps_per_execution))
        # At the end the graph runs as it does bare: it draws random numbers even then.
        return self._bare(iter(batches) if batches else iterator.bare)


def _record_step(trainer: Any, step: str) -> None:
    bare = getattr(trainer, step)
    if callable(bare) and not isinstance(bare, _Step):
        setattr(trainer, step, _Step(bare, trainer))


def _made(step: str, _: Any, trainer: Any, *__: Any) -> None:
    if _is_on():
        _record_step(trainer, step)


def _batches(adapter: Adapter, bare: Any, dataset: Any) -> Any:
    """In the place of the iterator ``bare`` of a dataset; None: it is no recorded step that asks for it."""
    if not _is_on() or not _is_of_a_recorded_step(sys._getframe(1)):
        return None

    def recorded() -> Any:
        iterator = every_loop.record(dataset, adapter, lambda: bare)
        if _Recording.watcher is not None and (loop := every_loop.loop_of(dataset)) is not None:
            _Recording.watcher.recorded(loop, _Recording.watcher.role())
        return iterator

    return _Batches(bare, recorded)


def _is_on() -> bool:
    return enabled() and (_Recording.always or _Recording.watcher is not None)


def _is_of_a_recorded_step(frame: FrameType | None) -> bool:
    for each in callers(frame, _BETWEEN):
        if each.f_globals.get("__name__") == TRAINER and each.f_code.co_name in _STEPS:
            step = getattr(_core.local_variables(each).get("self"), _STEPS[each.f_code.co_name], None)
            return isinstance(step, _Step)
    return False
