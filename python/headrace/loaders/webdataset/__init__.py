"""WebDataset's pipelines, stage by stage, alone and inside a DataLoader.

adapter   detects a pipeline, and records loops over it
stages    times the stages of a pipeline
"""

from __future__ import annotations

import sys

from headrace.loaders.kit import libraries
from headrace.loaders.webdataset.adapter import WebDatasetAdapter
from headrace.loaders.webdataset.stages import STAGES

libraries.adapters.append(WebDatasetAdapter())
libraries.streams.append(STAGES)

#: `record_every_loader` is called after their import (`tools/loader_modules.py`).
RECORDED_AFTER = {"webdataset": "pipeline.py"}


def record_every_loader() -> None:
    """From now on each loop over a pipeline in this process is recorded (``headrace run``)."""
    from headrace.loaders.kit import every_loop

    every_loop.patch(sys.modules["webdataset"].DataPipeline, WebDatasetAdapter())


__all__ = ["WebDatasetAdapter", "record_every_loader"]
