"""The files that MindSpore's profiler left in a folder, by rank."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from headrace.errors import Error

#: A damaged name must not become a rank of the job.
_HIGHEST_RANK = 1 << 24
#: Subfolders that are searched: a job of thousands of ranks has one for each.
_MAX_FOLDERS = 4096
#: Names of files by kind; # is the rank.
_NAMES = {
    "pipeline_profiling": "pipeline_profiling_#.json",
    "pipeline_table": "minddata_pipeline_raw_#.csv",
    "pipeline_summary": "minddata_pipeline_summary_#.json",
    "pipeline_summary_table": "minddata_pipeline_summary_#.csv",
    "device_queue": "device_queue_profiling_#.txt",
    "dataset_iterator": "dataset_iterator_profiling_#.txt",
    "getnext_ascend": "minddata_aicpu_#.txt",
    "getnext_gpu": "minddata_getnext_profiling_#.txt",
    "cpu": "minddata_cpu_utilization_#.json",
    "step_trace": "step_trace_raw_#_detail_time.csv",
    "step_points": "step_trace_point_info_#.json",
    "aicore_types": "aicore_intermediate_#_type.csv",
    "aicore_details": "aicore_intermediate_#_detail.csv",
    "aicpu": "aicpu_intermediate_#.csv",
    "framework": "framework_raw_#.csv",
    "flops": "flops_#.txt",
    "flops_summary": "flops_summary_#.json",
    "gpu_types": "gpu_op_type_info_#.csv",
    "gpu_details": "gpu_op_detail_info_#.csv",
    "gpu_activity": "gpu_activity_data_#.csv",
    "cpu_types": "cpu_op_type_info_#.csv",
    "cpu_details": "cpu_op_detail_info_#.csv",
    "memory_summary": "memory_usage_summary_#.json",
    "memory_details": "memory_usage_details_#.json",
    "timeline": "(ascend|gpu)_timeline_display_#.json",
    "cluster": "(ascend|gpu)_cluster_analyse_.*_#.csv",
    "collectives": "hccl_raw_#.csv",
    "dataset": "dataset_#.csv",
    "host_info": "host_info_#.csv",
}
_NAME = re.compile(
    "|".join(f"(?P<{kind}>{name.replace('#', '[0-9]{1,8}')})" for kind, name in _NAMES.items())
)
#: In old versions one file for all ranks.
_SHARED_POINTS = "step_trace_point_info.json"
#: Raw records of GetNext. Files without "MI" in their names are binary.
_RAW = re.compile("DATA_PREPROCESS[.](dev[.])?AICPUMI")
#: Files that only a run on an NPU or a GPU leaves.
_OF_DEVICES = {
    "getnext_ascend", "getnext_gpu", "getnext_raw", "step_trace", "aicore_types", "aicore_details", "aicpu",
    "gpu_types", "gpu_details", "gpu_activity", "timeline",
}  # fmt: skip
LOOKED_FOR = (
    "looked for MindSpore's pipeline_profiling_<rank>.json, dataset_iterator_profiling_<rank>.txt, "
    "device_queue_profiling_<rank>.txt, minddata_*_<rank> and step_trace_raw_<rank>_detail_time.csv"
)


@dataclass
class RankFolder:
    """The files of a rank, which in old versions is a device, by kind."""

    rank: int
    paths: dict[str, str] = field(default_factory=dict)
    #: The files of the kind getnext_raw, because the profiler cuts them into slices.
    raw: list[str] = field(default_factory=list)

    @property
    def has_device(self) -> bool:
        return not _OF_DEVICES.isdisjoint(self.paths)


@dataclass
class ProfilerFolder:
    """The ranks by number, lowest first; none in a folder of something else."""

    ranks: dict[int, RankFolder] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def of_rank(self, rank: int) -> RankFolder:
        return self.ranks.setdefault(rank, RankFolder(rank))


def find_files(folder: str | os.PathLike[str]) -> ProfilerFolder:
    """The files in ``folder``, else in its ``profiler/``, else in its subfolders and their ``profiler/``.

    Reads names only. Raises Error for a folder that cannot be read.
    """
    try:
        inside = sorted(entry.path for entry in os.scandir(folder) if entry.is_dir())
    except OSError as error:
        raise Error(f"{os.fspath(folder)}: {error.strerror}") from None
    found = ProfilerFolder()
    if not _add_files(found, Path(folder)) and not _add_files(found, Path(folder, "profiler")):
        for each in inside[:_MAX_FOLDERS]:
            if not _add_files(found, Path(each)):
                _add_files(found, Path(each, "profiler"))
    found.ranks = dict(sorted(found.ranks.items()))
    return found


def _add_files(into: ProfilerFolder, folder: Path) -> bool:
    """Adds what lies directly in the folder. Returns whether any of the files does."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return False
    is_empty = True
    for entry in entries:
        name = _NAME.fullmatch(entry.name)
        rank = int(re.findall("[0-9]+", entry.name)[-1]) if name else 0
        if name is None or rank > _HIGHEST_RANK or not entry.is_file():
            continue
        is_empty = False
        paths = into.of_rank(rank).paths
        if name.lastgroup in paths and not into.notes:
            into.notes.append("some ranks have a file more than once; the first in the alphabet is read")
        paths.setdefault(str(name.lastgroup), entry.path)
    devices: dict[int, list[str]] = {}
    for raw in sorted(folder.glob("PROF_*/device_*/data/*DATA_PREPROCESS*")):
        device = raw.parent.parent.name[len("device_") :]
        # The profiler leaves an empty ".done" beside each file.
        if device.isdigit() and _RAW.search(raw.name) and raw.suffix != ".done" and raw.is_file():
            devices.setdefault(int(device), []).append(str(raw))
    # Devices are numbered, not ranks: a device and a rank that are alone belong together.
    alone = next(iter(into.ranks)) if len(devices) == len(into.ranks) == 1 else None
    for number, files in devices.items():
        one = into.of_rank(number if alone is None else alone)
        one.paths.setdefault("getnext_raw", files[0])
        one.raw = one.raw or files
    if (folder / _SHARED_POINTS).is_file():
        for one in into.ranks.values():
            one.paths.setdefault("step_points", str(folder / _SHARED_POINTS))
    return not is_empty or bool(devices)
