"""TRL's trainers that generate: each ``_prepare_inputs()`` is a GetNext, with what it calls as operators.

Their queue between a rollout worker and the trainer (`AsyncGRPOTrainer`) is a queue of threads or processes.
"""

from __future__ import annotations

import sys

from headrace.loaders.kit import every_next
from headrace.loaders.kit.rollouts import Part, RolloutAdapter

_GRPO, _RLOO = "trl.trainer.grpo_trainer", "trl.trainer.rloo_trainer"
_TRAINERS = ((_GRPO, "GRPOTrainer"), (_RLOO, "RLOOTrainer"))
_WEIGHTS = "trl.generation.vllm_generation"

#: `record_every_loader` is called after their import (`tools/loader_modules.py`).
RECORDED_AFTER = {_GRPO: "", _RLOO: ""}


def _adapter(module: str, owner: str) -> RolloutAdapter:
    return RolloutAdapter(
        "trl",
        "rollout",
        "generate beside the training: vLLM in server mode, or an asynchronous trainer (AsyncGRPOTrainer); "
        "or train longer on each rollout (num_iterations)",
        (
            Part(module, owner, "_generate", "generation"),
            Part(module, owner, "_calculate_rewards", "reward"),
            Part(_WEIGHTS, "VLLMGeneration", "sync_weights", "weight_sync"),
        ),
        behind=("transformers", "accelerate"),
    )


ADAPTERS = {place: _adapter(*place) for place in _TRAINERS}


def record_every_loader() -> None:
    """From now on the rollouts of each such trainer in this process are recorded (``headrace run``)."""
    for (module, owner), adapter in ADAPTERS.items():
        kind = getattr(sys.modules.get(module), owner, None)
        if kind is not None and hasattr(kind, "_prepare_inputs"):
            every_next.patch(kind, adapter, lambda obj: False, method="_prepare_inputs")
