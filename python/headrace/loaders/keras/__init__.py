"""Keras' PyDataset on torch, with workers of its own: threads or processes that make batches ahead.

enqueuer   records what its workers run, and the queue that the loop takes from
sequence   stands for the PyDataset in a worker: each batch is a call of its operator

With ``workers`` 0 or 1 it is read in the loop, as any dataset of a DataLoader (`torch_dataloader`).
"""

from __future__ import annotations

_MODULE = "keras.src.trainers.data_adapters.py_dataset_adapter"

#: `record_every_loader` is called after their import (`tools/loader_modules.py`).
RECORDED_AFTER = {_MODULE: ""}


def record_every_loader() -> None:
    """From now on each PyDataset that feeds a recorded DataLoader shows its workers (``headrace run``)."""
    import sys

    from headrace.common.messages import warn_once
    from headrace.loaders.keras import enqueuer

    try:
        enqueuer.install(sys.modules[_MODULE])
    except Exception as error:  # the loop must still run
        warn_once(f"operator detail unavailable: keras is not as its adapter expects ({error!r})")


__all__ = ["record_every_loader"]
