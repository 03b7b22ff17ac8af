"""gymnasium's vectorised environments: each ``step()`` is a GetNext, what follows the training step."""

from __future__ import annotations

import sys
from typing import Any

from headrace.loaders.kit import every_next
from headrace.loaders.kit.rollouts import RolloutAdapter

_SYNC, _ASYNC = "gymnasium.vector.sync_vector_env", "gymnasium.vector.async_vector_env"

#: `record_every_loader` is called after their import (`tools/loader_modules.py`).
RECORDED_AFTER = {_SYNC: "", _ASYNC: ""}


_OVERLAP = (
    "make env.step() cheaper, or step the environments side by side (AsyncVectorEnv) where they run one "
    "after the other; more environments in each step also give more samples for a policy inference"
)


def _processes(envs: Any) -> int:
    return len(getattr(envs, "processes", ()))


ADAPTER = RolloutAdapter("gymnasium", "env_step", _OVERLAP, processes=_processes)


def record_every_loader() -> None:
    """From now on the steps of vectorised environments in this process are recorded (``headrace run``)."""
    for module, owner in ((_SYNC, "SyncVectorEnv"), (_ASYNC, "AsyncVectorEnv")):
        kind = getattr(sys.modules.get(module), owner, None)
        if kind is not None and hasattr(kind, "step"):
            every_next.patch(kind, ADAPTER, lambda obj: False, method="step")
