"""Objects that the code of a dataset can reach: attributes, items, closures, globals of its functions."""

from __future__ import annotations

import collections
import functools
import logging
import sys
import types
from collections.abc import Iterator
from typing import Any, NamedTuple

from headrace.common.users_files import is_the_users

_MAX_DEPTH = 6
_MAX_OBJECTS = 2000
#: Items of a container that are visited.
_MAX_ITEMS = 64
#: Plain values, which hold nothing.
SCALARS = (bool, int, float, complex, str, bytes)
#: Not visited: a logger reaches the program's files, and is not part of the data.
_IGNORED = (types.ModuleType, types.CodeType, types.FrameType, logging.Logger, logging.Handler)


class Reached(NamedTuple):
    name: str
    value: Any
    #: The user's own code holds it; else an object of a library does.
    is_users: bool


def reachable(name: str, root: Any) -> Iterator[Reached]:
    """``root`` and what can be reached from it, nearest first: 2000 objects at most, each once. None is left
    out; a plain value (number, string) comes once for each place. Raises RuntimeError if a container changes
    meanwhile."""
    seen: set[int] = set()
    pending = collections.deque([(Reached(name, root, True), 0)])
    count = 0
    while pending and count < _MAX_OBJECTS:
        one, depth = pending.popleft()
        value = one.value
        if value is None or isinstance(value, _IGNORED):
            continue
        if not isinstance(value, SCALARS):
            if id(value) in seen:
                continue
            seen.add(id(value))
        count += 1
        yield one
        if depth < _MAX_DEPTH and not isinstance(value, SCALARS):
            pending.extend((each, depth + 1) for each in _inside(one))


def _inside(one: Reached) -> Iterator[Reached]:
    name, value, is_users = one
    if isinstance(value, dict):
        for key, item in list(value.items())[:_MAX_ITEMS]:
            yield Reached(f"{name}[{key!r}]", item, is_users)
    elif isinstance(value, (list, tuple, collections.deque)):
        for index in range(min(len(value), _MAX_ITEMS)):
            yield Reached(f"{name}[{index}]", value[index], is_users)
    elif isinstance(value, types.FunctionType):
        if is_the_users(value.__code__.co_filename):
            yield from _of_function(value)
    elif isinstance(value, functools.partial):
        yield Reached(name, value.func, is_users)
        yield Reached(f"{name}.args", value.args, is_users)
        yield Reached(f"{name}.keywords", value.keywords, is_users)
    elif isinstance(value, (types.MethodType, types.BuiltinMethodType)):
        yield Reached(f"{name}.__self__", value.__self__, is_users)
    elif isinstance(value, type):
        if is_users_class(value):
            yield from _of_class(value)
    else:
        yield from _attributes(one)


def _of_function(function: types.FunctionType) -> Iterator[Reached]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield Reached(name, cell.cell_contents, True)
        except ValueError:  # noqa: PERF203 (not set yet)
            continue
    yield Reached(f"{function.__name__}.__defaults__", function.__defaults__, True)
    names, known = _names(function.__code__), function.__globals__
    for name in names & known.keys():
        value = known[name]
        if not isinstance(value, types.ModuleType):
            yield Reached(name, value, True)
        elif is_the_users(getattr(value, "__file__", None) or "<frozen>"):
            for inner in names & vars(value).keys():
                yield Reached(f"{name}.{inner}", vars(value)[inner], True)


@functools.lru_cache(maxsize=1024)
def _names(code: types.CodeType) -> frozenset[str]:
    """Names that it uses, those of functions inside it included."""
    inner = [_names(one) for one in code.co_consts if isinstance(one, types.CodeType)]
    return frozenset(code.co_names).union(*inner)


def is_users_class(kind: type) -> bool:
    """Whether the class is the program's own."""
    if kind.__module__ == "__main__":
        return True
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return bool(file) and is_the_users(str(file))


def _of_class(kind: type) -> Iterator[Reached]:
    for base in kind.__mro__:
        if not is_users_class(base):
            continue
        for key, value in list(vars(base).items()):
            plain = getattr(value, "fget", None) or getattr(value, "__func__", value)
            if isinstance(plain, types.FunctionType) or not key.startswith("__"):
                yield Reached(f"{base.__name__}.{key}", plain, True)


def _attributes(one: Reached) -> Iterator[Reached]:
    name, value, _ = one
    kind = type(value)
    is_users = is_users_class(kind) or name == "dataset"
    own = getattr(value, "__dict__", None)
    if isinstance(own, dict):
        for key, item in list(own.items()):
            yield Reached(f"{name}.{key}", item, is_users)
    if is_users_class(kind):
        for base in kind.__mro__:
            slots = vars(base).get("__slots__", ())
            for key in (slots,) if isinstance(slots, str) else slots:
                yield Reached(f"{name}.{key}", getattr(value, key, None), is_users)
        yield Reached(kind.__name__, kind, True)
