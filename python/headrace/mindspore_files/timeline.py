"""Names for the rows of the timeline that MindSpore's profiler writes: ascend_timeline_display_<rank>.json
and gpu_timeline_display_<rank>.json. The file has numbers only, whose meaning its viewer holds."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from headrace.errors import FormatError
from headrace.mindspore_files.texts import member, read_json, whole

_FILE = re.compile("(ascend|gpu)_timeline_display_.*[.]json")
_PROCESSES = {
    9000: "AI CPU",
    10000: "Communication",
    11000: "Host CPU",
    12000: "Overlap Analysis",
    13000: "GPU activity",
}
_THREADS = {
    7999: "Computation",
    8000: "Communication, not overlapped",
    8001: "Communication",
    8002: "Free",
    100000: "Steps",
    100001: "Scopes",
}


def with_row_names(path: str) -> list[Any] | None:
    """The events, with one for the name of each process and thread in front.

    None for a file of another name, if the events have such names already, or if the file is no list of
    events: what reads the events says what is wrong with them.
    """
    try:
        events = read_json(path) if _FILE.fullmatch(Path(path).name) else None
    except FormatError:
        return None
    if not isinstance(events, list) or any(member(event, "ph") == "M" for event in events):
        return None
    rows = [(whole(member(event, "pid")), member(event, "tid")) for event in events]
    names = []
    for pid, tid in dict.fromkeys(row for row in rows if isinstance(row[1], (int, str))):
        if pid is None:
            continue
        row = {"ph": "M", "pid": pid, "tid": tid}
        names.append({**row, "name": "process_name", "args": {"name": _PROCESSES.get(pid, f"Device {pid}")}})
        if (thread := whole(tid)) is not None:
            shown = _THREADS.get(thread, f"Stream {tid}")
            names.append({**row, "name": "thread_name", "args": {"name": shown}})
    return names + events if names else None
