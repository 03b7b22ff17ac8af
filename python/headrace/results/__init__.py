"""What a recording says: profiles, reports, and where they lie."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

#: One function per loader: the model that a saved report of an older version means; None: another loader's.
older_models: list[Callable[[dict[str, Any]], Any]] = []
