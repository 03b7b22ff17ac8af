"""Programs in which a profiler could change something: each returns what its user sees.

`python cases_of_programs.py` prints a line of JSON for each. `test_nothing_changes.py` compares them with and
without `headrace run --watch`.
"""

import copy
import gc
import hashlib
import io
import json
import pickle
import random
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.utils.checkpoint
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.data import DataLoader, Dataset, TensorDataset

NAN = float("nan")


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(8, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.a(x)


def data(poisoned: int = -1, batches: int = 12) -> DataLoader[Any]:
    x = torch.randn(8 * batches, 8)
    if poisoned >= 0:
        x[8 * poisoned : 8 * poisoned + 4] = NAN
    return DataLoader(TensorDataset(x, torch.zeros(8 * batches, 1)), 8)


def train(
    model: Any, loader: Any, optimizer: Any = None, call: Callable[..., Any] | None = None
) -> list[str]:
    """Losses; an update whose loss is NaN is skipped."""
    optimizer = optimizer or torch.optim.SGD(model.parameters(), 0.05)
    losses = []
    for x, y in loader:
        optimizer.zero_grad()
        loss = ((model if call is None else call)(x) - y).square().mean()
        loss.backward()
        losses.append(loss.item().hex())
        if not loss.isnan():
            optimizer.step()
    return losses


def changed_in_place() -> Any:
    class Changes(Net):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x += 0.01
            return self.a(x)

    sums = []

    def batches() -> Iterator[Any]:
        for x, y in data(poisoned=5):
            yield x, y
            sums.append(x.nan_to_num().sum().item().hex())

    return train(Changes(), batches()), sums


def recurrent_state() -> Any:
    class Recurrent(Net):
        def __init__(self) -> None:
            super().__init__()
            self.memory = torch.zeros(1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.a(x) + self.memory
            self.memory = 0.9 * self.memory + y.detach().nan_to_num().mean(0) + 0.05
            return y

    model = Recurrent()
    return train(model, data(poisoned=5)), model.memory.item().hex()


def hooks_of_the_user() -> Any:
    model, seen = Net(), []
    model.a.register_forward_hook(lambda *_: seen.append("after"))
    model.register_forward_pre_hook(lambda *_: seen.append("before"))
    return train(model, data(poisoned=5)), seen


class Lazy:
    """Decodes, with random numbers, when it is asked."""

    asked = 0

    def __init__(self, index: int) -> None:
        self.index = index

    def __getattr__(self, name: str) -> Any:
        Lazy.asked += 1
        raise AttributeError(name)

    @property
    def shape(self) -> Any:
        return random.random()

    dtype = shape

    def keys(self) -> list[str]:
        Lazy.asked += 1
        return ["x"]

    def __getitem__(self, key: str) -> torch.Tensor:
        return torch.full((8,), random.random())


class LazyDict(dict):  # type: ignore[type-arg]
    def items(self) -> Any:
        raise StopIteration

    __iter__ = keys = __getitem__ = items


def lazy_batches() -> Any:
    class Items(Dataset[Any]):
        def __len__(self) -> int:
            return 12

        def __getitem__(self, index: int) -> Any:
            return (Lazy(index), LazyDict(x=torch.ones(2))) if index % 2 else Lazy(index)

    model, seen = Net(), []
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    for one in DataLoader(Items(), batch_size=None, collate_fn=lambda one: one):
        x = (one[0] if type(one) is tuple else one)["x"]
        model(x).sum().backward()
        optimizer.step()
        seen.append(x[0].item().hex())
    return seen, Lazy.asked


def lengths_and_indices() -> Any:
    """A dataset that counts questions, and a sampler whose indices are a class of its own."""
    asked: list[str] = []

    class Index:
        def __init__(self, at: int) -> None:
            self.at = at

        def __eq__(self, other: object) -> bool:
            asked.append("eq")
            return False

        def __hash__(self) -> int:
            asked.append("hash")
            return 0

        def __repr__(self) -> str:
            asked.append("repr")
            return ""

    class Items(Dataset[Any]):
        @property
        def samples(self) -> Any:
            asked.append("samples")
            return []

        def __len__(self) -> int:
            asked.append("len")
            return 16

        def __getitem__(self, index: Any) -> Any:
            return torch.randn(8), torch.zeros(1)

    loader = DataLoader(Items(), 4, sampler=[Index(at) for at in range(16)])  # type: ignore[arg-type]
    model = Net()
    return [train(model, loader) for _ in range(3)], asked


def saved() -> Any:
    model = Net()
    optimizer = torch.optim.Adam(model.parameters())
    train(model, data(poisoned=3), optimizer)
    buffer = io.BytesIO()
    torch.save(model, buffer)
    buffer.seek(0)
    unpickler = pickle.dumps(model) + pickle.dumps(optimizer.state_dict())
    copied = copy.deepcopy((model, optimizer))
    tables = {name: len(table) for name, table in vars(model).items() if "hooks" in name and table}
    return (
        hashlib.sha256(buffer.getvalue()).hexdigest(),
        [word for word in (b"headrace", b"nullcontext", b"getattr") if word in unpickler],
        list(model.state_dict()),
        list(vars(copied[0])),
        sorted(vars(copied[1])),
        sorted(vars(model)),
        tables,
    )


def scripted_and_exported() -> Any:
    model = Net()
    train(model, data(poisoned=3))
    x = torch.ones(2, 8)
    scripted = torch.jit.script(model)
    traced = torch.jit.trace(model, x)
    found = [str(scripted.graph), str(traced.graph), train(scripted, data(poisoned=3))]
    if hasattr(torch, "export"):
        found.append(str(torch.export.export(model, (x,)).graph))
    return found


def compiled() -> Any:
    import torch._dynamo as dynamo

    dynamo.reset()
    dynamo.utils.counters.clear()
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    losses = train(model, data(poisoned=3), optimizer, torch.compile(model, backend="eager"))

    @torch.compile(backend="eager")
    def step() -> None:
        optimizer.step()

    for _ in range(3):
        model(torch.ones(2, 8)).sum().backward()
        step()
    counters = dynamo.utils.counters
    names = "graph_break", "recompiles", "unimplemented"
    found = {name: sum(counters[name].values()) for name in names} | {
        "graphs": counters["stats"]["unique_graphs"]
    }
    dynamo.reset()
    return losses, found


def computed_weights() -> Any:
    """Each access to a weight of spectral_norm in training moves its buffers."""
    model = nn.Sequential(
        nn.utils.parametrizations.spectral_norm(nn.Linear(8, 8)),
        nn.utils.parametrizations.spectral_norm(nn.Linear(8, 1)),
    )
    losses = train(model, data(batches=50))
    return losses, [one.double().sum().item().hex() for one in model.state_dict().values()]


def asked_for_attributes() -> Any:
    """A model that counts what is asked of it."""
    asked: list[str] = []

    class Counts(Net):
        __slots__ = ("extra",)

        def __call__(self, *arguments: Any, **named: Any) -> Any:
            asked.append("call")
            return super().__call__(*arguments, **named)

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):
                asked.append(name)
            return super().__getattr__(name)

        def named_modules(self, *arguments: Any, **named: Any) -> Any:
            asked.append("named_modules")
            return super().named_modules(*arguments, **named)

        def parameters(self, recurse: bool = True) -> Any:
            asked.append("parameters")
            return super().parameters(recurse)

        def __eq__(self, other: object) -> bool:
            asked.append("eq")
            return self is other

        def __hash__(self) -> int:
            asked.append("hash")
            return id(self)

    model = Counts()
    return train(model, data(poisoned=3)), train(model, data(poisoned=3), None, model.forward), asked


def modes_of_the_user() -> Any:
    """Operations that a mode of the user's sees."""
    seen: list[str] = []

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(str(function))
            return function(*args, **(kwargs or {}))

    model, loader = Net(), data(poisoned=3, batches=24)
    with Mode():
        losses = train(model, loader)
    return losses, seen


def other_ways_to_call() -> Any:
    shared = nn.Linear(8, 8)
    model = nn.Sequential(shared, shared, nn.Linear(8, 1))
    weights = {name: one.detach().clone() for name, one in model.named_parameters()}

    def functional(x: torch.Tensor) -> Any:
        return model(x) + torch.func.functional_call(model, weights, (x,))

    def checkpointed(x: torch.Tensor) -> Any:
        return torch.utils.checkpoint.checkpoint(model, x, use_reentrant=False)

    def vectorised(x: torch.Tensor) -> Any:
        return model(x) + torch.func.vmap(model)(x)

    ways: list[Any] = [functional, checkpointed, vectorised, nn.DataParallel(model)]
    return [train(model, data(poisoned=3), None, way) for way in ways]


def optimizers() -> Any:
    model = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 1))
    both = [torch.optim.Adam(one.parameters(), 0.01) for one in model]
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**30)
    losses = []
    for x, y in data(poisoned=3):
        loss = (model(x) - y).square().mean()
        scaler.scale(loss).backward()
        for one in both:
            scaler.step(one)
            one.zero_grad()
        scaler.update()
        losses.append((loss.item().hex(), scaler.get_scale()))
    both[0] = torch.optim.SGD(model[0].parameters(), 0.01)  # replaced
    losses.append(train(model, data(), both[0]))
    lbfgs = torch.optim.LBFGS(model.parameters(), max_iter=3)
    given: list[bool] = []
    x, y = next(iter(data()))

    def closure() -> Any:
        lbfgs.zero_grad()
        loss = (model(x) - y).square().mean()
        loss.backward()
        return loss

    lbfgs.register_step_pre_hook(lambda one, arguments, named: given.append(arguments[1] is closure))
    losses += [lbfgs.step(closure).item().hex() for _ in range(4)]
    return losses, given


def errors() -> Any:
    class Fails(Net):
        fails = False

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.a(x)
            if self.fails:
                raise ValueError("mine")
            return y

    model, found = Fails(), []
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    for step, (x, _) in enumerate(data(poisoned=3)):
        model.fails = step in (4, 7)
        try:
            model(x).sum().backward()
        except ValueError as error:
            found.append(str(error))
        try:
            optimizer.step((lambda: 1 / 0) if step == 8 else None)  # type: ignore[call-overload]
        except ZeroDivisionError as error:
            found.append(str(error))
    return found


def inference() -> Any:
    model = Net()
    losses = train(model, data())
    with torch.inference_mode():
        losses += [model(x).sum().item().hex() for x, _ in data(poisoned=2)]
    return losses


def memory() -> Any:
    """Nothing is kept of a training that is over."""

    class Loss(nn.Module):
        def forward(self, out: Any, y: Any) -> Any:
            return (out - y).square().mean()

    class Items(Dataset[Any]):
        def __init__(self) -> None:
            self.x = torch.randn(64, 8)

        def __len__(self) -> int:
            return 64

        def __getitem__(self, index: int) -> Any:
            return self.x[index], torch.zeros(1)

    def one_training(poisoned: bool) -> list[Any]:
        model, dataset, criterion = Net(), Items(), Loss()
        optimizer = torch.optim.Adam(model.parameters())
        loader = DataLoader(dataset, 8)
        for step, (x, y) in enumerate(loader):
            optimizer.zero_grad()
            loss = criterion(model(x), y) * (NAN if poisoned and step == 3 else 1.0)
            loss.backward()
            optimizer.step()
        late = criterion(model(x), y)  # no backward pass follows
        parts = [model, model.a.weight, model.a.weight.grad, dataset, dataset.x, optimizer, loader, x, late]
        return [weakref.ref(one) for one in parts]

    kept = [*one_training(False), *one_training(True)]
    gc.collect()
    return [one() is not None for one in kept]


def shards() -> Any:
    """Lists of samples, trained on one after the other."""
    model, alive = Net(), []
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    references: list[Any] = []
    for shard in range(20):
        samples = [(torch.randn(8), torch.zeros(1)) for _ in range(16 + shard)]
        references += [weakref.ref(x) for x, _ in samples]
        train(model, DataLoader(samples, 4), optimizer)  # type: ignore[arg-type]
        del samples
        gc.collect()
        alive.append(sum(one() is not None for one in references))
    return alive


def calls_without_updates() -> Any:
    model = Net()
    train(model, data())
    references = []
    for x, _ in data():
        references.append(weakref.ref(model(x)))
        references.append(weakref.ref(x))
    del x
    return [one() is not None for one in references]


def a_loss_that_is_scaled_and_dropped() -> Any:
    model, scaler = Net(), torch.amp.GradScaler("cpu")
    train(model, data())
    scaled = scaler.scale(model(torch.ones(2, 8)).sum())
    reference = weakref.ref(scaled)
    del scaled
    return reference() is None


def random_states() -> Any:
    return random.random(), torch.rand(1).item().hex(), torch.initial_seed()


CASES: list[Callable[[], Any]] = [
    changed_in_place,
    recurrent_state,
    hooks_of_the_user,
    lazy_batches,
    lengths_and_indices,
    saved,
    scripted_and_exported,
    compiled,
    computed_weights,
    asked_for_attributes,
    modes_of_the_user,
    other_ways_to_call,
    optimizers,
    errors,
    inference,
    memory,
    shards,
    calls_without_updates,
    a_loss_that_is_scaled_and_dropped,
    random_states,
]

if __name__ == "__main__":
    torch.manual_seed(0)
    random.seed(0)
    for case in CASES:
        try:
            print(json.dumps([case.__name__, case()]), flush=True)
        except Exception as error:  # noqa: PERF203
            print(json.dumps([case.__name__, f"{type(error).__name__}: {error}"]), flush=True)
