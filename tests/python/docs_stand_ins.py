"""What a reader of docs/ has, and its examples do not define: a loader, a step, data. For test_docs.py."""

from __future__ import annotations

#: What words of commands stand for.
WORDS = {"RUN": "runs/a", "FOLDER": "runs", "BEFORE": "runs/a", "AFTER": "runs/b", "FILE": "rank0.json"}

#: train.py of the commands.
SCRIPT = """
import time
import headrace as hr
for batch in hr.wrap(hr.source(range(400)).map(lambda item: time.sleep(0.004), name="decode"), name="train"):
    time.sleep(0.001)
"""

COMMON = """
import time
import numpy as np
import headrace as hr

class Items:
    def __len__(self):
        return 128

    def __getitem__(self, index):
        time.sleep(0.0005)
        return np.float32(index)

def train_step(*batch):
    time.sleep(0.001)

def decode(path):
    time.sleep(0.0005)
    return np.zeros(3)

dataset = Items()
files = paths = [f"{number}.jpg" for number in range(64)]
my_loader = loader = hr.wrap([[0.0, 1.0]] * 40, name="train")
for _ in loader:
    time.sleep(0.002)
report = loader.report()
steps = 20
"""

TORCH = """
import torch
from torch.utils.data import DataLoader
"""

#: By page, after COMMON.
MORE = {
    "README.md": TORCH + "my_loader = DataLoader(dataset, batch_size=4)\nstack = np.stack\n",
    "docs/tune.md": 'before, after = "runs/a", "runs/b"\n',
    "docs/device_traces.md": "import pyarrow\n",
    "docs/integrations.md": "import prometheus_client\nregistry = prometheus_client.CollectorRegistry()\n",
    "docs/own_code.md": """
import asyncio
import types

rng = np.random.default_rng(0)
data, length, batch_size = np.arange(1000), 8, 4

def get_batch(split):
    time.sleep(0.002)
    return 1, 2

async def produce(batches):
    for _ in range(10):
        await batches.put(1)
    await batches.put(None)

class GRPOTrainer:
    def _prepare_inputs(self, inputs):
        return self._calculate_rewards(self._generate(inputs))

    def _generate(self, inputs):
        return inputs

    def _calculate_rewards(self, completions):
        return completions

envs = types.SimpleNamespace(step=train_step)
buffer = types.SimpleNamespace(sample=train_step)
collector = [1, 2, 3]
""",
    "docs/loaders.md": "from torchdata.nodes import *\n",
    "docs/pytorch.md": TORCH,
    "docs/spdl.md": "from spdl.pipeline import PipelineBuilder\ncollate = np.stack\n",
    "docs/steps.md": TORCH
    + """
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = hr.wrap(DataLoader(torch.zeros(200, 2), batch_size=4))
batches = iter(loader)

def train_step(batch):
    optimizer.zero_grad()
    model(batch).sum().backward()
    optimizer.step()

forward_and_backward, update, trace = train_step, lambda: None, "rank0.json.gz"
""",
}

#: Modules without which a page cannot run.
NEEDS = {
    "README.md": ["torch"],
    "docs/device_traces.md": ["pandas", "pyarrow"],
    "docs/integrations.md": ["prometheus_client"],
    "docs/loaders.md": ["torchdata.nodes"],
    "docs/pytorch.md": ["torch"],
    "docs/reference.md": ["jsonschema"],
    "docs/spdl.md": ["spdl.pipeline"],
    "docs/steps.md": ["torch"],
    "docs/watch.md": ["torch"],
}


def stand_ins(page: str) -> str:
    return COMMON + MORE.get(page, "")
