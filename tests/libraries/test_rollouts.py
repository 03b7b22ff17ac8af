"""Loops of reinforcement learning in unchanged scripts: what generates their samples is found and named."""

import importlib.util
import os
from pathlib import Path
from typing import Any

import pytest

from recorded_loops import operators, run_script
from stored_reports import RECORDS, StoredReports


def needs(library: str) -> Any:
    missing = importlib.util.find_spec(library) is None
    return pytest.mark.skipif(
        RECORDS in os.environ and missing, reason=f"{library} is not installed (make more-loaders)"
    )


ENVIRONMENT = """
import sys, time
import gymnasium, numpy as np

class Slow(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (4,))
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, seed=None, options=None):
        return np.zeros(4, np.float32), {}

    def step(self, action):
        time.sleep(float(sys.argv[1]))
        return np.zeros(4, np.float32), 0.0, False, False, {}
"""

GYMNASIUM = (
    ENVIRONMENT
    + """
if __name__ == "__main__":
    environments = getattr(gymnasium.vector, sys.argv[3])([Slow] * 2)
    environments.reset()
    for _ in range(100):
        environments.step(np.zeros(2, np.int64))
        time.sleep(float(sys.argv[2]))
    environments.close()
"""
)


@needs("gymnasium")
@pytest.mark.parametrize("kind", ["SyncVectorEnv", "AsyncVectorEnv"])
def test_steps_of_environments_are_what_the_loop_waits_for(
    tmp_path: Path, stored: StoredReports, kind: str
) -> None:
    report = stored(lambda: run_script(tmp_path, GYMNASIUM, "0.005", "0.001", kind)[1])
    assert report.profile.sink.steps == 100
    assert report.diagnosis.kind == "input_bound", str(report)
    assert list(operators(report)) == ["env_step"]
    assert all(not advice.parameter for advice in report.diagnosis.advice), str(report)
    if kind == "SyncVectorEnv":
        assert report.diagnosis.operator == "env_step"
        assert "AsyncVectorEnv" in report.diagnosis.advice[0].text


@needs("gymnasium")
def test_fast_environments_raise_no_alarm(tmp_path: Path, stored: StoredReports) -> None:
    report = stored(lambda: run_script(tmp_path, GYMNASIUM, "0.0001", "0.03", "SyncVectorEnv")[1])
    assert report.diagnosis.kind == "not_input_bound", str(report)


@needs("stable_baselines3")
def test_environments_of_stable_baselines3(tmp_path: Path, stored: StoredReports) -> None:
    script = ENVIRONMENT + (
        "from stable_baselines3 import PPO\n"
        "PPO('MlpPolicy', Slow(), n_steps=64, batch_size=32, n_epochs=1).learn(256)\n"
    )
    report = stored(lambda: run_script(tmp_path, script, "0.005")[1])
    assert report.profile.sink.steps == 256
    assert report.diagnosis.operator == "env_step", str(report)
    assert "SubprocVecEnv" in report.diagnosis.advice[0].text


COLLECTOR = """
import sys, time, torch
from tensordict import TensorDict
from tensordict.nn import TensorDictModule
from torchrl.collectors import Collector
from torchrl.data import Composite, Unbounded
from torchrl.envs import EnvBase

class Slow(EnvBase):
    def __init__(self):
        super().__init__(batch_size=[])
        self.observation_spec = Composite(observation=Unbounded(4))
        self.action_spec, self.reward_spec = Unbounded(2), Unbounded(1)

    def _reset(self, tensordict=None, **_):
        return TensorDict({"observation": torch.zeros(4), "done": torch.zeros(1, dtype=torch.bool)}, [])

    def _step(self, tensordict):
        time.sleep(0.005)
        done = torch.zeros(1, dtype=torch.bool)
        return TensorDict({"observation": torch.zeros(4), "reward": torch.zeros(1), "done": done}, [])

    def _set_seed(self, seed):
        pass

policy = TensorDictModule(torch.nn.Linear(4, 2), in_keys=["observation"], out_keys=["action"])
collector = Collector(Slow, policy, frames_per_batch=4, total_frames=240)
for batch in collector:
    time.sleep(0.002)
collector.shutdown()
"""


@needs("torchrl")
def test_a_collector_names_the_environments_step(tmp_path: Path, stored: StoredReports) -> None:
    report = stored(lambda: run_script(tmp_path, COLLECTOR)[1])
    assert report.profile.loader.startswith("Collector at train.py:")
    assert report.diagnosis.operator == "env_step", str(report)
    assert report.diagnosis.cause == "no_overlap"
    assert "MultiAsyncCollector" in report.diagnosis.advice[0].text


GRPO = """
import sys, time
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast
from trl import GRPOConfig, GRPOTrainer

words = ["<pad>", "<eos>", "<unk>", *(f"w{i}" for i in range(29))]
model = models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="<unk>")
tokenizer = Tokenizer(model)
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
special = {"pad_token": "<pad>", "eos_token": "<eos>", "unk_token": "<unk>"}
tokens = PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special)
config = GPT2Config(vocab_size=32, n_positions=64, n_embd=16, n_layer=1, n_head=1,
                    bos_token_id=1, eos_token_id=1, pad_token_id=0)

def reward(completions, **_):
    time.sleep(0.2)
    return [float(len(each)) for each in completions]

settings = GRPOConfig(output_dir=sys.argv[1], per_device_train_batch_size=2, num_generations=2,
                      max_completion_length=4, max_steps=20, report_to=[], use_cpu=True, bf16=False,
                      save_strategy="no", disable_tqdm=True)
GRPOTrainer(model=GPT2LMHeadModel(config), reward_funcs=reward, args=settings, processing_class=tokens,
            train_dataset=Dataset.from_dict({"prompt": ["w1 w2"] * 64})).train()
"""


@needs("trl")
def test_a_slow_reward_of_grpo_is_named(tmp_path: Path, stored: StoredReports) -> None:
    report = stored(lambda: run_script(tmp_path, GRPO, str(tmp_path / "model"))[1])
    assert report.profile.loader.startswith("GRPOTrainer at train.py:"), report.profile.loader
    assert {"generation", "reward"} <= set(operators(report))
    assert report.diagnosis.operator == "reward", str(report)
    assert report.diagnosis.cause == "no_overlap"
    assert "AsyncGRPOTrainer" in report.diagnosis.advice[0].text


WEIGHTS = """
import queue, threading, time

samples = queue.Queue(4)

def generate():
    time.sleep(0.004)
    return [1.0]

def reward(sample):
    time.sleep(0.001)
    return sum(sample)

def rollout():
    while True:
        samples.put(reward(generate()))

def sync_weights():
    time.sleep(0.3)

threading.Thread(target=rollout, daemon=True).start()
for step in range(240):
    samples.get()
    time.sleep(0.02)
    if step % 12 == 11:
        sync_weights()
"""


def test_a_weight_sync_every_few_steps_is_a_pause(tmp_path: Path, stored: StoredReports) -> None:
    report = stored(lambda: run_script(tmp_path, WEIGHTS)[1])
    assert report.diagnosis.kind == "not_input_bound", str(report)
    assert report.diagnosis.cause == "pauses", str(report)
    assert "sync_weights" in report.diagnosis.summary
    assert any(part.part == "weight_sync" for part in report.budget), str(report)
    [samples] = report.profile.queues
    assert samples.item_age.p50_s > report.profile.sink.step_s
