"""The cases: a function each, which takes a seed and returns a `training.Case`. A family is a file.

To add cases, write a file with a list `CASES` beside these and name it in `FAMILIES`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cases import (
    faults_of_fields,
    healthy_fields,
    healthy_numbers,
    healthy_structures,
    magnitudes,
    not_finite,
    structures,
)

FAMILIES: dict[str, list[Callable[[int], Any]]] = {
    "healthy structures": healthy_structures.CASES,
    "healthy numbers": healthy_numbers.CASES,
    "healthy fields": healthy_fields.CASES,
    "not finite": not_finite.CASES,
    "structures": structures.CASES,
    "magnitudes": magnitudes.CASES,
    "faults of fields": faults_of_fields.CASES,
}
