"""Hugging Face's datasets: streams stage by stage, alone and inside a DataLoader; transforms of tables.

adapter   detects a dataset, and records loops over it
stages    times the stages of a stream
"""

from __future__ import annotations

import sys

from headrace.loaders.huggingface.adapter import DatasetsAdapter
from headrace.loaders.huggingface.stages import STAGES
from headrace.loaders.kit import libraries

libraries.adapters.append(DatasetsAdapter())
libraries.streams.append(STAGES)

#: `record_every_loader` is called after their import (`tools/loader_modules.py`).
RECORDED_AFTER = {"datasets": "iterable_dataset.py"}


def record_every_loader() -> None:
    """From now on each loop over a dataset in this process is recorded (``headrace run``)."""
    from headrace.loaders.kit import every_loop

    adapter = DatasetsAdapter()
    for module, name in (("iterable_dataset", "IterableDataset"), ("arrow_dataset", "Dataset")):
        kind = getattr(sys.modules[f"datasets.{module}"], name)
        for method in ("__iter__", "iter"):  # rows, or batches of them
            every_loop.patch(kind, adapter, method)


__all__ = ["DatasetsAdapter", "record_every_loader"]
