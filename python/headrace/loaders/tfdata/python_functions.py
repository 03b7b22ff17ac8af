"""Times datasets that are Python alone: `py_function`, `numpy_function` and generators.

TensorFlow calls all of them through one registry, by a token that is in the dataset's graph. The registry's
method is replaced, so the functions, their graphs and names, and tracebacks stay as they are. These are
private names of TensorFlow 2.21. Where one is missing, reading the dataset raises, and the loader is recorded
as a whole.
"""

from __future__ import annotations

import sys
import threading
from typing import Any, NamedTuple

from headrace import _core

_MODULE = "tensorflow.python.ops.script_ops"
_KINDS = ("PyFunc", "PyFuncStateless", "EagerPyFunc")
_TAKE_NO_TIME = (
    *("Placeholder", "Const", "Identity", "IdentityN", "NoOp", "Cast", "EnsureShape"),
    *("Reshape", "Shape", "StridedSlice", "ExpandDims", "Squeeze", "Pack", "Unpack"),
)
#: The functions that `from_generator` calls for an element, beside those for an iterator.
_NEXT_OF_GENERATOR = "generator_py_func"


class PythonFunctions(NamedTuple):
    """Those of one dataset, whose calls are its operator's."""

    tokens: list[str]
    operator: _core.OperatorHandle


_of_token: dict[str, _core.OperatorHandle] = {}


class _Running(threading.local):
    """Calls of this thread, the innermost last: the operator of each; None: it is not recorded."""

    def __init__(self) -> None:
        self.stack: list[_core.OperatorHandle | None] = []


_running = _Running()


def tokens_of(dataset: Any) -> list[str]:
    """The functions that ``dataset`` calls, by TensorFlow's names; empty if it is not Python alone."""
    function = getattr(dataset, "_map_func", None) or getattr(dataset, "_predicate", None)
    if function is None or _MODULE not in sys.modules:
        return []
    graph = function.function.graph.as_graph_def()
    nodes = [*graph.node, *(node for each in graph.library.function for node in each.node_def)]
    found = [node.attr["token"].s.decode() for node in nodes if node.op in _KINDS]
    known = sys.modules[_MODULE]._py_funcs
    generates = [one for one in found if getattr(known.get(one), "__name__", "") == _NEXT_OF_GENERATOR]
    is_alone = {node.op for node in nodes}.issubset((*_KINDS, *_TAKE_NO_TIME))
    return generates or (found if is_alone else [])


def record(functions: list[PythonFunctions]) -> None:
    """Calls of these functions are recorded from now on, until `forget`."""
    if functions:
        _install()
    for each in functions:
        _of_token.update(dict.fromkeys(each.tokens, each.operator))


def forget(functions: list[PythonFunctions]) -> None:
    for each in functions:
        for token in each.tokens:
            if _of_token.get(token) is each.operator:
                del _of_token[token]


def _install() -> None:
    registry = sys.modules[_MODULE].FuncRegistry
    if not isinstance(registry.__call__, _core.HookedCall):
        registry.__call__ = _core.HookedCall(registry.__call__, _before, _after, _failed)


def _before(_: Any, token: str, *__: Any) -> None:
    operator = _of_token.get(token)
    _running.stack.append(operator if operator is not None and operator.begin() else None)


def _after(*_: Any) -> None:
    operator = _running.stack.pop()
    if operator is not None:
        operator.end(False)


def _failed(*_: Any) -> None:
    operator = _running.stack.pop()
    if operator is not None:
        operator.end(operator.kind != "source")  # a generator ends by an exception
