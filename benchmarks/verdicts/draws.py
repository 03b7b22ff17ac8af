"""All classes of both frameworks under one name: what is drawn from them, and how a class is scored."""

from __future__ import annotations

import edge_classes as _edge_classes  # noqa: F401  registers its classes
import loader_edge_classes as _loader_edge_classes  # noqa: F401  registers its classes
from classes import CLASSES, QUIET_CLASSES, draw
from line import Expected, Line
from loader import Loader
from loader_classes import LOADER_CLASSES, QUIET_LOADERS, draw_loader
from native_classes import draw_native, is_native, is_quiet_native, names_of_natives

LINES, LOADERS, NATIVES = "threads and queues", "DataLoader", "native pipelines"


def is_alarm_free(name: str) -> bool:
    return name in QUIET_CLASSES | QUIET_LOADERS or (is_native(name) and is_quiet_native(name))


def names_of(framework: str) -> list[str]:
    if framework == NATIVES:
        return names_of_natives()
    return list(CLASSES if framework == LINES else LOADER_CLASSES)


def framework_of(name: str) -> str:
    if is_native(name):
        return NATIVES
    return LINES if name in CLASSES else LOADERS


def drawn(name: str, seed: int, seconds: float) -> tuple[Line | Loader, Expected]:
    """A line or a loader, whichever the class is of."""
    if is_native(name):
        return draw_native(name, seed, seconds)
    return (draw if name in CLASSES else draw_loader)(name, seed, seconds)
