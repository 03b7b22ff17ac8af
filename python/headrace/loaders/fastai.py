"""fastai's DataLoader: torch's iterators and worker processes, with callbacks in place of transforms.

Its ``__iter__`` is a generator around one of torch's iterators, over a loader that only torch sees. GetNext
is the generator's, because `after_batch` runs in it, behind torch's iterator. A batch is made by the dataset,
`after_item`, `before_batch` and collating.
"""

from __future__ import annotations

import copy
import sys
from functools import partial
from types import FunctionType
from typing import Any

from headrace import _core
from headrace.common.messages import warn_once
from headrace.common.own_attributes import own_attribute
from headrace.loaders.iterable import IterableAdapter
from headrace.loaders.kit import every_loop, libraries
from headrace.loaders.kit.base import Adapter, Attachment, subclass
from headrace.loaders.kit.names import callers, object_name
from headrace.loaders.torch_dataloader import hook, loaders
from headrace.loaders.torch_dataloader.operators import ForeignLoader, Plan, register
from headrace.loaders.torch_dataloader.outer_loops import OuterLoop

#: Callbacks that run where a batch is made, in their order.
_OF_ITEMS = ("after_item", "before_batch")


def users_dataset(fake: Any) -> Any:
    """The dataset of the DataLoader that torch's iterator reads through ``fake``."""
    dataset = own_attribute(fake.d, "dataset")
    return fake.d if dataset is None else dataset


def parameters(fake: Any) -> dict[str, tuple[str, Any]]:
    return {
        "num_workers": ("num_workers", int(fake.num_workers)),
        "prefetch_factor": ("", int(fake.prefetch_factor)),
        "batch_size": ("bs", fake.d.bs),
        "pin_memory": ("pin_memory", bool(fake.pin_memory)),
    }


def plan(walk: Plan, fetcher: Any) -> None:
    """Times what ``fetcher`` runs: the generator of batches, and what it calls."""
    loader = fetcher.dataset.d
    dataset = own_attribute(loader, "dataset")
    if dataset is not None:
        walk.visit_dataset(dataset)
        # The transforms of a dataset of fastai's own (`TfmdLists`, `Datasets`), or of torchvision's kind.
        for each in _items(own_attribute(dataset, "tls")) or [dataset]:
            _visit_pipeline(walk, own_attribute(each, "tfms"))
        walk.add(loader, "dataset", dataset, lambda: walk.timed_dataset(dataset))
    for name in _OF_ITEMS:
        # A callback of the user's, in front of the class's own function: an object, or transforms.
        callback = vars(loader).get(name)
        if isinstance(callback, FunctionType):
            place = _core.STAGE_TRANSFORM + len(walk.operators)
            operator = walk.operator(object_name(callback), "map", place)
            walk.add(loader, name, callback, partial(_core.TimedCallable, callback, operator, True))
        elif callable(callback) and not _visit_pipeline(walk, callback):
            walk.time_calls(callback)
    # The rest of the generator's time: it draws, joins items, and makes a batch of them.
    made = vars(loader).get("create_batch")
    joins = walk.operator("create_batch" if made is None else object_name(made), "batch", _core.STAGE_COLLATE)
    batches = fetcher.dataset_iter
    walk.add(None, "dataset_iter", batches, lambda: _core.OperatorIterator(batches, joins))


def is_empty(pipeline: Any) -> bool:
    """A pipeline without transforms, which fastai makes where its user gives none."""
    entries = _items(own_attribute(pipeline, "fs"))
    return entries is not None and all(own_attribute(one, "_name") == "noop" for one in entries)


def _visit_pipeline(walk: Plan, pipeline: Any) -> bool:
    entries = _items(own_attribute(pipeline, "fs"))
    if entries is None:
        return False
    for one in entries:
        named = own_attribute(one, "_name")  # of a transform that fastai made of a function
        if callable(one) and not isinstance(one, type) and named != "noop":
            walk.time_calls(one, named if isinstance(named, str) else "")
    return True


def _items(collection: Any) -> list[Any] | None:
    """The list inside of a collection of fastcore's."""
    found = collection if type(collection) is list else own_attribute(collection, "items")
    return found if type(found) is list else None


register("fastai.data.load", "_FakeLoader", ForeignLoader(users_dataset, parameters, plan))


_MODULE = "fastai.data.load"


class FastaiAdapter(Adapter):
    """fastai's DataLoader, and those below it (``TfmdDL``)."""

    libraries = ("fastai",)
    classes = (f"{_MODULE}:DataLoader",)

    @property
    def keeps_class(self) -> bool:  # type: ignore[override]
        return not missing_name()

    def attach(self, obj: Any, name: str | None = None) -> Attachment:
        if self.keeps_class:
            return Attachment(())
        warn_once(f"operator detail unavailable: fastai.data.load has no {missing_name()}")
        return IterableAdapter().attach(obj, name)

    def as_instance(self, obj: Any, handle: _core.LoaderHandle, methods: dict[str, Any]) -> Any:
        install()
        wrapped, fake = _copied(obj)
        wrapped.__class__ = _below(type(obj), methods)
        fake.__class__ = _below(type(fake), {loaders.RECORD: handle})
        return wrapped

    def unrecorded(self, obj: Any) -> Any:
        plain, fake = _copied(obj)
        vars(fake)[loaders.UNRECORDED] = True
        return plain


def _copied(obj: Any) -> tuple[Any, Any]:
    """A copy, and that of the loader that only torch sees."""
    made, fake = copy.copy(obj), copy.copy(obj.fake_l)
    made.fake_l, fake.d, fake.dataset = fake, made, fake
    return made, fake


def _below(base: Any, methods: dict[str, Any]) -> Any:
    """A subclass that is the class itself in other processes."""

    def __reduce_ex__(self: Any, protocol: Any) -> Any:  # noqa: N807
        return object.__new__, (base,), vars(self)

    return subclass(base, {"__reduce_ex__": __reduce_ex__, **methods})


def missing_name() -> str:
    """A private name that another version lacks; "" if all are there."""
    module: Any = sys.modules.get(_MODULE)
    wanted = [
        (module, "_loaders"),
        (module, "_FakeLoader"),
        (getattr(module, "DataLoader", None), "__iter__"),
    ]
    return next((name for owner, name in wanted if not hasattr(owner, name)), "")


def record_every_loader() -> None:
    """From now on each DataLoader of fastai in this process is recorded (``headrace run``)."""
    if missing_name():
        # Its trainer iterates over it in the library's own code.
        every_loop.patch(sys.modules[_MODULE].DataLoader, FastaiAdapter(), feeds=lambda _: False)
        return
    loaders.record_all()
    install()
    fake: Any = sys.modules[_MODULE]._FakeLoader
    if not isinstance(fake.__init__, _core.HookedCall):
        fake.__init__ = _core.HookedCall(fake.__init__, loaders.note_site)


def install() -> None:
    """Its loops ask from now on whether they are recorded."""
    module: Any = sys.modules[_MODULE]
    kind = module.DataLoader
    if isinstance(kind.__iter__, _core.HookedCall):
        return
    hook.patch_class()
    module._loaders = tuple(hook.hooked_maker(each, of_outer_loops=True) for each in module._loaders)
    kind.__iter__ = _core.HookedCall(kind.__iter__, None, _begins)


def _begins(made: Any, loader: Any) -> Any:
    if _is_a_look():
        return None
    fake = loader.fake_l
    record = loaders.record_of(fake)
    if record is None or record.id < 0:
        return None
    loop = OuterLoop(made, fake, record)
    callback = vars(loader).get("after_batch")
    if callable(callback) and not is_empty(callback):
        loop.time(loader, "after_batch", "after_batch")
    return loop.in_its_phase(fake)


def _is_a_look() -> bool:
    """One batch that fastai takes to show it, or to learn its shape, is no loop."""
    return any(each.f_code.co_name in ("one_batch", "first") for each in callers(sys._getframe(1), 4))


libraries.adapters.append(FastaiAdapter())
RECORDED_AFTER = {_MODULE: ""}
