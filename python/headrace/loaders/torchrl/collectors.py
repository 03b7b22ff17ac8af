"""torchrl's collectors: a loop over one waits for the rollouts, made in the loop's thread or in processes."""

from __future__ import annotations

import sys
from typing import Any

from headrace.loaders.kit import every_loop
from headrace.loaders.kit.base import classes_of
from headrace.loaders.kit.rollouts import Part, RolloutAdapter

_MODULE = "torchrl.collectors._base"
_PARTS = (Part("torchrl.envs.common", "EnvBase", "step_and_maybe_reset", "env_step"),)
_OVERLAP = (
    "collect beside the training: MultiAsyncCollector, with more processes as long as cores are idle; or "
    "make the environments' step cheaper"
)


def _processes(collector: Any) -> int:
    return int(getattr(collector, "num_workers", 0) or 0)


class CollectorAdapter(RolloutAdapter):
    """A ``Collector``, and those with processes: ``MultiSyncCollector``, ``MultiAsyncCollector``."""

    def __init__(self) -> None:
        super().__init__("torchrl", "rollout", _OVERLAP, _PARTS, _processes, "num_workers")

    def detect(self, obj: object) -> int:
        return 50 if isinstance(obj, classes_of(_MODULE, "BaseCollector")) else 0


ADAPTER = CollectorAdapter()


def record_every_loader() -> None:
    """From now on each loop over a collector in this process is recorded."""
    kind = getattr(sys.modules.get(_MODULE), "BaseCollector", None)
    if kind is not None:
        every_loop.patch(kind, ADAPTER)
