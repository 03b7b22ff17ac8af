"""torchdata's nodes (torchdata.nodes), thread by thread.

adapter     detects a Loader or a node
attachment  records it
graph       reads the nodes, and which thread runs which
probes      times nodes, follows the queues behind threads
settings    the nodes' structure and settings, as their user would write them
"""

from __future__ import annotations

from headrace.loaders.kit import libraries
from headrace.loaders.torchdata_nodes.adapter import NodesAdapter

libraries.adapters.append(NodesAdapter())

#: `record_every_loader` is called after their import (`tools/loader_modules.py`).
RECORDED_AFTER = {"torchdata.nodes": ""}


def record_every_loader() -> None:
    """From now on each Loader of this process is recorded when it is iterated over (``headrace run``)."""
    import sys

    from headrace.loaders.kit import every_loop

    adapter = NodesAdapter()
    every_loop.patch(sys.modules["torchdata.nodes"].Loader, adapter)


__all__ = ["NodesAdapter", "record_every_loader"]
