"""Names of modules and parameters, as their user writes them."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from typing import Any

_MAX_WRAPPED = 8


def modules_in(model: Any, name: str = "", seen: set[int] | None = None) -> Iterator[tuple[str, Any]]:
    """Name and module of ``model`` and of all inside it, each once.

    Reads torch's own table of each module, because a class of the user may override `named_modules`.
    """
    seen = set() if seen is None else seen
    if id(model) in seen:
        return
    seen.add(id(model))
    yield name, model
    for own, inner in _table(model, "_modules"):
        if inner is not None:
            yield from modules_in(inner, f"{name}.{own}" if name else own, seen)


def parameters_in(module: Any) -> list[tuple[str, Any]]:
    """Name and parameter of those that ``module`` itself holds."""
    return [(name, one) for name, one in _table(module, "_parameters") if one is not None]


def _table(module: Any, name: str) -> list[tuple[str, Any]]:
    table = module.__dict__.get(name)
    return [] if table is None else list(table.items())  # a scripted module has a table of its own kind


def unwrapped(model: Any) -> Any:
    """The user's module in what `torch.compile` and the data parallel wrappers return."""
    for _ in range(_MAX_WRAPPED):
        inside = dict(_table(model, "_modules"))
        inner = inside.get("_orig_mod")
        if inner is None and type(model).__name__ in ("DistributedDataParallel", "DataParallel"):
            inner = inside.get("module")
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
            for name, module in modules_in(model):
                yield self._named(at, name), module

    def trained(self) -> list[Any]:
        """Parameters of the models that need a gradient, each once."""
        every = {id(one): one for _, module in self.modules() for _, one in parameters_in(module)}
        return [one for one in every.values() if one.requires_grad]

    def parameters(self) -> dict[int, str]:
        """By identity, in the order of the models."""
        found: dict[int, str] = {}
        for at, model in self._alive():
            for name, module in modules_in(model):
                for own, parameter in parameters_in(module):
                    found.setdefault(id(parameter), self._named(at, f"{name}.{own}" if name else own))
        return found

    def owners(self) -> dict[int, tuple[str, Any]]:
        """The module of each parameter, by the parameter's identity."""
        found: dict[int, tuple[str, Any]] = {}
        for name, module in self.modules():
            for _, parameter in parameters_in(module):
                found.setdefault(id(parameter), (name, module))
        return found

    def together(self, parameters: Iterable[Any]) -> list[str]:
        """The names of ``parameters``, with the outermost module instead of all its trained parameters."""
        found: list[str] = []
        left = {id(parameter) for parameter in parameters}
        for name, module in self.modules():
            inside = [one for _, each in modules_in(module) for _, one in parameters_in(each)]
            trained = {id(one) for one in inside if one.requires_grad}
            if trained and trained <= left and (len(trained) > 1 or not parameters_in(module)):
                found.append(name)
                left -= trained
        names = self.parameters()
        return found + [names[one] for one in names if one in left]
