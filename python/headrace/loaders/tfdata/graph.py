"""The datasets of each thread, read from the datasets that the user put together.

An iterator runs in the thread that asks it for an element. ``prefetch`` has a thread of its own; a map, an
interleave or a batch with ``num_parallel_calls`` has one that asks what is below it, and so many calls at
once. So what is below one of these is another stage. TensorFlow merges and renames datasets before it runs
them: `match` finds the user's dataset for each node of the autotuner's model. These are private names of
TensorFlow 2.21. Where one is missing, reading raises, and the loader is recorded as a whole.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from headrace.loaders.kit import graph as kit
from headrace.loaders.tfdata.python_functions import tokens_of
from headrace.results.loader_model import LoaderModel

_DEEPEST = 500
AUTOTUNE = -1
#: Datasets that are no node of the model.
_PASSES = ("Options", "Model", "MaxIntraOpParallelism", "PrivateThreadPool", "_VariantDataset", "Assert")
#: Nodes of the model that do the work of several datasets.
_MERGED = {
    "MapAndBatch": ("Batch", "Map"),
    "ParallelMapAndBatch": ("Batch", "Map"),
    "ShuffleAndRepeat": ("Repeat", "Shuffle"),
}
_KINDS = {"Batch": "batch", "PaddedBatch": "batch", "Shuffle": "shuffle", "Filter": "filter"}


@dataclass(eq=False)
class Node(kit.Operator):
    """One of the user's datasets."""

    family: str = ""
    stage: Stage = None  # type: ignore[assignment]
    calls: int | None = None
    size: int | None = None
    cycle: int | None = None
    #: Its Python functions, by TensorFlow's names for them.
    python: list[str] = field(default_factory=list)


@dataclass(eq=False)
class Stage(kit.Stage):
    """Datasets that the same threads run. No workers: it runs in the training loop."""

    workers: int = 1
    #: The dataset that has these threads.
    owner: Node | None = None


class Graph(kit.Graph):
    """Stages and buffers of datasets, sources first."""

    def __init__(self) -> None:
        super().__init__()
        #: The datasets, the last one first.
        self.order: list[Node] = []

    def append(self, stage: Stage) -> None:
        self.add(stage, stage.workers, "thread" if stage.workers else "loop")


def family_of(name: str) -> str:
    """``_ParallelMapDataset``, ``ParallelMapV2`` and ``Map`` are of one family."""
    name = re.sub(r"(Dataset)?(V\d+)?$", "", name.strip("_"))
    name = re.sub(r"^(Parallel|Legacy|Finite|Forever)", "", name)
    return "Interleave" if name.endswith("Interleave") else name


def _number(dataset: Any, *names: str) -> int | None:
    for name in names:
        value = getattr(dataset, name, None)
        if value is not None:
            return int(value)
    return None


def read_graph(root: Any, processors: int) -> Graph:
    """The graph of ``root`` and what it is made of. processors: the workers of a dataset that is tuned."""
    loop = Stage(workers=0)
    graph = Graph()
    _visit(root, loop, graph, processors, 0)
    if loop.operators:
        graph.append(loop)
    return graph


def _visit(dataset: Any, stage: Stage, graph: Graph, processors: int, depth: int) -> None:
    if depth > _DEEPEST:
        raise LookupError("its datasets are too deep")
    kind = type(dataset).__name__
    family = family_of(kind)
    if family in _PASSES or kind in _PASSES:
        for below in dataset._inputs():
            _visit(below, stage, graph, processors, depth + 1)
        return
    node = _node_of(dataset, family, stage)
    graph.order.append(node)
    is_parallel = kind.strip("_").startswith("Parallel") and node.calls is not None
    asks = stage
    if family == "Prefetch":
        asks = Stage(owner=node)
        size = node.size if node.size is not None and node.size > 0 else 2
        graph.between.append(kit.Buffer(asks, stage, size, [node]))
        node.stage = asks
    elif is_parallel:
        calls = node.calls or 1
        workers = processors if calls == AUTOTUNE else max(1, calls)
        node.stage = Stage(workers=workers, owner=node)
        graph.between.append(kit.Buffer(node.stage, stage, workers, [node]))
        # With one call at a time the same thread asks what is below it.
        asks = Stage() if workers > 1 else node.stage
    for below in dataset._inputs():
        _visit(below, asks, graph, processors, depth + 1)
    if family == "Prefetch":
        if asks.operators:
            graph.append(asks)
        else:
            _merge(graph, asks, stage)
        return
    if asks is not node.stage and asks is not stage:
        if asks.operators:
            graph.append(asks)
            graph.between.append(kit.Buffer(asks, node.stage, 1))
        else:  # what is below has threads itself
            graph.pass_on(asks, node.stage)
    node.stage.operators.append(node)
    if is_parallel:
        graph.append(node.stage)


def _merge(graph: Graph, empty: Stage, takes: Stage) -> None:
    """A prefetch of something that has threads itself: its thread only hands on."""
    own = next(each for each in graph.between if each.fills is empty)
    graph.between.remove(own)
    for each in graph.between:
        if each.takes is empty:
            for owner in own.owners:
                owner.stage = each.fills
    graph.pass_on(empty, takes, own.capacity, own.owners)


def _node_of(dataset: Any, family: str, stage: Stage) -> Node:
    own = getattr(dataset, "_name", None)
    size = _number(dataset, "_batch_size", "_buffer_size")
    function = getattr(
        getattr(dataset, "_map_func", None) or getattr(dataset, "_predicate", None), "_func", None
    )
    name = getattr(function, "__name__", None)
    shown = family[0].lower() + family[1:]
    if family in ("Batch", "PaddedBatch", "Shuffle", "Prefetch") and size is not None:
        shown = f"{shown}({'AUTOTUNE' if size == AUTOTUNE else size})"
    kind = _KINDS.get(family, "map" if dataset._inputs() else "source")
    is_users = isinstance(name, str) and name != "<lambda>" and not _is_tensorflows(function)
    if family == "FlatMap" and function is not None and _is_tensorflows(function):
        shown, kind = "generator", "source"  # from_generator
    calls = _number(dataset, "_num_parallel_calls")
    cycle = _number(dataset, "_cycle_length")
    shown = str(own or (name if is_users else shown))
    return Node(shown, kind, None, family, stage, calls, size, cycle, tokens_of(dataset))


def _is_tensorflows(function: Any) -> bool:
    return str(getattr(function, "__module__", "")).partition(".")[0] in ("tensorflow", "keras")


def match(chain: list[str], order: list[Node]) -> list[list[Node]]:
    """For each node of the model, the last one first: the user's datasets whose work it does."""
    found: list[list[Node]] = []
    left = list(order)
    for name in chain:
        families = _MERGED.get(re.sub(r"V\d+$", "", name), (family_of(name),))
        nodes: list[Node] = []
        for family in families:
            at = next((at for at, node in enumerate(left) if node.family == family), None)
            if at is not None:
                nodes.append(left[at])
                del left[: at + 1]
        found.append(nodes)
    return found


def model_of(graph: Graph, tuned: dict[int, int], options: Any) -> LoaderModel:
    """The stages, buffers and parameters as their user would write them.

    ``tuned``: by dataset, as many workers as TensorFlow runs now, where it decides.
    """
    shown = kit.Graph()
    for stage in graph.parts:
        workers = stage.workers
        if stage.owner is not None:
            workers = max(1, tuned.get(id(stage.owner), workers))
        one = shown.stage(stage.name, workers, "thread" if stage.workers else "loop")
        for node in stage.operators:
            one.widened_by = _of_node(node, stage, workers, shown) or one.widened_by
    for each in graph.between:
        from_, set_by = each.fills.place, ""
        prefetch = next((owner for owner in each.owners if owner.family == "Prefetch"), None)
        if prefetch is not None:
            name, tunes = prefetch_name(graph, prefetch), prefetch.size == AUTOTUNE
            own: dict[str, Any] = {"value": "AUTOTUNE" if tunes else prefetch.size}
            if len(each.owners) == 1 and not tunes:
                own |= {"min": 1, "sets": "capacity", "stage": from_, "set_in": "set it in .prefetch()"}
                set_by = name
            shown.parameter(name, **own)
        shown.buffer(from_, each.takes.place, each.capacity, set_by)
    _of_options(options, shown)
    return shown.model("tf.data")


def prefetch_name(graph: Graph, node: Node) -> str:
    """ "prefetch", or with its number, from the source on."""
    same = [each for each in reversed(graph.order) if each.family == "Prefetch"]
    at = next(at for at, each in enumerate(same) if each is node)
    return "prefetch" if at == 0 else f"prefetch#{at + 1}"


def _of_node(node: Any, stage: Stage, workers: int, shown: kit.Graph) -> str:
    """The parameters of one dataset; the one that sets the workers of its stage."""
    takes_calls = node.calls is not None or node.family in ("Map", "Batch", "PaddedBatch", "Interleave")
    if node.cycle is not None:
        shown.parameter(f"{node.name}.cycle_length", value=node.cycle, set_in="set it in .interleave()")
    if not takes_calls:
        return ""
    is_owner = stage.owner is node
    method = node.family.lower() if node.family != "PaddedBatch" else "padded_batch"
    tuned = " (AUTOTUNE has set it; tf.data.Options has its limits)" if node.calls == AUTOTUNE else ""
    value, usual = (workers, None) if is_owner else (0, 0)
    own: dict[str, Any] = {"stage": stage.place, "set_in": f"set it in .{method}(){tuned}"}
    name = f"{node.name}.num_parallel_calls"
    shown.parameter(name, value=value, usual=usual, min=0, sets="workers", **own)
    return name if is_owner or node.family == "Map" else ""


def _of_options(options: Any, shown: kit.Graph) -> None:
    """The limits of tuning that the user has set."""
    for group, names in (
        ("autotune", ("enabled", "cpu_budget", "ram_budget")),
        ("threading", ("private_threadpool_size",)),
    ):
        for name in names:
            value = getattr(getattr(options, group, None), name, None)
            if isinstance(value, (int, bool)):
                shown.parameter(f"{group}.{name}", value=value, set_in="set it in tf.data.Options()")
