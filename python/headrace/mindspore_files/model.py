"""How the dataset is built and set: its stages, the buffers between them, and what its user can set."""

from __future__ import annotations

from typing import Any

from headrace.mindspore_files.pipeline import Operator
from headrace.mindspore_files.rank import RankFiles

#: MindSpore's defaults.
_USUAL_WORKERS, _USUAL_PREFETCH = 8, 16
#: Share of its busy time from which on an operator computes.
_COMPUTES = 0.5
_GENERATOR = (
    "GeneratorDataset runs in parallel only where its source can be read at any place (__getitem__ and "
    "__len__); an iterator stays in one thread"
)
_SHARED_LOCK = (
    "threads that run a Python function share one interpreter lock: for such a function set "
    "python_multiprocessing=True as well"
)
_SINK_MODE = "set it where the model is trained: model.train(..., dataset_sink_mode=True)"


def model_of(
    files: RankFiles,
    cores: int,
    operators: list[tuple[dict[str, Any], Operator | None]],
    groups: list[int],
    queues: list[tuple[dict[str, Any], list[int] | None]],
) -> dict[str, Any]:
    """The `model` of a profile; adds the parameters of its operators and queues to them.

    groups: of each operator the one in whose threads it runs.
    """
    stages: list[dict[str, Any]] = [
        {
            "name": operators[place][0]["name"],
            "operators": [at for at, group in enumerate(groups) if group == place],
            "workers": operators[place][0].get("workers", 1),
            "runs_in": operators[place][0].get("executor") or "thread",
        }
        for place, group in enumerate(groups)
        if group == place
    ]
    stage_of = {at: number for number, stage in enumerate(stages) for at in stage["operators"]}
    parameters: list[dict[str, Any]] = []
    places = {op: at for at, (_, op) in enumerate(operators)}
    for op in files.pipeline.operators if files.pipeline is not None else ():
        place = places.get(op, -1)
        if place >= 0 and op.workers and op.levels is not None and op.runs_in_parallel:
            # The ranks of a host share its cores.
            most = max(1, op.workers, cores // files.ranks_beside) if cores else None
            found = _workers(op, operators[place][0], most)
            parameters += [{**one, "stage": stage_of.get(place, -1)} for one in found]
            if place in stage_of:
                stages[stage_of[place]]["widened_by"] = found[0]["name"]
    buffers: list[dict[str, Any]] = []
    for queue, _ in queues:
        ends = {end: stage_of.get((queue[f"{end}_operators"] or [-1])[0], -1) for end in ("from", "to")}
        buffers.append({**ends, "capacity": queue["capacity"]})
    parameters += _prefetch(files, [queue for queue, _ in queues], buffers)
    # On a CPU alone it changes nothing, so it is a parameter only where a device ran.
    if files.has_device and files.dataset_iterator is not None and not files.in_sink_mode:
        off = {"value": False, "usual": False, "sets": "copies_ahead"}
        parameters.append({"name": "dataset_sink_mode", **off, "set_in": _SINK_MODE})
    return {"framework": "mindspore", "stages": stages, "buffers": buffers, "parameters": parameters}


def _workers(op: Operator, figures: dict[str, Any], most: int | None) -> list[dict[str, Any]]:
    name = f"{op.name}.num_parallel_workers"
    in_thread = figures.get("executor") == "thread"
    computes = in_thread and (figures["cpu_s"] or 0.0) > _COMPUTES * (figures["busy_s"] or 0.0) > 0
    set_in = _GENERATOR if op.plain_type == "Generator" else ""
    if computes and op.plain_type in ("Map", "Batch"):
        set_in = _SHARED_LOCK
    bounds: dict[str, Any] = {"value": op.workers, "min": 1, "max": most, "sets": "workers"}
    figures["parameters"].append({"parameter": name, **bounds})
    found = [{"name": name, "usual": _USUAL_WORKERS, "set_in": set_in, **bounds}]
    if in_thread and op.plain_type in ("Map", "Batch", "Generator"):
        off: dict[str, Any] = {"value": False, "usual": False, "sets": "executor"}
        found.append({"name": f"{op.name}.python_multiprocessing", **off})
    return found


def _prefetch(
    files: RankFiles, queues: list[dict[str, Any]], buffers: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """One setting for all queues, where all have the same capacity."""
    pairs = [pair for pair in zip(queues, buffers, strict=True) if pair[0]["name"] != "data queue"]
    capacities = {queue["capacity"] for queue, _ in pairs}
    if (
        files.pipeline is None
        or files.pipeline.has_queues_per_worker
        or len(capacities) != 1
        or 0 in capacities
    ):
        return []
    bounds = {"value": capacities.pop(), "min": 1, "sets": "capacity"}
    for queue, buffer in pairs:
        queue["parameters"].append({"parameter": "prefetch_size", **bounds})
        buffer["set_by"] = "prefetch_size"
    set_in = "ds.config.set_prefetch_size sets it for all operators"
    return [{"name": "prefetch_size", "usual": _USUAL_PREFETCH, "set_in": set_in, **bounds}]
