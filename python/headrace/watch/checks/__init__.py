"""What is checked of batches, a file each. To add one: a class like these, and its place in the list."""

from __future__ import annotations

from headrace.watch.checks.base import Check
from headrace.watch.checks.constant import ConstantSamples
from headrace.watch.checks.drift import Drift
from headrace.watch.checks.duplicates import Duplicates
from headrace.watch.checks.labels import Labels
from headrace.watch.checks.nonfinite import NonFinite
from headrace.watch.checks.order import Order
from headrace.watch.checks.padding import Padding
from headrace.watch.checks.scale import Scale
from headrace.watch.checks.shapes import Shapes

CHECKS: list[type[Check]] = [
    NonFinite,
    ConstantSamples,
    Scale,
    Drift,
    Shapes,
    Labels,
    Padding,
    Order,
    Duplicates,
]

__all__ = ["CHECKS", "Check"]
