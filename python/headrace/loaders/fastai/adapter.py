"""Detects a DataLoader of fastai, and records loops over it.

Its ``__iter__`` is a generator around one of torch's iterators, over a loader that only torch sees. GetNext
is the generator's, because `after_batch` runs in it, behind torch's iterator.
"""

from __future__ import annotations

import copy
import sys
from types import FrameType
from typing import Any

from headrace import _core
from headrace.common.messages import warn_once
from headrace.loaders.fastai import operators
from headrace.loaders.iterable import IterableAdapter
from headrace.loaders.kit import every_loop
from headrace.loaders.kit.base import Attachment, classes_of
from headrace.loaders.torch_dataloader import hook, loaders
from headrace.loaders.torch_dataloader.outer_loops import OuterLoop
from headrace.record.session import in_its_phase

_MODULE = "fastai.data.load"


class FastaiAdapter(IterableAdapter):
    """fastai's DataLoader, and those below it (``TfmdDL``)."""

    libraries = ("fastai",)

    @property
    def keeps_class(self) -> bool:  # type: ignore[override]
        return not missing_name()

    def detect(self, obj: object) -> int:
        return 50 if isinstance(obj, classes_of(_MODULE, "DataLoader")) else 0

    def name(self, obj: object) -> str:
        return type(obj).__name__

    def attach(self, obj: Any, name: str | None = None) -> Attachment:
        if self.keeps_class:
            return Attachment(())
        warn_once(f"operator detail unavailable: fastai.data.load has no {missing_name()}")
        return super().attach(obj, name)

    def as_instance(self, obj: Any, handle: _core.LoaderHandle, methods: dict[str, Any]) -> Any:
        install()
        wrapped, fake = copy.copy(obj), copy.copy(obj.fake_l)
        wrapped.fake_l, fake.d, fake.dataset = fake, wrapped, fake
        wrapped.__class__ = _below(type(obj), methods)
        fake.__class__ = _below(type(fake), {loaders.RECORD: loaders.Record(handle)})
        return wrapped

    def unrecorded(self, obj: Any) -> Any:
        plain, fake = copy.copy(obj), copy.copy(obj.fake_l)
        plain.fake_l, fake.d, fake.dataset = fake, plain, fake
        vars(fake)[loaders.UNRECORDED] = True
        return plain


def _below(base: Any, methods: dict[str, Any]) -> type:
    """A subclass that is the class itself in other processes."""

    def __reduce_ex__(self: Any, protocol: Any) -> Any:  # noqa: N807
        return object.__new__, (base,), vars(self)

    namespace = {"__module__": base.__module__, "__qualname__": base.__qualname__, "__doc__": base.__doc__}
    made: type = type(base)(base.__name__, (base,), {**namespace, "__reduce_ex__": __reduce_ex__, **methods})
    return made


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
    if record is None or record.handle.id < 0:
        return None
    loop = OuterLoop(made, fake, record.handle)
    _time_after_batch(loop, loader)
    return in_its_phase(loop, record.handle, fake, lambda recorded: recorded.made)


def _is_a_look() -> bool:
    """One batch that fastai takes to show it, or to learn its shape, is no loop."""
    frame: FrameType | None = sys._getframe(1)
    for _ in range(4):
        if frame is None:
            return False
        if frame.f_code.co_name in ("one_batch", "first"):
            return True
        frame = frame.f_back
    return False


def _time_after_batch(loop: OuterLoop, loader: Any) -> None:
    callback = vars(loader).get("after_batch")
    if callable(callback) and not operators.is_empty(callback):
        loop.time(loader, "after_batch", "after_batch")
