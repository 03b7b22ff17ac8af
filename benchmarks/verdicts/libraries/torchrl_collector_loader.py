"""A collector of torchrl, with processes where there are workers; the environment's step takes the time."""

from __future__ import annotations

from typing import Any

import torch
from drawn import DRAWN, make, train
from tensordict import TensorDict
from tensordict.nn import TensorDictModule
from torchrl.collectors import Collector, MultiAsyncCollector
from torchrl.data import Composite, Unbounded
from torchrl.envs import EnvBase

_FRAMES = 4


class Environment(EnvBase):
    def __init__(self) -> None:
        super().__init__(batch_size=[])
        self.observation_spec = Composite(observation=Unbounded(4))
        self.action_spec = Unbounded(2)
        self.reward_spec = Unbounded(1)

    def _reset(self, tensordict: Any = None, **_: Any) -> Any:
        return TensorDict({"observation": torch.zeros(4), "done": torch.zeros(1, dtype=torch.bool)}, [])

    def _step(self, tensordict: Any) -> Any:
        make(1 / _FRAMES)
        done = torch.zeros(1, dtype=torch.bool)
        return TensorDict({"observation": torch.zeros(4), "reward": torch.zeros(1), "done": done}, [])

    def _set_seed(self, seed: int | None) -> None:
        pass


def main() -> None:
    policy = TensorDictModule(torch.nn.Linear(4, 2), in_keys=["observation"], out_keys=["action"])
    frames = {"frames_per_batch": _FRAMES, "total_frames": _FRAMES * DRAWN.batches}
    if DRAWN.workers:
        collector: Any = MultiAsyncCollector([Environment] * DRAWN.workers, policy, **frames)
    else:
        collector = Collector(Environment, policy, **frames)
    batches = iter(collector)
    train(lambda: next(batches))
    collector.shutdown()


if __name__ == "__main__":
    main()
