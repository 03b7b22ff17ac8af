"""How a DataLoader is set, as its user would write it."""

from __future__ import annotations

import sys
import types
from typing import Any

#: Frames between a trainer's loop and the loader's iterator: a few of torch's, accelerate's and ours.
_DEEPEST_STACK = 40


def _sharing_strategy() -> str:
    strategy = getattr(sys.modules.get("torch.multiprocessing"), "get_sharing_strategy", None)
    return str(strategy()) if strategy is not None else ""


def _start_method(loader: Any) -> str:
    context = getattr(loader, "multiprocessing_context", None)
    if context is None:
        context = sys.modules.get("torch.multiprocessing")
    method = getattr(context, "get_start_method", None)
    # Asked plainly it would fix the default for the whole process.
    return str((method(allow_none=True) if method is not None else None) or "fork")


def _trainer() -> str:
    """The framework whose training loop iterates over the loader, and whose parameters set it."""
    if "transformers.trainer" not in sys.modules:
        return ""
    frame: types.FrameType | None = sys._getframe()
    for _ in range(_DEEPEST_STACK):
        if frame is None:
            break
        if frame.f_globals.get("__name__") == "transformers.trainer":
            return "transformers"
        frame = frame.f_back
    return ""


def settings_of(loader: Any) -> dict[str, str]:
    """Parameter and value of everything that advice may be about."""
    workers = int(getattr(loader, "num_workers", 0) or 0)
    settings = {
        "framework": "torch",
        "num_workers": workers,
        "prefetch_factor": getattr(loader, "prefetch_factor", None),
        "batch_size": getattr(loader, "batch_size", None),
        "in_order": getattr(loader, "in_order", True),
        "persistent_workers": getattr(loader, "persistent_workers", False),
        "pin_memory": getattr(loader, "pin_memory", False),
        "dataset_kind": "iterable" if _is_iterable(loader) else "map",
        "collates": getattr(loader, "_auto_collation", True),
    }
    trainer = _trainer()
    if trainer:
        settings["trainer"] = trainer
    if workers > 0:
        settings["sharing_strategy"] = _sharing_strategy()
        settings["start_method"] = _start_method(loader)
    return {key: str(value) for key, value in settings.items()}


def _is_iterable(loader: Any) -> bool:
    dataset_class = getattr(sys.modules.get("torch.utils.data"), "IterableDataset", None)
    return dataset_class is not None and isinstance(getattr(loader, "dataset", None), dataset_class)


def as_lines(settings: dict[str, str]) -> str:
    """One ``parameter=value`` a line."""
    return "".join(f"{key}={value}\n" for key, value in settings.items())
