"""Figures of a run for the tools that watch other things already. One file per tool, an extra each."""

from __future__ import annotations

from headrace.export._prometheus import prometheus

__all__ = ["prometheus"]
