"""Bodies that are not Python functions: C functions by address or capsule."""

from __future__ import annotations

import sys
from typing import Any

from headrace import _core
from headrace.errors import UsageError

NativeBody = _core.NativeBody


def native_body(function: Any, *, output_bytes: int, context: int = 0) -> NativeBody:
    """A C function as the body of a map: called without the interpreter lock, by several threads at a time.

    function: a ctypes function, a PyCapsule named "headrace.body" (its context is passed on), or an address
    as an int, of the type

        int64_t body(const void *input, int64_t input_bytes,
                     void *output, int64_t output_bytes, void *context)

    It reads the item's buffer (bytes, array, memoryview: contiguous), writes at most ``output_bytes`` bytes
    and returns how many, or a number below 0 to fail. The item that it makes is a bytearray of what was
    written (``numpy.frombuffer`` accepts it). Raises UsageError for anything else.
    """
    if type(function).__name__ == "PyCapsule":
        try:
            return NativeBody.from_capsule(function, output_bytes)
        except ValueError:
            raise UsageError('a capsule with a C body is named "headrace.body"') from None
    if isinstance(function, int) and not isinstance(function, bool):
        return NativeBody(function, context, output_bytes, None)
    ctypes = sys.modules.get("ctypes")
    if ctypes is not None and isinstance(function, ctypes._CFuncPtr):
        address = ctypes.cast(function, ctypes.c_void_p).value or 0
        return NativeBody(address, context, output_bytes, function)
    raise UsageError(
        f"native_body takes a ctypes function, a capsule or an address, not {type(function).__name__}"
    )
