"""Names of modules and parameters, as their user writes them."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from typing import Any


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


def weights_of(models: Iterable[Any]) -> list[Any]:
    """All parameters of ``models``."""
    return [one for model in models for _, each in modules_in(model) for _, one in parameters_in(each)]


def _table(module: Any, name: str) -> list[tuple[str, Any]]:
    table = module.__dict__.get(name)
    return [] if table is None else list(table.items())  # a scripted module has a table of its own kind


def _unwrapped(model: Any) -> Any:
    """The user's module in what `torch.compile` and the data parallel wrappers return."""
    inside = dict(_table(model, "_modules"))
    inner = inside.get("_orig_mod")
    if inner is None and type(model).__name__ in ("DistributedDataParallel", "DataParallel"):
        inner = inside.get("module")
    return model if inner is None else _unwrapped(inner)


class Names:
    """Names in the watched models, which it keeps alive no longer than their user does.

    A tied parameter and a shared module have one name, the first.
    """

    def __init__(self, models: list[Any]) -> None:
        inner = [_unwrapped(model) for model in models]
        self._models = [weakref.ref(model) for model in inner]
        classes = [type(model).__name__ for model in inner]
        self._roots = [
            name if classes.count(name) == 1 else f"{name}[{at}]" for at, name in enumerate(classes)
        ]

    @property
    def models(self) -> list[Any]:
        """Those that are alive."""
        return [model for one in self._models if (model := one()) is not None]

    def all_alive(self) -> bool:
        return len(self.models) == len(self._models)

    @property
    def root(self) -> str:
        """A model itself has no name: its class."""
        return self._roots[0]

    def modules(self) -> Iterator[tuple[str, Any]]:
        for root, reference in zip(self._roots, self._models, strict=True):
            for name, module in modules_in(model) if (model := reference()) is not None else ():
                if not name or len(self._roots) == 1:
                    yield name or root, module
                else:
                    yield f"{root}.{name}", module

    def trained(self) -> list[Any]:
        """Parameters of the models that need a gradient, each once."""
        every = {id(one): one for one in weights_of(self.models)}
        return [one for one in every.values() if one.requires_grad]

    def owners(self) -> dict[int, tuple[str, Any]]:
        """The module of each parameter, by the parameter's identity."""
        found: dict[int, tuple[str, Any]] = {}
        for name, module in self.modules():
            for _, parameter in parameters_in(module):
                found.setdefault(id(parameter), (name, module))
        return found

    def parameters(self) -> dict[int, str]:
        """By identity, in the order of the models."""
        found: dict[int, str] = {}
        for name, module in self.modules():
            is_root = len(self._roots) == 1 and name == self._roots[0]
            for own, parameter in parameters_in(module):
                found.setdefault(id(parameter), own if is_root else f"{name}.{own}")
        return found

    def of(self, reference: weakref.ref[Any], otherwise: str) -> str:
        return self.parameters().get(id(reference()), otherwise)

    def together(self, parameters: Iterable[Any]) -> list[str]:
        """The names of ``parameters``, with the outermost module instead of all its trained parameters."""
        found: list[str] = []
        left = {id(parameter) for parameter in parameters}
        for name, module in self.modules():
            trained = {id(one) for one in weights_of([module]) if one.requires_grad}
            if trained and trained <= left and (len(trained) > 1 or not parameters_in(module)):
                found.append(name)
                left -= trained
        names = self.parameters()
        return found + [names[one] for one in names if one in left]
