"""Records of whole runs in JSON files, to be pooled later."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from record import Record

VERSION = 1


def save(path: Path, records: list[Record], about: dict[str, Any]) -> None:
    document = {"version": VERSION, **about, "records": [one.to_dict() for one in records]}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1) + "\n")


def load(paths: list[Path]) -> list[Record]:
    """The records of all files; a draw that stands in several counts once, as it was last recorded."""
    pooled: dict[tuple[str, int, str], Record] = {}
    for path in paths:
        document = json.loads(path.read_text())
        if document.get("version") != VERSION:
            raise SystemExit(f"{path}: not a file of this benchmark's version {VERSION}")
        for fields in document["records"]:
            one = Record.from_dict(fields)
            pooled[one.name, one.seed, one.drawn] = one
    return list(pooled.values())
