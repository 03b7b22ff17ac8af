"""A loader's own queues: their put and get report where each batch is.

The queue object stays the loader's; it gets a subclass of its class with the same name, whose methods pass
the call to the `QueueCall` stored in the object.
"""

from __future__ import annotations

from typing import Any

from headrace import _core

_CALL = {"put": "_headrace_put", "get": "_headrace_get"}
_followed_classes: dict[type, type] = {}


def _followed_class(base: type) -> type:
    made = _followed_classes.get(base)
    if made is None:
        namespace: dict[str, Any] = {"__module__": base.__module__, "__qualname__": base.__qualname__}
        for method, attribute in _CALL.items():
            namespace[method] = _core.QueueMethod(getattr(base, method), attribute)
        made = _followed_classes[base] = type(base.__name__, (base,), namespace)
        _followed_classes[made] = made
    return made


def follow(queue: Any, method: str, role: str, told: Any, worker: int = -1) -> None:
    """``method`` (put or get) of ``queue`` reports each item to ``told``, a watch or writer.

    role: as for `QueueCall`. Raises if the queue cannot be followed.
    """
    followed = _followed_class(type(queue))
    original = followed.__dict__[method].__wrapped__
    queue.__dict__[_CALL[method]] = _core.QueueCall(role, original, told, worker)
    queue.__class__ = followed
