"""Figures as a page writes them: those of the text report, and lengths of pictures."""

from __future__ import annotations

import math
from typing import Any

from headrace._core import duration


def fraction(share: float | None) -> float:
    """Between 0 and 1, whatever was recorded; 0 where it is unknown."""
    return min(1.0, max(0.0, share)) if share is not None and math.isfinite(share) else 0.0


def interval(low_s: float, high_s: float, between: str = " to ") -> str:
    """``36.5 to 40.4 ms``: the unit stands once where both have it."""
    low, high = duration(low_s), duration(high_s)
    figure, blank, unit = low.partition(" ")
    return f"{figure if high.endswith(blank + unit) else low}{between}{high}"


def batch_time(op: dict[str, Any]) -> str:
    """The states of all workers together."""
    return "-" if op["demand_s"] is None else duration(op["demand_s"] * op["workers"])


def counted(count: float, noun: str) -> str:
    return f"{count:.0f} {noun}{'' if count == 1 else 's'}"


def number(value: float | None, decimals: int = 0) -> str:
    return "-" if value is None or not math.isfinite(value) else f"{value:.{decimals}f}"


def figure(value: float | None) -> str:
    """Four figures, as a table of evidence has them."""
    return "-" if value is None or not math.isfinite(value) else f"{value:.4g}"


def or_dash(value: object) -> str:
    return "-" if value is None else str(value)


def limit(name: str) -> str:
    """A limit as a sentence has it."""
    return {"sink": "the training step", "cpu": "the CPU"}.get(name, name)


def printable(value: Any) -> Any:
    """Texts without control characters and marks that turn the direction of what follows."""
    if not isinstance(value, str) or hasattr(value, "__html__") or value.isprintable():
        return value
    return "".join(one if one.isprintable() else " " if one.isspace() else "" for one in value)


def encodable(text: str) -> str:
    """``text`` with "?" for bytes of a file name that are no UTF-8."""
    return text.encode(errors="replace").decode()


def cut(text: object, most: int = 40) -> str:
    found = str(printable(str(text)))
    return found if len(found) <= most else f"{found[: most - 1]}…"


def whole(text: object) -> str:
    """A name in a table or a tooltip."""
    return cut(text, 1000)


def sentence(text: str) -> str:
    """Begins with a capital letter."""
    found = cut(text, 600)
    return found[:1].upper() + found[1:]


def units(value: float) -> str:
    """A length of a picture: one decimal."""
    return f"{value:.1f}".removesuffix(".0")


def css_percent(share: float) -> str:
    return f"{100 * fraction(share):.2f}%"


def level(share: float | None) -> str:
    """The class of a queue's level or a worker's load: ``l0`` (none) to ``l4`` (all)."""
    return f"l{min(4, int(5 * fraction(share)))}"


def queue_words(queue: dict[str, Any]) -> str:
    """In a table: the queues of a native pipeline have the names of the operators before them."""
    return f"{queue['name']} ->" if queue["name"] and queue["name"] == queue["from"] else str(queue["name"])


def level_words(queue: dict[str, Any]) -> str:
    """``0.4 of 8``."""
    mean = number(queue["mean"], 1)
    return f"{mean} of {queue['capacity']}" if (queue["capacity"] or 0) > 0 else f"{mean}, unbounded"
