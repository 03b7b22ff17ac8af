"""A loop over Ray's batches in the dataset of a DataLoader without workers: stages of that loader."""

from __future__ import annotations

import functools
import sys
from types import FrameType
from typing import TYPE_CHECKING, Any

from headrace.loaders.kit import streams
from headrace.loaders.kit.names import is_the_users
from headrace.loaders.ray_data.attachment import RayAttachment
from headrace.record.session import enabled

if TYPE_CHECKING:
    from headrace.loaders.torch_dataloader.hook import Around


def install() -> None:
    """Loops over batches ask from now on whether they feed a DataLoader. Raises AttributeError for another
    version."""
    kind: Any = sys.modules["ray.data.iterator"]._IterableFromIterator
    iterate = kind.__iter__
    if getattr(iterate, "looks_around", False):
        return

    @functools.wraps(iterate)
    def recorded(self: Any) -> Any:
        around = _around(sys._getframe(1)) if enabled() else None
        if around is None:
            return iterate(self)
        RayAttachment(self, around).begin_inside()
        return streams.waiting(iterate(self))

    recorded.looks_around = True  # type: ignore[attr-defined]
    kind.__iter__ = recorded


def is_part(frame: FrameType) -> bool:
    """A loop of another library, or one that feeds a DataLoader."""
    return not is_the_users(frame.f_code.co_filename) or _around(frame) is not None


def _around(frame: FrameType) -> Around | None:
    if "torch.utils.data" not in sys.modules:
        return None
    from headrace.loaders.torch_dataloader.hook import loader_around

    return loader_around(frame)


STAGES = streams.StreamStages("ray.data.iterator", install)
