"""The cost of packing a batch in a worker, measured on one batch of a loader without workers.

The batch is pickled into a counter on the loop's own thread, at most twice in a loader's life. The pickle is
never read back. Python code of the batch is not run: an object whose pickling is Python code is counted
with its attributes instead. Tensors and arrays are counted, not copied. A batch that cannot be pickled
has no estimate.
"""

from __future__ import annotations

import copyreg
import pickle
import time
import types
import weakref
from typing import Any

from headrace.common.handlers import let_through
from headrace.loaders.kit.base import classes_of

#: Pickled bytes after which the sample ends; a longer one takes longer than a loop should wait.
_MAX_BYTES = 1 << 20

_HOOKS = (
    "__getattr__",
    "__getattribute__",
    "__reduce__",
    "__reduce_ex__",
    "__getstate__",
    "__getnewargs__",
    "__getnewargs_ex__",
)
_NAMED = (type, types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType)
#: Placeholder for objects whose pickling is not run.
_STAND_INS = (int, object, dict, list)
#: Placeholder for what is counted and not pickled.
_NOTHING = (int, ())


class _FullError(Exception):
    """More bytes than the sample may have."""


class _Count:
    """A file that only counts."""

    def __init__(self) -> None:
        self.bytes = 0

    def write(self, data: Any) -> int:
        size = len(data) if isinstance(data, bytes) else memoryview(data).nbytes
        self.bytes += size
        if self.bytes > _MAX_BYTES:
            raise _FullError
        return size


def _runs_python(kind: type) -> bool:
    """Whether pickling an object of this class would run Python code."""
    if kind in copyreg.dispatch_table:
        return True
    for base in kind.__mro__:
        if base is not object and any(isinstance(base.__dict__.get(hook), _PYTHON_CODE) for hook in _HOOKS):
            return True
    return False


_PYTHON_CODE = (types.FunctionType, property, classmethod, staticmethod)


class _Sample(pickle.Pickler):
    def __init__(self, count: _Count) -> None:
        super().__init__(count, pickle.HIGHEST_PROTOCOL)
        self.tensors = 0
        self.array_bytes = 0
        self._tensors = classes_of("torch", "Tensor")
        self._arrays = classes_of("numpy", "ndarray")

    def reducer_override(self, obj: Any) -> Any:
        kind = type(obj)
        if issubclass(kind, self._tensors):
            self.tensors += 1
            return _NOTHING
        if issubclass(kind, self._arrays):
            self.array_bytes += int(self._arrays[0].nbytes.__get__(obj))  # type: ignore[attr-defined]
            return _NOTHING
        if issubclass(kind, _NAMED):
            return NotImplemented if any(obj is one for one in _STAND_INS) else _NOTHING
        # Subclasses of containers with their contents: their own methods might be overridden.
        if issubclass(kind, dict):
            return dict, (), None, None, iter(dict.items(obj))
        if issubclass(kind, list):
            return list, (), None, list.__iter__(obj)
        if issubclass(kind, tuple):
            return list, (), None, tuple.__iter__(obj)
        if _runs_python(kind):
            try:
                return object, (), object.__getattribute__(obj, "__dict__")
            except AttributeError:
                return _NOTHING
        if issubclass(kind, weakref.ref):
            return _NOTHING  # PyG's graphs hold some, and leave them out when they are pickled
        return NotImplemented


def measure(batch: Any) -> tuple[int, int, int, str] | None:
    """Bytes of the message, tensors in the batch, nanoseconds of CPU time for pickling, class of the batch.

    The bytes are a lower bound if the batch is too large to sample. None if unknown.
    """
    count = _Count()
    sample = _Sample(count)
    began = time.thread_time_ns()
    try:
        sample.dump(batch)
    except _FullError:
        pass
    except Exception as error:
        let_through(error)
        return None
    took = time.thread_time_ns() - began
    kind = type(batch)
    # An object that keeps its tensors in its own dict.
    own = not issubclass(kind, (dict, list, tuple, *classes_of("torch", "Tensor"))) and hasattr(kind, "keys")
    return count.bytes + sample.array_bytes, sample.tensors, took, kind.__name__ if own else ""
