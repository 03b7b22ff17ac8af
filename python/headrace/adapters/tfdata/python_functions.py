"""Times the Python functions of datasets: `py_function`, `numpy_function` and generators.

TensorFlow calls all of them through one registry, by a token that is in the dataset's graph. The registry's
method is replaced, so the functions, their graphs and names, and tracebacks stay as they are. These are
private names of TensorFlow 2.21. Where one is missing, reading the dataset raises, and the loader is recorded
as a whole.
"""

from __future__ import annotations

import sys
import threading
from time import perf_counter_ns, thread_time_ns
from typing import Any

from headrace import _core

_MODULE = "tensorflow.python.ops.script_ops"
_KINDS = ("PyFunc", "PyFuncStateless", "EagerPyFunc")
#: What `from_generator` calls for an element, beside what it calls for an iterator.
_NEXT_OF_GENERATOR = "generator_py_func"


class PythonFunctions:
    """Those of one dataset, which are its operator's time."""

    def __init__(self, tokens: list[str], operator: _core.OperatorHandle) -> None:
        self.tokens = tokens
        self.operator = operator
        self.wall_ns = 0
        self.cpu_ns = 0


_of_token: dict[str, PythonFunctions] = {}


class _Running(threading.local):
    """Calls of this thread, the innermost last: of which dataset, whether it is recorded, when it began."""

    def __init__(self) -> None:
        self.stack: list[tuple[PythonFunctions, bool, int, int] | None] = []


_running = _Running()


def tokens_of(dataset: Any) -> list[str]:
    """The functions that ``dataset`` calls for its elements, by the names that TensorFlow gave them."""
    function = getattr(dataset, "_map_func", None) or getattr(dataset, "_predicate", None)
    if function is None or _MODULE not in sys.modules:
        return []
    graph = function.function.graph.as_graph_def()
    nodes = [*graph.node, *(node for each in graph.library.function for node in each.node_def)]
    found = [node.attr["token"].s.decode() for node in nodes if node.op in _KINDS]
    known = sys.modules[_MODULE]._py_funcs
    generates = [one for one in found if getattr(known.get(one), "__name__", "") == _NEXT_OF_GENERATOR]
    return generates or found


def record(functions: list[PythonFunctions]) -> None:
    """Calls of these functions are recorded from now on, until `forget`."""
    if functions:
        _install()
    for each in functions:
        _of_token.update(dict.fromkeys(each.tokens, each))


def forget(functions: list[PythonFunctions]) -> None:
    for each in functions:
        for token in each.tokens:
            if _of_token.get(token) is each:
                del _of_token[token]


def _install() -> None:
    registry = sys.modules[_MODULE].FuncRegistry
    if not isinstance(registry.__call__, _core.HookedCall):
        registry.__call__ = _core.HookedCall(registry.__call__, _before, _after, _failed)


def _before(_: Any, token: str, *__: Any) -> None:
    functions = _of_token.get(token)
    if functions is None:
        _running.stack.append(None)
        return
    _running.stack.append((functions, functions.operator.begin(), perf_counter_ns(), thread_time_ns()))


def _after(*_: Any) -> None:
    _end(False)


def _failed(*_: Any) -> None:
    _end(True)


def _end(failed: bool) -> None:
    call = _running.stack.pop()
    if call is None:
        return
    functions, is_recorded, began_ns, cpu_ns = call
    functions.wall_ns += perf_counter_ns() - began_ns
    functions.cpu_ns += thread_time_ns() - cpu_ns
    if is_recorded:
        # A generator ends by an exception.
        functions.operator.end(failed and functions.operator.kind != "source")
