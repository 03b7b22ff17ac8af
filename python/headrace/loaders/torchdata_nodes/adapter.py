"""Detects what torchdata.nodes loads with: a Loader, or a node that is iterated over itself."""

from __future__ import annotations

from typing import Any

from headrace.loaders.kit.base import Adapter, Attachment, classes_of


class NodesAdapter(Adapter):
    """A ``Loader`` over nodes, or a node."""

    libraries = ("torchdata",)

    def detect(self, obj: object) -> int:
        return 50 if isinstance(obj, classes_of("torchdata.nodes", "Loader", "BaseNode")) else 0

    def name(self, obj: object) -> str:
        return type(obj).__name__

    def attach(self, obj: Any, name: str | None = None) -> Attachment:
        from headrace.loaders.torchdata_nodes.attachment import NodesAttachment

        return NodesAttachment(obj)
