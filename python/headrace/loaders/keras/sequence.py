"""Stands for a PyDataset in its workers: each batch is a call of the operator that has its name."""

from __future__ import annotations

import multiprocessing
import os
import threading
from typing import Any

from headrace import _core
from headrace.common.handlers import let_through
from headrace.loaders.torch_dataloader.operators import Plan
from headrace.record.session import join_run


class _Fetcher:
    """What `TimedFetch` needs: an object that makes a batch."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset

    def fetch(self, index: Any) -> Any:
        return self.dataset[index]


class RecordedSequence:
    """Reads ``dataset[index]``, in threads of this process or in processes of a pool."""

    def __init__(self, dataset: Any, live_path: str, loader: Any) -> None:
        """loader: its ``value`` is the loader's number, below 0 until the loop begins."""
        self._dataset = dataset
        self._live_path = live_path
        self._loader = loader
        self._home = os.getpid()
        self._of_thread = threading.local()
        self._is_named = False  #: the functions that take the time, by one of the threads

    def __getstate__(self) -> tuple[Any, ...]:
        return self._dataset, self._live_path, self._loader

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.__init__(*state)  # type: ignore[misc]
        self._home = -1

    def __getitem__(self, index: Any) -> Any:
        fetch = getattr(self._of_thread, "fetch", None)
        if fetch is None:
            if self._loader.value < 0:
                return self._dataset[index]
            fetch = self._of_thread.fetch = self._timed()
        return fetch(index)

    def _timed(self) -> Any:
        in_process = os.getpid() != self._home
        fetcher = self._of_thread.fetcher = _Fetcher(self._dataset)
        try:
            if in_process and not join_run(self._live_path):
                return fetcher.fetch
            walk = Plan(self._loader.value, "workers", in_front=-1)  # the model's first stage
            walk.visit_dataset(self._dataset)
            walk.add(None, "dataset", self._dataset, lambda: walk.timed_dataset(self._dataset))
            named, self._is_named = self._is_named, True
            is_first = _is_first_of_pool() if in_process else not named
            return walk.timed(fetcher, is_first)
        except Exception as error:
            let_through(error)
            _core.miss(self._loader.value, _core.NO_WORKER_DETAIL)
            return fetcher.fetch


def _is_first_of_pool() -> bool:
    """One process names the functions that take the workers' time."""
    return multiprocessing.current_process().name.endswith("-1")
