"""Entries of tables that go with an object.

No Python code runs when the object ends: what a signal's handler raised there would be printed and lost.
"""

from __future__ import annotations

import functools
import weakref
from typing import Any

_references: dict[tuple[int, int], Any] = {}


def remove_with(thing: object, table: dict[Any, Any], key: Any) -> None:
    """Removes ``table[key]`` when ``thing`` ends. Raises TypeError if no weak reference can be made to it."""
    number = id(thing), id(table)
    last = weakref.ref(thing, functools.partial(_references.pop, number))
    # The newest reference is the first that is called, so both are still there then.
    _references[number] = last, weakref.ref(thing, functools.partial(table.pop, key))
