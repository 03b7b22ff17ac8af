"""All classes of both frameworks under one name: what is drawn from them, and how a class is scored."""

from __future__ import annotations

import edge_classes as _edge_classes  # noqa: F401  registers its classes
import loader_edge_classes as _loader_edge_classes  # noqa: F401  registers its classes
from classes import CLASSES, QUIET_CLASSES, draw
from line import Expected, Line
from loader import Loader
from loader_classes import LOADER_CLASSES, QUIET_LOADERS, draw_loader

ALARM_FREE = QUIET_CLASSES | QUIET_LOADERS
LINES, LOADERS = "threads and queues", "DataLoader"


def names_of(framework: str) -> list[str]:
    return list(CLASSES if framework == LINES else LOADER_CLASSES)


def framework_of(name: str) -> str:
    return LINES if name in CLASSES else LOADERS


def drawn(name: str, seed: int, seconds: float) -> tuple[Line | Loader, Expected]:
    """A line or a loader, whichever the class is of."""
    return (draw if name in CLASSES else draw_loader)(name, seed, seconds)
