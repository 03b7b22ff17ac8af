"""Detects what torchdata.nodes loads with: a Loader, or a node that is iterated over itself."""

from __future__ import annotations

import sys
from typing import Any

from headrace.adapters.base import Adapter, Attachment


def _classes() -> tuple[type, ...]:
    module = sys.modules.get("torchdata.nodes")
    found = [getattr(module, name, None) for name in ("Loader", "BaseNode")]
    return tuple(each for each in found if isinstance(each, type))


class NodesAdapter(Adapter):
    """A ``Loader`` over nodes, or a node."""

    library = "torchdata"

    def detect(self, obj: object) -> int:
        classes = _classes()
        return 50 if classes and isinstance(obj, classes) else 0

    def name(self, obj: object) -> str:
        return type(obj).__name__

    def attach(self, obj: Any, name: str | None = None) -> Attachment:
        from headrace.adapters.torchdata_nodes.attachment import NodesAttachment

        return NodesAttachment(obj)
