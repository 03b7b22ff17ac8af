"""An object's own attributes, read without the dict.

Python 3.11 and 3.12 keep the attributes of an instance beside it until somebody asks for its ``__dict__``.
From then on each access is slower, as long as the object lives: a transform took 1.35 times as long.
"""

from __future__ import annotations

import gc
from typing import Any

_NONE = object()


def own_attribute(obj: Any, name: str) -> Any:
    """The attribute; None where only a class has it, a descriptor answers for it, or nothing does.

    Runs no code of the user.
    """
    if isinstance(obj, type):
        return vars(obj).get(name)
    of_class = next((vars(kind)[name] for kind in type(obj).__mro__ if name in vars(kind)), _NONE)
    if hasattr(type(of_class), "__get__") or hasattr(type(of_class), "__set__"):
        return None
    try:
        found = object.__getattribute__(obj, name)
    except AttributeError:
        return None
    return None if found is of_class else found


def own_values(obj: Any) -> list[Any]:
    """The values of its own attributes, and other objects that it refers to; the first thousand."""
    values: list[Any] = []
    for each in gc.get_referents(obj)[:1000]:
        if type(each) is dict and _is_own(each, obj):
            values.extend(each.values())
        else:
            values.append(each)
    return values


def _is_own(found: dict[Any, Any], obj: Any) -> bool:
    """Whether it looks like the object's dict: somebody has asked for it, or this Python always has one."""
    name = next(iter(found), None)
    return type(name) is str and own_attribute(obj, name) is found[name]
