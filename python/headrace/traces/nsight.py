"""Reports of Nsight Systems (``.nsys-rep``), which only ``nsys`` itself can open."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

from headrace.errors import FormatError

ENDING = ".nsys-rep"

#: Exports of this process; removed when it ends.
_exports: dict[str, tuple[tempfile.TemporaryDirectory[str], str]] = {}


def without_exported(paths: list[str]) -> list[str]:
    """The paths, but for reports whose export lies beside them."""
    there = set(paths)
    return [
        path
        for path in paths
        if not path.endswith(ENDING) or f"{path.removesuffix(ENDING)}.sqlite" not in there
    ]


def readable(report: str) -> str:
    """A SQLite export of the report: the one beside it, or one that ``nsys`` makes in a temporary folder.

    FormatError where there is neither, with the command to run.
    """
    beside = Path(f"{report.removesuffix(ENDING)}.sqlite")
    if beside.exists():
        return str(beside)
    if not Path(report).exists():
        return report  # what reads it says so
    program = shutil.which("nsys")
    if program is None:
        command = shlex.join(_command("nsys", report, str(beside)))
        raise FormatError(
            report, None, f"only nsys can open it, and it is not on the PATH here. Run: {command}"
        )
    if report not in _exports:
        folder = tempfile.TemporaryDirectory(prefix="headrace-")
        export = str(Path(folder.name) / beside.name)
        made = subprocess.run(_command(program, report, export), capture_output=True, text=True, check=False)
        if made.returncode != 0 or not Path(export).exists():
            said = (made.stderr or made.stdout).strip().splitlines()
            raise FormatError(report, None, f"nsys export failed: {said[-1] if said else made.returncode}")
        _exports[report] = (folder, export)
    return _exports[report][1]


def _command(program: str, report: str, export: str) -> list[str]:
    """Blobs hold the sizes of NCCL's collectives."""
    return [program, "export", "--type", "sqlite", "--include-blobs", "true", "-o", export, report]
