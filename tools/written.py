"""Files that are written from declarations: write them, or check that they are up to date."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def write_or_check(wanted: Mapping[Path, str]) -> int:
    """Write each file's text; with --check write nothing, and name the files that differ. The exit status."""
    if "--check" not in sys.argv[1:]:
        for path, text in wanted.items():
            path.write_text(text, encoding="utf-8")
        return 0
    stale = [path for path, text in wanted.items() if path.read_text(encoding="utf-8") != text]
    for path in stale:
        print(f"{path.relative_to(ROOT)} is out of date: run `make figures`")
    return 1 if stale else 0
