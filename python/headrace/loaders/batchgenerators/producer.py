"""Makes the batches of an augmenter, with its data loader and each of its transforms as operators.

In a worker process it takes the place of the data loader, and does what the augmenter's own function does
there: ``next()`` of the data loader, then the transform.
"""

from __future__ import annotations

import itertools
from typing import Any

from headrace import _core
from headrace.common.handlers import let_through
from headrace.loaders.kit.names import object_name
from headrace.loaders.torch_dataloader.operators import Plan
from headrace.record.session import join_run

#: Stages of the augmenter's model.
ORDER, MAKES, HANDS_OVER = range(3)


class Producer:
    """One for each augmenter, a copy in each worker process. Reaches the worker by fork or by pickle."""

    def __init__(self, generator: Any, transform: Any, live_path: str, loader: int) -> None:
        self.generator = generator
        self.transform = transform
        self._live_path = live_path
        self._loader = loader

    def set_thread_id(self, number: int) -> None:
        """The worker begins."""
        self.generator.set_thread_id(number)
        if not join_run(self._live_path):
            return
        try:
            self.record(names_functions=number == 0)
        except Exception as error:
            let_through(error)
            _core.miss(self._loader, _core.NO_WORKER_DETAIL)

    def record(self, names_functions: bool) -> list[_core.OperatorHandle]:
        """Times what makes a batch from now on. Returns its operators."""
        walk = Plan(self._loader, "num_processes")
        walk.visit_dataset(self.generator)
        source = walk.operator(object_name(self.generator), "source", _core.STAGE_DATASET)
        # An infinite iterator that asks the data loader: the end of an epoch is not the end of the iterator.
        asking: Any = map(next, itertools.repeat(self.generator))
        walk.add(None, "generator", self.generator, lambda: _core.OperatorIterator(asking, source))
        if self.transform is not None and not walk.visit_chain(self.transform):
            walk.time_calls(self.transform)
        self.__dict__["fetch"] = walk.timed(self, names_functions)
        return walk.operators

    def __next__(self) -> Any:
        return self.fetch(None)

    def fetch(self, _: None) -> Any:
        """A batch."""
        item = next(self.generator)
        return item if self.transform is None else self.transform(**item)
