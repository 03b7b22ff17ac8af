"""The cases: a function each, which takes a seed and returns a `training.Case`. A family is a file.

To add cases, write a file with a list `CASES` beside these and name it in `FAMILIES`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cases import healthy_numbers, healthy_structures, magnitudes, not_finite, structures

FAMILIES: dict[str, list[Callable[[int], Any]]] = {
    "healthy structures": healthy_structures.CASES,
    "healthy numbers": healthy_numbers.CASES,
    "not finite": not_finite.CASES,
    "structures": structures.CASES,
    "magnitudes": magnitudes.CASES,
}
