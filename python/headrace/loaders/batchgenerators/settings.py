"""An augmenter as data: its processes, its queues, and their parameters."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

from headrace.loaders.batchgenerators.producer import HANDS_OVER, MAKES
from headrace.results.loader_model import (
    LoaderBuffer,
    LoaderDelivery,
    LoaderModel,
    LoaderParameter,
    LoaderStage,
)


class Sizes(NamedTuple):
    """How many batches wait in front of the thread that hands them over, and behind it."""

    made: int
    received: int


def cached_name(augmenter: Any) -> str:
    """The parameter that sets the sizes of its queues."""
    return "num_cached" if hasattr(augmenter, "num_cached") else "num_cached_per_queue"


def _keeps_order(augmenter: Any) -> bool:
    """A queue for each worker, from which batches are taken in turn."""
    return cached_name(augmenter) == "num_cached_per_queue"


def sizes_of(augmenter: Any) -> Sizes:
    cached, workers = int(getattr(augmenter, cached_name(augmenter))), int(augmenter.num_processes)
    if _keeps_order(augmenter):
        return Sizes(cached * workers, max(3, cached * workers // 2))
    return Sizes(cached, cached)


def queues_of(augmenter: Any) -> list[Any]:
    """What its workers put batches into; empty before they start."""
    one = getattr(augmenter, "_queue", None)
    return [one] if one is not None else list(getattr(augmenter, "_queues", ()))


def results_of(augmenter: Any) -> Any:
    """What the loop takes batches from; None before its workers start."""
    return getattr(augmenter, "results_loop_queue", None) or getattr(augmenter, "pin_memory_queue", None)


def _where() -> str:
    return "in nnU-Net set nnUNet_n_proc_DA in the environment" if "nnunetv2" in sys.modules else ""


def model_of(augmenter: Any) -> LoaderModel:
    """Worker processes, the queues between them and a thread, and the queue that the loop takes from."""
    sizes, cached, keeps_order = sizes_of(augmenter), cached_name(augmenter), _keeps_order(augmenter)
    workers = int(augmenter.num_processes)
    return LoaderModel(
        framework="batchgenerators",
        stages=[
            LoaderStage(name="order"),
            LoaderStage(
                name="processes",
                workers=workers,
                runs_in="process",
                ordered=keeps_order,
                widened_by="num_processes",
            ),
            LoaderStage(name="results_loop", runs_in="thread"),
        ],
        buffers=[
            LoaderBuffer(from_=MAKES, to=HANDS_OVER, capacity=sizes.made, set_by=cached),
            LoaderBuffer(from_=HANDS_OVER, to=-1, capacity=sizes.received),
        ],
        delivery=LoaderDelivery(ordered=keeps_order),
        parameters=[
            LoaderParameter(
                name="num_processes", value=workers, min=1, sets="workers", stage=MAKES, set_in=_where()
            ),
            LoaderParameter(
                name=cached,
                value=int(getattr(augmenter, cached)),
                usual=2,
                min=1,
                sets="capacity",
                stage=MAKES,
            ),
            LoaderParameter(name="pin_memory", value=bool(augmenter.pin_memory), usual=False),
        ],
    )


def model_in_loop() -> LoaderModel:
    """Everything runs in the training loop."""
    return LoaderModel(
        framework="batchgenerators",
        stages=[
            LoaderStage(name="order"),
            LoaderStage(name="processes", workers=0, gets_work="own_shard", widened_by="num_processes"),
        ],
        buffers=[LoaderBuffer(from_=MAKES, capacity=0, is_window=True, per_worker=True)],
        parameters=[
            LoaderParameter(
                name="num_processes",
                value=0,
                usual=0,
                min=0,
                sets="workers",
                set_in=_where() or "pass it to NonDetMultiThreadedAugmenter(data_loader, transform, ...)",
            )
        ],
    )
