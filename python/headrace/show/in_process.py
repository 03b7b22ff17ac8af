"""Loops of this process that are recorded for a while: those of a notebook's cell, or of a test."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from headrace import _core
from headrace.export._recorded import reports_in
from headrace.record.session import session
from headrace.results.report import Report


@contextmanager
def recorded_loops(folder: str = "") -> Iterator[Callable[[], list[Report]]]:
    """Inside the block every DataLoader is recorded, if PyTorch is there, and what is wrapped.

    folder: the run folder; "": one that is gone after the block. Yields what is called inside the block, from
    any thread: it returns the reports of the loops so far that did a step.
    """
    own: AbstractContextManager[str] = (
        nullcontext(folder) if folder else tempfile.TemporaryDirectory(prefix="headrace-")
    )
    with own as run, session(run), _data_loaders():
        current = _core.current_session()
        segment = current.live_path if current is not None else ""
        yield lambda: [one for one in reports_in(segment) if one.profile.sink.steps > 0] if segment else []


def waited_s(report: Report) -> float:
    """Seconds in all that the loop waited for its batches."""
    wait = report.profile.sink.getnext_wait
    return wait.mean_s * wait.count


@contextmanager
def _data_loaders() -> Iterator[None]:
    if "torch.utils.data" not in sys.modules:
        yield
        return
    from headrace.loaders.torch_dataloader import loaders, record_every_loader

    mine = not loaders.records_all()
    record_every_loader()
    try:
        yield
    finally:
        if mine:
            loaders.record_only_wrapped()
