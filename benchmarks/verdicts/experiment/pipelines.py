"""A plan as a DataLoader, as a pipeline of `hr`, or as threads and queues, and the step of its loop."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

import headrace as hr

from .operators import Operator, Sample
from .plan import CUDA_SINKS, LOADER, NATIVE, Part, Plan

#: More items than any run takes.
ENDLESS = 10**8

Body = Callable[[Sample], Sample]


class Compose:
    """A chain of transforms, as torchvision has it."""

    def __init__(self, transforms: list[Any]) -> None:
        self.transforms = transforms

    def __call__(self, sample: Sample) -> Sample:
        for transform in self.transforms:
            sample = transform(sample)
        return sample


class _Items(Dataset):  # type: ignore[type-arg]
    """The first operator's work is the dataset's own; a subclass has its name."""

    def __init__(self, first: Body, rest: list[Body]) -> None:
        self._first = first
        self.transform = Compose(rest)

    def __len__(self) -> int:
        return ENDLESS

    def __getitem__(self, index: int) -> Any:
        return self.transform(self._first((index, None)))[1]


def _under_the_name_of(op: Operator) -> Any:
    """An object of a class of that name that remembers the operator's results."""
    made = type(op.name, (), {"__call__": lambda self, sample: op.remembered(sample)})
    return made()


def _bodies(plan: Plan, operators: dict[str, Operator]) -> dict[str, Any]:
    """Of each part: the operator, or what remembers its results."""
    found: dict[str, Any] = {}
    for part in plan.parts:
        op = operators[part.name]
        found[part.name] = _under_the_name_of(op) if part.name == plan.without else op
    return found


def dataloader(plan: Plan, operators: dict[str, Operator]) -> Any:
    bodies = list(_bodies(plan, operators).values())
    dataset = type(plan.parts[0].name, (_Items,), {})(bodies[0], bodies[1:])
    prefetch = {"prefetch_factor": plan.prefetch} if plan.workers else {}
    return DataLoader(
        dataset, batch_size=plan.batch, num_workers=plan.workers, in_order=plan.in_order, **prefetch
    )


def stacked(samples: list[Sample]) -> Any:
    return torch.from_numpy(np.stack([array for _, array in samples]))


def native(plan: Plan, operators: dict[str, Operator]) -> Any:
    bodies = _bodies(plan, operators)
    pipe: hr.Pipeline[Any] = hr.generator(
        lambda: ((index, None) for index in itertools.count()), name="items"
    )
    for part in plan.parts:
        pipe = pipe.map(bodies[part.name], part.workers, name=part.name, capacity=part.capacity)
    return pipe.batch(plan.batch, collate=stacked)


def queues(plan: Plan, operators: dict[str, Operator], recorded: bool) -> Iterator[Any]:
    """A thread for each worker, `hr.Queue` between them, batches made by the last ones in turn."""
    bodies = _bodies(plan, operators)
    numbers = itertools.count()
    before: Any = None
    for part in plan.parts:
        body = bodies[part.name]
        timed = hr.operator(part.name)(body.__call__) if recorded else body
        after = hr.Queue(part.capacity, name=f"{part.name}_out")
        for _ in range(part.workers):
            threading.Thread(target=_work, args=(timed, before, after, numbers), daemon=True).start()
        before = after
    ready = hr.Queue(2, name="ready")

    def batches() -> None:
        while True:
            # In a tuple: `iter` compares what it gets with the end mark, which tensors do element by element.
            ready.put((stacked([before.get() for _ in range(plan.batch)]),))

    threading.Thread(target=batches, daemon=True).start()
    return iter(ready.get, None)


def _work(body: Body, before: Any, after: Any, numbers: Iterator[int]) -> None:
    while True:
        after.put(body((next(numbers), None) if before is None else before.get()))


def batches_of(plan: Plan, operators: dict[str, Operator], recorded: bool) -> Any:
    """What the loop iterates over; `recorded`: its report is wanted."""
    if plan.shape == LOADER:
        loader = dataloader(plan, operators)
    elif plan.shape == NATIVE:
        return native(plan, operators)  # it records itself
    else:
        loader = queues(plan, operators, recorded)
    return hr.wrap(loader, name="train") if recorded else loader


class Step:
    """The loop's step: sleeps, trains a small network on one thread or on a GPU, or computes with NumPy.

    On the GPU, "cuda" only puts the work into the device's queue; "cuda waits" reads the loss in every step.
    """

    def __init__(self, plan: Plan) -> None:
        self._seconds = plan.sink_s
        self._on_cuda = plan.sink in CUDA_SINKS
        self._reads_loss = plan.sink == "cuda waits"
        self._once: Callable[[], Any] | None = None
        if self._on_cuda:
            self._once = _Training("cuda", rows=2048, inputs=2048, hidden=2048)
        elif plan.sink != "sleep":
            self._once = _Training("cpu", 64, 128, 256) if plan.sink == "torch" else _filter
        unit_s = plan.units.get("sink", 0.0)
        self._times = max(1, round(plan.sink_s / unit_s)) if unit_s else 1

    def __call__(self, batch: Any) -> None:
        if self._once is None:
            time.sleep(self._seconds)
            return
        if self._on_cuda and isinstance(batch, torch.Tensor):
            batch.to("cuda", non_blocking=True)
        loss = None
        for _ in range(self._times):
            loss = self._once()
        if self._reads_loss:
            loss.item()

    def settle(self) -> None:
        """Waits until the device has done what it was given."""
        if self._on_cuda:
            torch.cuda.synchronize()


class _Training:
    def __init__(self, device: str, rows: int, inputs: int, hidden: int) -> None:
        self._model = torch.nn.Sequential(
            torch.nn.Linear(inputs, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, 8)
        ).to(device)
        self._optimizer = torch.optim.SGD(self._model.parameters(), lr=1e-3)
        self._inputs = torch.ones(rows, inputs, device=device)

    def __call__(self) -> Any:
        self._optimizer.zero_grad()
        loss = self._model(self._inputs).square().mean()
        loss.backward()
        self._optimizer.step()
        return loss


_SIGNAL = np.ones(200_000, np.float32)


def _filter() -> None:
    np.sqrt(_SIGNAL * 0.5 + 1).sum()


def set_times(part: Part, op: Operator, unit_s: float) -> None:
    """How often the operator does its work for an item."""
    if op.waits:
        op.times, op.delay_s = 1, part.seconds
    else:
        op.times = max(1, round(part.seconds / unit_s))
