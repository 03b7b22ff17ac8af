"""The start of recording in each worker process of a DataLoader, between worker_init_fn and its first batch.

The put and get of a loader's own queues, here and in the loop, report where each batch is. The queue object
stays the loader's; it gets a subclass of its class with the same name, whose methods pass the call to the
`QueueCall` stored in the object.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headrace import _core
from headrace.loaders.kit.base import guarded_detail, subclass
from headrace.loaders.kit.names import callers
from headrace.loaders.torch_dataloader.operators import instrument
from headrace.record.session import join_run

_CALL = {"put": "_headrace_put", "get": "_headrace_get"}
_followed_classes: dict[type, type] = {}


def _followed_class(base: type) -> type:
    made = _followed_classes.get(base)
    if made is None:
        methods = {name: _core.QueueMethod(getattr(base, name), own) for name, own in _CALL.items()}
        made = _followed_classes[base] = subclass(base, methods)
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


@dataclass(frozen=True)
class WorkerStart:
    """Called with the worker's number: enters it into the run, times its fetcher, follows its queues.

    Reaches the worker by fork or by pickle. Never raises.
    """

    live_path: str
    loader: int
    pass_number: int
    siblings: int
    #: The loader's user has a worker_init_fn, which may give each worker its part.
    has_init: bool = False
    #: The loader's name, if its data is watched.
    watched_as: str | None = None

    def __call__(self, _: Any, worker_id: int) -> None:
        if not join_run(self.live_path):
            return
        writer = _core.DeliveryWriter.enter(self.loader, self.pass_number, worker_id, self.siblings)
        if writer is None:
            return
        with guarded_detail(self.loader, gap=_core.NO_WORKER_DETAIL):
            self.time_fetcher()
        with guarded_detail(self.loader, gap=_core.NO_HANDOFF_DETAIL):
            _follow_queues(writer)

    def time_fetcher(self) -> None:
        """A fetcher is made after this call, and again for each epoch of a persistent worker."""
        kind = sys.modules["torch.utils.data"]._DatasetKind
        loader = self.loader
        may_read_all = self.siblings > 1 and not self.has_init
        worker_info = sys.modules["torch.utils.data"].get_worker_info

        def made(fetcher: Any, _: Any, dataset: Any, *others: Any) -> None:
            info = worker_info()
            if info is None or dataset is not info.dataset:
                return  # the fetcher of a loader that is used inside this worker
            with guarded_detail(loader, gap=_core.NO_WORKER_DETAIL):
                instrument(fetcher, loader, names_functions=info.id == 0)
                if may_read_all and hasattr(fetcher, "dataset_iter"):
                    _note_undivided_stream(fetcher, info, loader)
                if self.watched_as is not None:
                    _watch_random(fetcher, info, self.watched_as, self.pass_number)

        kind.create_fetcher = _core.HookedCall(kind.create_fetcher, None, made)


def _note_undivided_stream(fetcher: Any, info: Any, loader: int) -> None:
    """A stream that has made its first batch without asking for the worker's number reads all of its data."""
    kind = type(info)

    class WorkerInfo(kind):  # type: ignore[misc, valid-type]
        """Torch's class of this name; notes that its user divides the stream."""

        __slots__ = ()

        def __getattribute__(self, name: str) -> Any:
            if name in ("id", "num_workers", "seed"):
                asked.append(name)
                object.__setattr__(self, "__class__", kind)
            return object.__getattribute__(self, name)

    WorkerInfo.__qualname__ = kind.__qualname__
    asked: list[str] = []

    def made_first() -> None:
        object.__setattr__(info, "__class__", kind)
        if not asked:
            _core.note(loader, "each_worker_reads", "all")

    object.__setattr__(info, "__class__", WorkerInfo)
    _after_first_batch(fetcher, made_first)


def _after_first_batch(fetcher: Any, then: Callable[[], object]) -> None:
    timed = fetcher.__dict__["fetch"]

    def made(*_: Any) -> None:
        fetcher.__dict__["fetch"] = timed
        then()

    fetcher.__dict__["fetch"] = _core.HookedCall(timed, None, made)


def _watch_random(fetcher: Any, info: Any, loader: str, pass_number: int) -> None:
    """The states of the dataset's random numbers now, and after the first batch."""
    session = _core.current_session()
    if session is None:
        return
    from headrace.watch.random_state import start_of_worker

    first_batch = start_of_worker(session, loader, pass_number, info.id, info.dataset)
    _after_first_batch(fetcher, first_batch)


def _follow_queues(writer: _core.DeliveryWriter) -> None:
    # The worker's loop, which torch names differently in different versions.
    wanted, frames = {"index_queue", "data_queue"}, callers(sys._getframe(1))
    frame = next((each for each in frames if wanted <= set(each.f_code.co_varnames)), None)
    if frame is None:
        raise LookupError("no worker's loop on the stack")
    of_loop = _core.local_variables(frame)
    index_queue, data_queue = of_loop["index_queue"], of_loop["data_queue"]
    follow(index_queue, "get", "take", writer)
    follow(data_queue, "put", "deliver", writer)
    # The feeder thread, which starts with the first put, takes this from the queue object.
    data_queue.__dict__["_send_bytes"] = _core.QueueCall("send", data_queue._send_bytes, writer)
