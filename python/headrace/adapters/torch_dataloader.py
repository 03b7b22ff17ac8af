"""PyTorch's DataLoader: its figures at the sink. What happens inside its workers is not recorded yet."""

from __future__ import annotations

import copy
import sys
from typing import Any

from headrace import _core
from headrace.adapters.base import Adapter, Attachment


def _dataloader_class() -> type | None:
    module = sys.modules.get("torch.utils.data")
    found = getattr(module, "DataLoader", None)
    return found if isinstance(found, type) else None


class DataLoaderAdapter(Adapter):
    """GetNext wait, step and start-up of a DataLoader, with or without workers."""

    library = "torch"

    def detect(self, obj: object) -> int:
        loader = _dataloader_class()
        return 30 if loader is not None and isinstance(obj, loader) else 0

    def name(self, obj: object) -> str:
        return type(obj).__name__

    def attach(self, obj: Any) -> Attachment:
        workers = int(getattr(obj, "num_workers", 0) or 0)
        flags = _core.WRAPPED_OBJECT | (_core.RUNS_OWN_WORKERS if workers > 0 else 0)
        # Without workers the dataset is read in the training loop's own thread: it is the operator.
        name = type(obj).__name__ if workers > 0 else type(getattr(obj, "dataset", obj)).__name__
        return Attachment(obj, source=_core.OperatorHandle(name, "source", 0, flags, "num_workers"))


def _itself(loader: Any) -> Any:
    """A wrapped loader arrives elsewhere as the bare one: what is recorded is this process's loop."""
    return loader


def as_instance(obj: Any, handle_iter: Any, methods: dict[str, Any]) -> Any:
    """A shallow copy of the loader that is still an instance of its class, with ``__iter__`` replaced.

    ``handle_iter(plain)`` makes the recorded iterator from an iterable that behaves as the bare loader does.
    """
    base = type(obj)

    class Plain:
        """iter() of it is iter() of the bare loader: it draws its random numbers at the same moment."""

        def __init__(self, loader: Any) -> None:
            self.loader = loader

        def __iter__(self) -> Any:
            return base.__iter__(self.loader)

    def __iter__(self: Any) -> Any:  # noqa: N807
        return handle_iter(Plain(self))

    def __reduce_ex__(self: Any, protocol: Any) -> Any:  # noqa: N807
        plain: Any = object.__new__(base)
        plain.__dict__.update(self.__dict__)
        return _itself, (plain,)

    namespace = {
        "__iter__": __iter__,
        "__reduce_ex__": __reduce_ex__,
        "__module__": base.__module__,
        "__qualname__": base.__qualname__,
        **methods,
    }
    wrapped_class = type(base.__name__, (base,), namespace)
    wrapped = copy.copy(obj)
    object.__setattr__(wrapped, "__class__", wrapped_class)
    return wrapped
