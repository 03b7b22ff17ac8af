"""stable-baselines3's vectorised environments: each ``step()`` is a GetNext."""

from __future__ import annotations

import sys
from typing import Any

from headrace.loaders.kit import every_next
from headrace.loaders.kit.rollouts import RolloutAdapter

_MODULE = "stable_baselines3.common.vec_env.base_vec_env"

#: `record_every_loader` is called after their import (`tools/loader_modules.py`).
RECORDED_AFTER = {_MODULE: ""}


_OVERLAP = (
    "make env.step() cheaper, or step the environments side by side (SubprocVecEnv) where they run one after "
    "the other; more environments in each step also give more samples for a policy inference"
)


def _processes(envs: Any) -> int:
    """Below the wrappers around it, a ``SubprocVecEnv`` has them."""
    while hasattr(envs, "venv"):
        envs = envs.venv
    return len(getattr(envs, "processes", ()))


ADAPTER = RolloutAdapter("stable_baselines3", "env_step", _OVERLAP, processes=_processes)


def record_every_loader() -> None:
    """From now on the steps of vectorised environments in this process are recorded (``headrace run``)."""
    kind = getattr(sys.modules.get(_MODULE), "VecEnv", None)
    if kind is not None and hasattr(kind, "step"):
        every_next.patch(kind, ADAPTER, lambda obj: False, method="step")
