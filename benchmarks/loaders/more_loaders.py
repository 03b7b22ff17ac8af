"""Ray Data, DALI, `hr.get_next` and `hr.wrap` of a function for drawn cases."""

import sys
import time
from collections.abc import Iterator
from typing import Any

import cases
import numpy as np
from cases import SAMPLES, SHARDS, Case

import headrace as hr


def ray_data(case: Case) -> tuple[Any, str]:
    """Operators with different `num_cpus` are tasks of their own; Ray's own work is much of a short one."""
    import ray

    if not ray.is_initialized():
        ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    for module in (sys.modules[__name__], cases):
        ray.cloudpickle.register_pickle_by_value(module)

    def reads(batch: Any) -> Any:
        if case.source_s:
            time.sleep(case.source_s * len(batch["id"]))
        return batch

    def calls(function: Any) -> Any:
        def call(batch: Any) -> Any:
            for row in batch["id"]:
                function(row)
            return batch

        call.__name__ = call.__qualname__ = function.__name__
        return call

    dataset = ray.data.range(40 * case.batch_size, override_num_blocks=40)
    dataset = dataset.map_batches(reads, batch_size=case.batch_size, concurrency=1)
    for function in case.idle_functions()[:1]:
        dataset = dataset.map_batches(calls(function), batch_size=case.batch_size, num_cpus=0.4)
    dataset = dataset.map_batches(
        calls(case.function()), batch_size=case.batch_size, num_cpus=0.5, concurrency=case.workers
    )
    collate = case.collate()

    def collates(batch: Any) -> Any:
        collate(batch)
        return batch

    collates.__name__ = collates.__qualname__ = collate.__name__
    dataset = dataset.map_batches(collates, batch_size=case.batch_size, num_cpus=0.6, concurrency=1)
    return dataset.iter_batches(batch_size=case.batch_size, prefetch_batches=2), "reads"


def dali(case: Case) -> tuple[Any, str]:
    """Callbacks are the user's; what DALI's own operators take is shown as DALI's.

    Rows are large only where DALI works on them: it copies them in the training loop's thread.
    """
    size = 640 if case.kind in ("map", "cpu") else 4
    from nvidia import dali as nvidia
    from nvidia.dali.plugin.base_iterator import _DaliBaseIterator

    class Reads:
        def __call__(self, sample: Any) -> Any:
            if sample.idx_in_epoch >= SHARDS * SAMPLES:
                raise StopIteration
            if case.source_s:
                time.sleep(case.source_s)
            return np.full((size, size, 3), sample.idx_in_epoch % 256, np.uint8)

    collate = case.collate()

    def collated(number: int) -> Any:
        if number * case.batch_size >= SHARDS * SAMPLES:
            raise StopIteration
        return collate([np.full((4,), number, np.float32)] * case.batch_size)

    collated.__name__ = collated.__qualname__ = collate.__name__

    @nvidia.pipeline_def(batch_size=case.batch_size, num_threads=case.workers, device_id=None)
    def rows() -> Any:
        made = nvidia.fn.external_source(Reads(), batch=False)
        if case.kind in ("map", "cpu"):
            made = nvidia.fn.resize(nvidia.fn.gaussian_blur(made, window_size=9), size=(64, 64))
        return made, nvidia.fn.external_source(collated, batch=True)

    pipeline = rows()
    pipeline.build()

    class Batches(_DaliBaseIterator):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__([pipeline], size=-1, auto_reset=False)
            self._first_batch = self._outputs() if self._prepare_first_batch else None

        def _outputs(self) -> Any:
            found = self._get_outputs()
            self._schedule_runs()
            return found

        def __next__(self) -> Any:
            found, self._first_batch = self._first_batch, None
            return found if found is not None else self._outputs()

    return Batches(), "Reads"


class _Batch:
    """Makes a batch with marked functions; nothing runs beside the training loop."""

    def __init__(self, case: Case) -> None:
        self._work, self._collate = hr.operator(case.function()), hr.operator(case.collate())
        self._case = case

        @hr.operator(kind="source")
        def reads() -> int:
            if case.source_s:
                time.sleep(case.source_s)
            return 1

        self._reads = reads

    def __call__(self) -> Any:
        return self._collate([self._work(self._reads()) for _ in range(self._case.batch_size)])


def blocks(case: Case) -> tuple[Iterator[Any], str]:
    make = _Batch(case)

    def batches() -> Iterator[Any]:
        for _ in range(SHARDS * SAMPLES // case.batch_size):
            with hr.get_next("blocks"):
                batch = make()
            yield batch

    return batches(), "reads"


class _Calls:
    """A loop over a recorded function."""

    def __init__(self, case: Case) -> None:
        make = _Batch(case)

        def get_batch() -> Any:
            return make()

        self._get_batch = hr.wrap(get_batch)
        self._count = SHARDS * SAMPLES // case.batch_size

    def __iter__(self) -> Iterator[Any]:
        for _ in range(self._count):
            yield self._get_batch()

    def report(self) -> Any:
        return self._get_batch.report()


def functions(case: Case) -> tuple[Any, str]:
    return _Calls(case), "reads"
