"""The stages and queues of a built pipeline, read from the nodes that SPDL connected.

These are private names of SPDL 0.8. Where one is missing, reading raises, and the pipeline is recorded as a
whole.
"""

from __future__ import annotations

import inspect
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from headrace import _core
from headrace.record.operator import name_of, readable


@dataclass
class Queue:
    """A queue between two stages, as places in the list of stages; -1: the training loop."""

    queue: Any
    name: str
    capacity: int
    from_stage: int
    to_stage: int = -1


@dataclass
class Stage:
    """One node of the pipeline."""

    node: Any
    name: str
    kind: str
    #: Calls at a time that the pipeline allows.
    concurrency: int = 1
    #: "thread", "process" or "async" (on the event loop); "" if no user code runs.
    runs_in: str = "async"
    #: Threads or processes of its executor; 0: calls are limited by `concurrency` alone.
    executor_workers: int = 0
    #: The build's thread pool, which stages without an executor of their own share.
    shares_pool: bool = False
    keeps_order: bool = False

    @property
    def is_pipe(self) -> bool:
        return type(self.node.cfg).__name__ == "PipeConfig"

    @property
    def workers(self) -> int:
        if self.executor_workers == 0:
            return self.concurrency
        return min(self.concurrency, self.executor_workers)


@dataclass
class Graph:
    """A pipeline's stages, in the order of the data flow, and its queues."""

    stages: list[Stage] = field(default_factory=list)
    queues: list[Queue] = field(default_factory=list)
    num_threads: int = 0


def sink_node(pipeline: Any) -> Any:
    """The last node of a pipeline that has not ended."""
    coroutine = pipeline._impl._event_loop._coro
    if coroutine.cr_frame is None:
        raise LookupError("the pipeline has ended")
    node = _core.local_variables(coroutine.cr_frame)["node"]
    if not hasattr(node, "upstream") or not hasattr(node, "output_queue"):
        raise LookupError("its nodes are not as in SPDL 0.8")
    return node


def is_started(pipeline: Any) -> bool:
    return bool(pipeline._impl._event_loop.is_started())


def read_graph(pipeline: Any) -> Graph:
    """The parts of a built pipeline."""
    last = sink_node(pipeline)
    graph = Graph(num_threads=int(pipeline._impl._event_loop._executor._max_workers))
    nodes: list[Any] = []
    _collect(last, nodes)
    names: dict[str, int] = {}
    for node in nodes:
        stage = _stage_of(node, graph.num_threads)
        number = names[stage.name] = names.get(stage.name, 0) + 1
        if number > 1:
            stage.name += f"#{number}"
        graph.stages.append(stage)
    producer = {}
    for place, node in enumerate(nodes):
        outputs = _outputs(node)
        for number, queue in enumerate(outputs):
            name = graph.stages[place].name
            if node is last:
                name = "sink_queue"
            elif len(outputs) > 1:
                name += f"[{number}]"
            inner = getattr(queue, "_async_queue", queue)  # under the mirror that the loop takes from
            producer[id(queue)] = Queue(inner, name, _capacity(inner), place)
            graph.queues.append(producer[id(queue)])
    for place, node in enumerate(nodes):
        for queue in _inputs(node):
            producer[id(queue)].to_stage = place
    return graph


def _collect(node: Any, into: list[Any]) -> None:
    """Producers before consumers."""
    if any(node is known for known in into):
        return
    for upstream in node.upstream:
        _collect(upstream, into)
    into.append(node)


def _inputs(node: Any) -> list[Any]:
    many = getattr(node, "input_queues", None)
    one = getattr(node, "input_queue", None)
    return list(many) if many is not None else [] if one is None else [one]


def _outputs(node: Any) -> list[Any]:
    many = getattr(node, "output_queues", None)
    return list(many) if many is not None else [node.output_queue]


def is_of_threads(queue: Any) -> bool:
    """With use_thread_output_queue the sink's wraps a queue.Queue."""
    return not hasattr(queue, "_getters")


def _capacity(queue: Any) -> int:
    return int((queue._queue if is_of_threads(queue) else queue).maxsize)


def _stage_of(node: Any, num_threads: int) -> Stage:
    config = type(node.cfg).__name__
    if config == "SourceConfig":
        source = node.cfg.source
        is_async = hasattr(source, "__aiter__")
        return Stage(node, readable(name_of(source)), "source", runs_in="async" if is_async else "thread")
    if config == "PipeConfig":
        return _pipe(node, num_threads)
    if config == "AggregateConfig":
        op = node.cfg.op
        size = getattr(op, "n", None)
        name = f"aggregate({size})" if isinstance(size, int) else name_of(op)
        return Stage(node, readable(name), "batch")
    if config == "SinkConfig":
        return Stage(node, "add_sink", "prefetch", runs_in="async")
    name = readable(str(node.info.stage_name))
    if config == "_SubprocessPipelineConfig":
        return Stage(node, name, "map", runs_in="process")
    return Stage(node, name, "generator" if config == "DisaggregateConfig" else "map")


def _pipe(node: Any, num_threads: int) -> Stage:
    arguments = node.cfg._args
    op = arguments.op
    stage = Stage(node, readable(node.cfg.name), "map", concurrency=int(arguments.concurrency))
    stage.keeps_order = node.cfg._type.name == "OrderedPipe"
    if is_generator(op):
        stage.kind = "generator"
    if is_async(op):
        return stage
    executor = arguments.executor
    stage.runs_in = executor_kind(executor)
    stage.shares_pool = executor is None
    workers = num_threads if executor is None else getattr(executor, "_max_workers", None)
    stage.executor_workers = workers if isinstance(workers, int) else 0
    return stage


def _called(op: Any) -> Any:
    """What is called: the function itself, or the method of a callable object."""
    call = getattr(op, "__call__", None)  # noqa: B004 - its method is wanted
    return call if inspect.ismethod(call) else op


def is_async(op: Any) -> bool:
    call = _called(op)
    return any(
        check(each)
        for check in (inspect.iscoroutinefunction, inspect.isasyncgenfunction)
        for each in (op, call)
    )


def is_generator(op: Any) -> bool:
    call = _called(op)
    return any(
        check(each)
        for check in (inspect.isgeneratorfunction, inspect.isasyncgenfunction)
        for each in (op, call)
    )


def executor_kind(executor: Executor | None) -> str:
    """ "thread", or "process" for an executor that runs calls elsewhere."""
    kind = getattr(executor, "_pool_executor_class", type(executor))
    if executor is None or not isinstance(kind, type):
        return "thread"
    isolates = issubclass(kind, ProcessPoolExecutor) or "Interpreter" in kind.__name__
    return "process" if isolates else "thread"
