"""Makes large profiles of a small one: its events again and again, later each time.

    python benchmarks/ascend/make_profile.py SAMPLE_FOLDER OUT_FOLDER --megabytes 1000

``SAMPLE_FOLDER``: a ``*_ascend_pt`` folder with a trace_view.json, a database, or both. Connections, tasks
and correlations get numbers of their own in each repetition, so launches stay in theirs.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

#: Between two repetitions; longer than a step of the sample.
SHIFT_US = 500_000
#: Numbers of connections in the samples are below it.
IDS = 10_000_000


def shifted(event: dict[str, Any], times: int) -> dict[str, Any]:
    """The event as the repetition `times` has it."""
    event = dict(event)
    if "ts" in event:
        whole, _, part = event["ts"].partition(".")
        event["ts"] = f"{int(whole) + times * SHIFT_US}.{part}"
    if "ProfilerStep#" in event.get("name", ""):
        event["name"] = f"ProfilerStep#{50 + times}"
    arguments = event.get("args")
    if arguments and ("connection_id" in arguments or "correlation_id" in arguments):
        event["args"] = {
            key: value + times * IDS if key in ("connection_id", "correlation_id") else value
            for key, value in arguments.items()
        }
    if event["ph"] in "sf":
        event["id"] = str(int(event["id"]) + times * IDS)
    return event


def make_text(sample: Path, out: Path, megabytes: int) -> None:
    events = json.loads(sample.read_text())
    metadata = [event for event in events if event["ph"] == "M"]
    others = [event for event in events if event["ph"] != "M"]
    with out.open("w") as file:
        file.write("[" + ",".join(map(json.dumps, metadata)))
        times = 0
        while file.tell() < megabytes * 1_000_000:
            for event in others:
                file.write("," + json.dumps(shifted(event, times)))
            times += 1
        file.write("]")


def make_database(sample: Path, out: Path, megabytes: int) -> None:
    shutil.copyfile(sample, out)
    connection = sqlite3.connect(out)
    connection.executescript("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;")
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")]
    for index in connection.execute(
        "SELECT name FROM sqlite_master WHERE type='index' AND sql NOT NULL"
    ).fetchall():
        connection.execute(f'DROP INDEX "{index[0]}"')
    repeated = {
        name: [column[1] for column in connection.execute(f'PRAGMA table_info("{name}")')]
        for name in tables
        if not name.startswith(("ENUM", "STRING", "META", "HOST", "NPU_INFO", "RANK", "SESSION", "sqlite"))
    }
    times_column = {"startNs", "endNs", "timestampNs", "timestamp"}
    ids = {"globalTaskId", "connectionId", "opId"}
    original = {
        name: connection.execute(f'SELECT max(rowid) FROM "{name}"').fetchone()[0] for name in repeated
    }
    times = 1
    while out.stat().st_size < megabytes * 1_000_000:
        for name, columns in repeated.items():
            selected = []
            for column in columns:
                if column in times_column:
                    value = f'"{column}" + {times * SHIFT_US * 1000}'
                    selected.append(f"CAST({value} AS TEXT)" if name == "PYTORCH_API" else value)
                elif column in ids or (
                    column == "id" and name in ("CONNECTION_IDS", "OVERLAP_ANALYSIS", "status_info")
                ):
                    selected.append(f'"{column}" + {times * IDS}')
                elif column == "id" and name == "STEP_TIME":
                    selected.append(f'"{column}" + {times}')
                else:
                    selected.append(f'"{column}"')
            connection.execute(
                f'INSERT INTO "{name}" SELECT {", ".join(selected)} FROM "{name}" WHERE rowid <= ?',
                (original[name],),
            )
        connection.commit()
        times += 1
    connection.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sample", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--megabytes", type=int, default=1000)
    options = parser.parse_args()
    source = options.sample / "ASCEND_PROFILER_OUTPUT"
    target = options.out / "ASCEND_PROFILER_OUTPUT"
    target.mkdir(parents=True, exist_ok=True)
    for info in options.sample.glob("profiler_*.json"):
        shutil.copy(info, options.out)
    if (source / "trace_view.json").exists():
        make_text(source / "trace_view.json", target / "trace_view.json", options.megabytes)
    for database in source.glob("ascend_*_profiler*.db"):
        make_database(database, target / database.name, options.megabytes)


if __name__ == "__main__":
    main()
