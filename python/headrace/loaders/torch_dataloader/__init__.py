"""PyTorch's DataLoader, inside and out.

hook      hooks the iterator that a loader makes (``_get_iterator``) and of its queues
worker    what runs in each worker process before its first batch
operators finds dataset, transforms and collate function, and their stand-ins while a batch is fetched;
          loaders of other libraries that read with torch's iterators, Keras' among them
loaders   which loaders are recorded, under which name
outer_loops loops over iterators that make each batch of several
settings  a loader's settings, as its user would write them
"""

from __future__ import annotations

import copy
from typing import Any

from headrace import _core
from headrace.loaders.kit import libraries
from headrace.loaders.kit.base import Adapter, Attachment, classes_of, subclass
from headrace.loaders.torch_dataloader import hook, loaders
from headrace.loaders.torch_dataloader.hook import record_every_loader
from headrace.record.operator import itself


class DataLoaderAdapter(Adapter):
    """A DataLoader with or without worker processes, also one that a framework makes from it."""

    libraries = ("torch.utils.data",)
    keeps_class = True

    def detect(self, obj: object) -> int:
        return 30 if isinstance(obj, classes_of("torch.utils.data", "DataLoader")) else 0

    def handle_of(self, obj: Any) -> _core.LoaderHandle | None:
        record = getattr(type(obj), loaders.RECORD, None)
        return record if isinstance(record, _core.LoaderHandle) else None

    def attach(self, obj: Any, name: str | None = None) -> Attachment:
        # Not the loader itself: its recording lives in a class, which only the garbage collector frees.
        return Attachment(())

    def as_instance(self, obj: Any, handle: _core.LoaderHandle, methods: dict[str, Any]) -> Any:
        """A shallow copy of the loader that is still an instance of its class and is recorded by ``handle``.

        Loaders that are made later over the same dataset are adopted: frameworks re-create them.
        """
        base = type(obj)

        def __reduce_ex__(self: Any, protocol: Any) -> Any:  # noqa: N807
            plain: Any = object.__new__(base)
            plain.__dict__.update(self.__dict__)
            # In other processes it is the bare loader: it is recorded where it was wrapped.
            return itself, (plain,)

        namespace = {
            # In the class, not in the object: a framework's loaders of this class are recorded as well.
            loaders.RECORD: handle,
            "_get_iterator": hook.hooked_get_iterator(base),
            "__reduce_ex__": __reduce_ex__,
            **methods,
        }
        if namespace["_get_iterator"] is None:
            # The hook of another loader class: it may make a DataLoader inside, which is adopted.
            del namespace["_get_iterator"]
        wrapped = copy.copy(obj)
        # Not by setattr: accelerate's loaders have a property of that name, without a setter.
        object.__dict__["__class__"].__set__(wrapped, subclass(base, namespace))
        loaders.register(handle, wrapped, instead_of=obj)
        hook.patch_class()
        hook.adopt_iterators(wrapped, handle)
        return wrapped

    def unrecorded(self, obj: Any) -> Any:
        plain = copy.copy(obj)
        plain.__dict__[loaders.UNRECORDED] = True
        plain.__dict__["_iterator"] = None  # persistent workers stay with the loader that has them
        return plain

    def generators(self, obj: Any) -> list[Any]:
        return loaders.generators_of(obj)


libraries.adapters.append(DataLoaderAdapter())

RECORDED_AFTER = {
    "torch.utils.data": "",
    "torch.utils.data.dataloader": "",
    "accelerate.data_loader": "",
    "torchdata.stateful_dataloader": "",
    "torchdata.stateful_dataloader.stateful_dataloader": "",
}

__all__ = ["DataLoaderAdapter", "record_every_loader"]
