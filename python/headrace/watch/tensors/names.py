"""Names of modules and parameters, as their user writes them."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from typing import Any


def unwrapped(model: Any) -> Any:
    """The user's module in what `torch.compile` and the data parallel wrappers return."""
    for _ in range(8):
        inner = getattr(model, "_orig_mod", None)
        if inner is None and type(model).__name__ in ("DistributedDataParallel", "DataParallel"):
            inner = model.module
        if inner is None:
            break
        model = inner
    return model


class Names:
    """Of the watched models, which it keeps alive no longer than their user does.

    A tied parameter and a shared module have one name, the first.
    """

    def __init__(self, models: list[Any]) -> None:
        inner = [unwrapped(model) for model in models]
        self._models = [weakref.ref(model) for model in inner]
        self._several = len(models) > 1
        classes = [type(model).__name__ for model in inner]
        self._roots = [
            name if classes.count(name) == 1 else f"{name}[{at}]" for at, name in enumerate(classes)
        ]

    @property
    def models(self) -> list[Any]:
        """Those that are alive."""
        return [model for _, model in self._alive()]

    def all_alive(self) -> bool:
        return all(reference() is not None for reference in self._models)

    def model(self, at: int) -> Any:
        """None: it is gone."""
        return self._models[at]()

    def _alive(self) -> list[tuple[int, Any]]:
        found = [(at, reference()) for at, reference in enumerate(self._models)]
        return [(at, model) for at, model in found if model is not None]

    def root(self, at: int) -> str:
        """A model itself has no name: its class."""
        return self._roots[at]

    def _named(self, at: int, name: str) -> str:
        if not name:
            return self._roots[at]
        return f"{self._roots[at]}.{name}" if self._several else name

    def modules(self) -> Iterator[tuple[str, Any]]:
        for at, model in self._alive():
            for name, module in model.named_modules():
                yield self._named(at, name), module

    def parameters(self) -> dict[int, str]:
        """By identity, in the order of the models."""
        return {
            id(parameter): self._named(at, name)
            for at, model in self._alive()
            for name, parameter in model.named_parameters()
        }

    def owners(self) -> dict[int, tuple[str, Any]]:
        """The module of each parameter, by the parameter's identity."""
        found: dict[int, tuple[str, Any]] = {}
        for name, module in self.modules():
            for parameter in module.parameters(recurse=False):
                found.setdefault(id(parameter), (name, module))
        return found

    def together(self, parameters: Iterable[Any]) -> list[str]:
        """The names of ``parameters``, with the outermost module instead of all its trained parameters."""
        wanted = {id(parameter) for parameter in parameters}
        found: list[str] = []
        left = set(wanted)
        for name, module in self.modules():
            trained = {id(one) for one in module.parameters() if one.requires_grad}
            if trained and trained <= left and (len(trained) > 1 or not _holds_directly(module)):
                found.append(name)
                left -= trained
        names = self.parameters()
        return found + [names[one] for one in names if one in left]


def _holds_directly(module: Any) -> bool:
    return any(True for _ in module.parameters(recurse=False))
