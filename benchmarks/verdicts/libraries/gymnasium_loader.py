"""Vectorised environments of gymnasium, stepped one after the other, or in processes with workers."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from drawn import DRAWN, make, train


class Environment(gymnasium.Env[Any, Any]):
    observation_space = gymnasium.spaces.Box(-1, 1, (4,))
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        return np.zeros(4, np.float32), {}

    def step(self, action: Any) -> Any:
        make(1 / max(1, DRAWN.workers))
        return np.zeros(4, np.float32), 0.0, False, False, {}


if __name__ == "__main__":
    kind = gymnasium.vector.AsyncVectorEnv if DRAWN.workers else gymnasium.vector.SyncVectorEnv
    environments = kind([Environment] * max(1, DRAWN.workers))
    environments.reset()
    actions = environments.action_space.sample()
    train(lambda: environments.step(actions))
    environments.close()
