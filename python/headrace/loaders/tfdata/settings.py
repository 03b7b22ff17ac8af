"""A graph of tf.data's datasets as data: its stages, its buffers, and their parameters."""

from __future__ import annotations

from typing import Any

from headrace.loaders.tfdata.graph import AUTOTUNE, Graph, Node, Stage
from headrace.results.loader_model import LoaderBuffer, LoaderModel, LoaderParameter, LoaderStage


def workers_of(stage: Stage, tuned: dict[int, int]) -> int:
    """As many as TensorFlow runs now, where it decides."""
    owner = stage.owner
    return stage.workers if owner is None else max(1, tuned.get(id(owner), stage.workers))


def model_of(graph: Graph, tuned: dict[int, int], options: Any) -> LoaderModel:
    parameters: list[LoaderParameter] = []
    stages = []
    for place, stage in enumerate(graph.stages):
        workers = workers_of(stage, tuned)
        widened_by = ""
        for node in stage.nodes:
            widened_by = _of_node(node, stage, place, workers, parameters) or widened_by
        stages.append(
            LoaderStage(
                name=stage.nodes[-1].name,
                workers=workers,
                runs_in="loop" if stage.workers == 0 else "thread",
                widened_by=widened_by,
            )
        )
    buffers = []
    for edge in graph.edges:
        buffer = LoaderBuffer(
            from_=graph.place(edge.fills), to=graph.place(edge.takes), capacity=edge.capacity
        )
        prefetch = next((owner for owner in edge.owners if owner.family == "Prefetch"), None)
        if prefetch is not None and len(edge.owners) == 1 and prefetch.size != AUTOTUNE:
            buffer.set_by = prefetch_name(graph, prefetch)
            size = LoaderParameter(name=buffer.set_by, value=prefetch.size, min=1, sets="capacity")
            size.stage, size.set_in = buffer.from_, "set it in .prefetch()"
            parameters.append(size)
        elif prefetch is not None:
            shown = "AUTOTUNE" if prefetch.size == AUTOTUNE else prefetch.size
            parameters.append(LoaderParameter(name=prefetch_name(graph, prefetch), value=shown))
        buffers.append(buffer)
    parameters += _of_options(options)
    return LoaderModel(framework="tf.data", stages=stages, buffers=buffers, parameters=parameters)


def prefetch_name(graph: Graph, node: Node) -> str:
    """ "prefetch", or with its number, from the source on."""
    same = [each for each in reversed(graph.order) if each.family == "Prefetch"]
    at = next(at for at, each in enumerate(same) if each is node)
    return "prefetch" if at == 0 else f"prefetch#{at + 1}"


def _of_node(node: Node, stage: Stage, place: int, workers: int, parameters: list[LoaderParameter]) -> str:
    takes_calls = node.calls is not None or node.family in ("Map", "Batch", "PaddedBatch", "Interleave")
    if node.cycle is not None:
        length = LoaderParameter(name=f"{node.name}.cycle_length", value=node.cycle)
        length.set_in = "set it in .interleave()"
        parameters.append(length)
    if not takes_calls:
        return ""
    is_owner = stage.owner is node
    own = LoaderParameter(name=f"{node.name}.num_parallel_calls", value=workers if is_owner else 0)
    own.usual, own.min, own.sets, own.stage = None if is_owner else 0, 0, "workers", place
    method = node.family.lower() if node.family != "PaddedBatch" else "padded_batch"
    tuned = " (AUTOTUNE has set it; tf.data.Options has its limits)" if node.calls == AUTOTUNE else ""
    own.set_in = f"set it in .{method}(){tuned}"
    parameters.append(own)
    return own.name if is_owner or node.family == "Map" else ""


def _of_options(options: Any) -> list[LoaderParameter]:
    """What the user has set of the limits of tuning."""
    found = []
    for group, names in (
        ("autotune", ("enabled", "cpu_budget", "ram_budget")),
        ("threading", ("private_threadpool_size",)),
    ):
        for name in names:
            value = getattr(getattr(options, group, None), name, None)
            if isinstance(value, (int, bool)):
                parameter = LoaderParameter(name=f"{group}.{name}", value=value)
                parameter.set_in = "set it in tf.data.Options()"
                found.append(parameter)
    return found
