"""How a draw gets into a tool's process, and what it found out of it: two JSON files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from line import Line
from loader import Loader


def write_draw(path: Path, drawn: Line | Loader) -> None:
    is_a = "line" if isinstance(drawn, Line) else "loader"
    path.write_text(json.dumps({"is": is_a, "drawn": json.loads(drawn.to_json())}))


def read_draw(path: str) -> Line | Loader:
    document = json.loads(Path(path).read_text())
    text = json.dumps(document["drawn"])
    return Line.from_json(text) if document["is"] == "line" else Loader.from_json(text)


def write_found(path: str, found: dict[str, Any]) -> None:
    Path(path).write_text(json.dumps(found))
