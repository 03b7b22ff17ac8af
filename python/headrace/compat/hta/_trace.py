"""`Trace`: the data frames of all ranks, aligned and filtered as Holistic Trace Analysis does it."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from headrace.common.folder_files import open_file
from headrace.compat.hta._frames import frame_of, on_device, read_arguments
from headrace.compat.hta._symbols import TraceSymbolTable
from headrace.traces.trace import Trace as Reader

logger = logging.getLogger("headrace")

TraceFiles = Mapping[int, str] | Sequence[str] | None

_DEVICE_TYPES = (
    ("cudaLaunchKernel", "NVIDIA GPU"),
    ("hipLaunchKernel", "AMD GPU"),
    ("runFunction - job_prep_and_submit_for_execution", "MTIA"),
)


class Trace:
    """Data frames by rank (``traces``), the names in them (``symbol_table``) and the files' other keys."""

    def __init__(self, trace_files: TraceFiles = None, trace_dir: str = "") -> None:
        self.trace_files, read = _read(trace_files, trace_dir)
        self.trace_path = trace_dir
        self.symbol_table = TraceSymbolTable()
        self.traces: dict[int, pd.DataFrame] = {}
        self.meta_data: dict[int, dict[str, Any]] = {}
        self.min_ts = 0
        self.is_parsed = True
        #: The native traces, and from when on each was cut away by `align_and_filter_trace` (its own clock).
        self.readers: dict[int, Reader] = {}
        self.dropped_from_ns: dict[int, int] = {}
        for rank, reader in read.items():
            frame = frame_of(reader, self.symbol_table)
            if frame.empty:
                logger.warning("rank %d has no complete event and is left out", rank)
                continue
            self.traces[rank] = frame
            self.readers[rank] = reader
            self.meta_data[rank] = reader.metadata()

    def align_and_filter_trace(self, include_last_profiler_step: bool = False) -> None:
        """Times from the first event of all ranks on; the last step of the profiler is dropped."""
        if not self.traces:
            return
        self.min_ts = min(frame["ts"].min() for frame in self.traces.values())
        for frame in self.traces.values():
            frame["ts"] = frame["ts"] - self.min_ts
        steps = self.symbol_table.matching(r"^ProfilerStep#\d+")
        if len(steps) < 2:
            return
        for rank, frame in self.traces.items():
            if include_last_profiler_step:
                self.traces[rank] = _without_last_step(frame, self.symbol_table, steps, "end")
                continue
            self.traces[rank] = _without_last_step(frame, self.symbol_table, steps, "ts")
            of_steps = frame[frame["name"].isin(steps) & (frame["stream"] < 0)]
            if len(of_steps):
                self.dropped_from_ns[rank] = int(of_steps["ts"].max() + self.min_ts) * 1000

    def get_trace(self, rank: int) -> pd.DataFrame:
        if rank not in self.traces:
            raise ValueError(f"no trace of rank {rank}; there are: {', '.join(map(str, self.get_ranks()))}")
        return self.traces[rank]

    def get_all_traces(self) -> dict[int, pd.DataFrame]:
        return self.traces

    def get_ranks(self) -> list[int]:
        return sorted(self.traces)

    def get_iterations(self, rank: int | None = None) -> list[int]:
        """The profiler's steps that are in the frames."""
        frames = self.traces.values() if rank is None else [self.get_trace(rank)]
        found: set[int] = set()
        for frame in frames:
            found |= {int(i) for i in frame["iteration"].dropna().unique() if i >= 0}
        return sorted(found)

    def get_trace_duration(self, rank: int) -> int:
        frame = self.get_trace(rank)
        return int((frame["ts"] + frame["dur"]).max() - frame["ts"].min())

    def get_trace_start_unixtime_ns(self, rank: int) -> int:
        """Unix time of the first event. KeyError where the file has no ``baseTimeNanoseconds``."""
        return int(self.min_ts * 1000) + int(self.meta_data[rank]["baseTimeNanoseconds"])

    def get_device_type(self) -> str:
        """NVIDIA GPU, AMD GPU, MTIA or UNKNOWN GPU."""
        info = next(iter(self.meta_data.values()), {}).get("distributedInfo")
        if isinstance(info, dict) and "mtia:hccl" in str(info.get("backend", "")):
            return "MTIA"
        for name, device in _DEVICE_TYPES:
            if name in self.symbol_table.sym_index:
                return device
        return "UNKNOWN GPU"

    def decode_symbol_ids(self, use_shorten_name: bool = True) -> None:
        """Adds ``s_name`` and ``s_cat``, the texts of ``name`` and ``cat``."""
        from headrace.compat.hta._symbols import shorten_name

        for frame in self.traces.values():
            frame["s_name"] = self.symbol_table.texts(frame["name"])
            frame["s_cat"] = self.symbol_table.texts(frame["cat"])
            if use_shorten_name:
                frame["s_name"] = frame["s_name"].map(shorten_name)

    def get_raw_trace_for_one_rank(self, rank: int) -> dict[str, Any]:
        """The file as Python objects."""
        import gzip
        import json

        path = self.trace_files[rank]
        with open_file(path) as file:
            return dict(json.load(gzip.open(file) if path.endswith(".gz") else file))

    def write_raw_trace(self, path: str, contents: dict[str, Any]) -> None:
        """Writes a file as `get_raw_trace_for_one_rank` gave it, compressed where its name says so."""
        import gzip
        import json

        with gzip.open(path, "wt") if path.endswith(".gz") else Path(path).open("w") as file:
            json.dump(contents, file)


def _read(trace_files: TraceFiles, trace_dir: str) -> tuple[dict[int, str], dict[int, Reader]]:
    """Each file alone, so that of two with the same rank the later one counts, with a warning."""
    named = isinstance(trace_files, Mapping)
    if isinstance(trace_files, Mapping):
        files = [(int(rank), os.fspath(path)) for rank, path in trace_files.items()]
    elif trace_files is not None:
        files = [(0, os.fspath(path)) for path in trace_files]
    else:
        if not trace_dir:
            raise ValueError("give trace_files (a dict of ranks or a list) or trace_dir")
        files = [(0, str(path)) for path in sorted(Path(trace_dir).iterdir())]
        files = [(rank, path) for rank, path in files if path.endswith((".gz", ".json"))]
    paths: dict[int, str] = {}
    read: dict[int, Reader] = {}
    for rank, path in files:
        if not path.endswith((".gz", ".json")):
            raise ValueError(f"{path} is no .json and no .gz file")
        reader = Reader.load(path, arguments=read_arguments())
        if not named:
            rank = reader.ranks[0]
        if rank in read:
            logger.warning("rank %d is in %s and in %s: the second one counts", rank, paths[rank], path)
        paths[rank], read[rank] = path, reader
    return paths, read


def _without_last_step(
    frame: pd.DataFrame, symbols: TraceSymbolTable, steps: np.ndarray, until: str
) -> pd.DataFrame:
    """Rows of the host from before the last step begins (by its column ``until``), and what they launched."""
    of_device = on_device(frame, symbols)
    host = frame[~of_device]
    of_steps = host[host["name"].isin(steps)]
    last = of_steps[until].max() if len(of_steps) else host["ts"].min()
    host = host[host["ts"] < last]
    launched = host.loc[host["correlation"] >= 0, ["correlation"]]
    device = frame[of_device]
    # A correlation that several rows carry gives its work once for each, as a join does.
    times = launched["correlation"].value_counts()
    count = device["correlation"].map(times).fillna(0).astype(int)
    device = device.loc[device.index.repeat(count)]
    return pd.concat([device, host])
