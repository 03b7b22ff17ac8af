"""Random states in a worker process: those of the dataset's generators and of the global ones."""

from __future__ import annotations

import hashlib
import random
import sys
from collections.abc import Callable, Iterator
from typing import Any

from headrace import _core
from headrace.watch.fields import inside
from headrace.watch.findings import findings_of

#: A dataset's attributes, and the attributes and items of those: a generator lies no deeper in practice, and
#: a dataset of many objects is not searched for long.
_MAX_DEPTH = 4
_MAX_OBJECTS = 500


def generators_of(dataset: Any) -> Iterator[tuple[str, Any]]:
    """Name and object of each generator of random numbers that a dataset holds, or its module."""
    module = sys.modules.get(type(dataset).__module__)
    pending = [("dataset", dataset, 0)]
    pending += [(name, one, _MAX_DEPTH) for name, one in list(vars(module).items())] if module else []
    seen: set[int] = set()
    searched = 0
    while pending and searched < _MAX_OBJECTS:
        name, value, depth = pending.pop(0)
        if value is None or id(value) in seen or type(value) in (str, bytes, int, float, type):
            continue
        seen.add(id(value))
        searched += depth < _MAX_DEPTH
        if state_of(value) is not None:
            yield name, value
        elif depth < _MAX_DEPTH:
            pending.extend((f"{name}{label}", one, depth + 1) for label, one in inside(value))


def state_of(generator: Any) -> str | None:
    """A hash of where a generator is; None for anything else: no code of a subclass runs."""
    kind = type(generator)
    numpy = sys.modules.get("numpy")
    torch = sys.modules.get("torch")
    state: Any
    if kind is random.Random:
        state = generator.getstate()
    elif numpy is not None and kind is numpy.random.Generator:
        state = generator.bit_generator.state
    elif numpy is not None and kind is numpy.random.RandomState:
        state = [part.tobytes() if hasattr(part, "tobytes") else part for part in generator.get_state()]
    elif torch is not None and kind is torch.Generator:
        state = generator.get_state().numpy().tobytes()
    else:
        return None
    return hashlib.blake2b(repr(state).encode(), digest_size=8).hexdigest()


def global_generators() -> Iterator[tuple[str, Any]]:
    """The generators that belong to nobody."""
    yield "random", getattr(random, "_inst", None)
    if "numpy" in sys.modules:
        yield "numpy.random", sys.modules["numpy"].random.mtrand._rand
    if "torch" in sys.modules:
        yield "torch.default_generator", sys.modules["torch"].default_generator


def start_of_worker(
    session: _core.Session, loader: str, pass_number: int, worker: int, dataset: Any
) -> Callable[[], None]:
    """Reads the states in a worker process. Call what is returned after its first batch."""
    every = [*generators_of(dataset), *global_generators()]
    found = [(name, one, start) for name, one in every if (start := state_of(one)) is not None]

    def first_batch() -> None:
        states = [
            {"name": name, "start": start, "moved": state_of(one) != start} for name, one, start in found
        ]
        about = {"loader": loader, "pass": pass_number, "worker": worker, "states": states}
        findings_of(session).keep_random(about)

    return first_batch
