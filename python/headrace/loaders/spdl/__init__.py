"""SPDL's pipelines (spdl.pipeline), stage by stage.

adapter     detects a pipeline
attachment  records it
graph       reads stages and queues of a built pipeline
probes      times what a stage calls, and follows a queue's level
settings    a pipeline's structure and settings, as its user would write them
every       records all pipelines of a process (``headrace run``)
"""

from headrace.loaders.kit import libraries
from headrace.loaders.spdl.adapter import SpdlAdapter

libraries.adapters.append(SpdlAdapter())

#: `record_every_loader` is called after their import (`tools/loader_modules.py`).
RECORDED_AFTER = {"spdl.pipeline": ""}


def record_every_loader() -> None:
    """From now on each pipeline of this process is recorded when it is iterated over."""
    from headrace.loaders.spdl import every

    every.record_every_loader()


__all__ = ["SpdlAdapter", "record_every_loader"]
