"""Who takes part: rules on the recorded profile, and tools that run by themselves."""

from __future__ import annotations

from types import ModuleType

from peers import gpuprof, largest_busy, loadtune, median_wait, spdl_rule, traceml

#: Have `NAME`, `NOTIONS` and `judge(profile)`.
RULES: list[ModuleType] = [spdl_rule, largest_busy, median_wait]
#: Have `NAME`, `NOTIONS`, `unable(drawn)`, `command(python, folder)` and `answer(drawn, found)`.
TOOLS: list[ModuleType] = [loadtune, gpuprof, traceml]

NOTIONS: dict[str, tuple[str, ...]] = {each.NAME: each.NOTIONS for each in [*RULES, *TOOLS]}
