"""Folders that MindSpore's profiler wrote, read as profiles, tables and a timeline (docs/mindspore.md).

    ranks(folder)                    [0, 1]; empty for a folder of something else
    profile_json(folder, rank)       what any other loader is judged by
    table_names(folder, rank), table(folder, rank, "steps")
    timeline_path(folder, rank)      the profiler's own timeline

Reading changes nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

from headrace import _core
from headrace.errors import Error
from headrace.mindspore_files import tables
from headrace.mindspore_files.folder import LOOKED_FOR, find_files
from headrace.mindspore_files.mindinsight import opinions
from headrace.mindspore_files.profile import profile_of
from headrace.mindspore_files.rank import read_rank
from headrace.traces.table import Table

#: Other ranks that are read to compare: a verdict on one of ten thousand needs no more.
_MAX_COMPARED = 256


def ranks(folder: str | os.PathLike[str]) -> list[int]:
    """Ranks with files in the folder. Raises Error for a folder that cannot be read."""
    return list(find_files(folder).ranks)


def profiles(folder: str | os.PathLike[str], most: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """The first ranks, ``most`` of them, each with its own profile, which is compared with no other.

    Raises FormatError if all files of a rank are damaged.
    """
    found = find_files(folder)
    for rank in list(found.ranks)[:most]:
        yield rank, profile_of(read_rank(found, rank))


def profile_json(folder: str | os.PathLike[str], rank: int) -> str:
    """A `Profile` in JSON, compared with those of the other ranks.

    Raises Error for a rank without files, FormatError if all of its files are damaged.
    """
    found = find_files(folder)
    if rank not in found.ranks:
        raise Error(f"{os.fspath(folder)}: no file of rank {rank}; {LOOKED_FOR}")
    files = read_rank(found, rank)
    profile = profile_of(files)
    others: list[str] = []
    for other in found.ranks:
        if other == rank or len(others) == _MAX_COMPARED:
            continue
        try:
            its = profile_of(read_rank(found, other))
        except Error:
            profile["notes"].append(f"rank {other} is not compared: its files cannot be read")
            continue
        if its["sink"]["steps"]:
            others.append(json.dumps(its))
    text = _core.beside_ranks(json.dumps(profile), others)
    profile = json.loads(text)
    profile["second_opinions"] = opinions(files, profile, _core.ParsedReport(text).verdict()[:3])
    return json.dumps(profile)


def table_names(folder: str | os.PathLike[str], rank: int) -> list[str]:
    """Names of the tables that the rank's files make; empty if the rank has no files."""
    return tables.table_names(find_files(folder), rank)


def table(
    folder: str | os.PathLike[str],
    rank: int,
    name: str,
    search: str = "",
    group_by: str = "",
    sort_by: str = "",
) -> Table:
    """A table, see `headrace.results.profiler_tables.Tables.query`."""
    return tables.queried(tables.read_table(find_files(folder), rank, name), search, group_by, sort_by)


def timeline_path(folder: str | os.PathLike[str], rank: int) -> str | None:
    """Path of the timeline that the profiler wrote; None if it wrote none."""
    found = find_files(folder).ranks.get(rank)
    return None if found is None else found.paths.get("timeline")
