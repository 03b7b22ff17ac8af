"""SPDL's pipelines (spdl.pipeline): their stages and queues, read from the nodes that SPDL connected.

These are private names of SPDL 0.8. Where one is missing, reading raises, and the pipeline is recorded as a
whole. `probes` times what the stages call.
"""

from __future__ import annotations

import sys
import threading
from functools import partial
from types import FrameType
from typing import Any

from headrace import _core
from headrace.common.messages import warn_once
from headrace.loaders.kit import every_loop, libraries
from headrace.loaders.kit.base import Attachment, classes_of
from headrace.loaders.kit.graph import Edge, Graph, Loader, Operator, Stage
from headrace.loaders.kit.probes import follow_levels
from headrace.loaders.spdl import probes
from headrace.record.operator import name_of

#: Results of run_pipeline_in_subprocess and run_pipeline_in_subinterpreter.
_ELSEWHERE = ("_SubprocessIterable", "_IterableWithPoolShutdown", "_SubinterpreterIterable")
RECORDED_AFTER = {"spdl.pipeline": ""}


class Pipelines(Loader):
    """A ``Pipeline``, or the iterable of one that runs in a process of its own."""

    libraries = ("spdl",)
    classes = ("spdl.pipeline:Pipeline",)

    def detect(self, obj: object) -> int:
        kind = type(obj)
        is_elsewhere = kind.__module__.startswith("spdl.pipeline.") and kind.__name__ in _ELSEWHERE
        return 50 if is_elsewhere else super().detect(obj)

    def name(self, obj: object) -> str:
        return "Pipeline" if super().detect(obj) else "subprocess pipeline"

    def attach(self, obj: Any, name: str | None = None) -> Attachment:
        if super().detect(obj):
            return super().attach(obj, name)
        what = "an SPDL pipeline in a process of its own is seen from outside"
        warn_once(f"operator detail unavailable: {what}")
        flags = _core.WRAPPED_OBJECT | _core.RUNS_OWN_WORKERS
        return Attachment(obj, source=_core.OperatorHandle(name or self.name(obj), "prefetch", 0, flags))

    def has_ended(self, obj: Any) -> bool:
        impl = getattr(obj, "_impl", None)
        return impl is not None and not impl._event_loop.is_alive()

    def read(self, obj: Any) -> Graph:
        return _read(obj._impl)


libraries.adapters.append(Pipelines())


def record_every_loader() -> None:
    """From now on each pipeline of this process is recorded, under its line (``headrace run``)."""
    pipelines = Pipelines()
    # Its source runs as soon as it starts, before the loop.
    every_loop.patch(sys.modules["spdl.pipeline"].Pipeline, pipelines, "get_iterator", _feeds, "__init__")
    for kind in classes_of("spdl.pipeline._iter_utils._subprocess", _ELSEWHERE[0]):
        every_loop.patch(kind, pipelines, feeds=_feeds)


def _feeds(_: FrameType) -> bool:
    """Pipelines in the threads of another pipeline feed that one."""
    return threading.current_thread().name.startswith("spdl_")


def _read(impl: Any) -> Graph:
    loop, graph = impl._event_loop, Graph()
    empty = impl._output_queue.empty
    graph.ready = lambda: not empty()
    nodes: list[Any] = []
    _collect(_sink(loop._coro), nodes)
    threads = int(loop._executor._max_workers)
    asked = sum(int(node.cfg._args.concurrency) for node in nodes if _shares_pool(node))
    started = bool(loop.is_started())
    # Threads start with the calls, so their number can be set until then.
    at, where = (loop._executor, "_max_workers"), f"set it in .build(); the pipes ask for {asked}"
    graph.parameter("num_threads", *at, fixed=started, min=1, sets="workers", set_in=where)
    at, last = _items_of(_queues(nodes[-1], "output")[-1]), len(nodes) - 1
    fields: dict[str, Any] = {"sets": "capacity", "stage": last, "set_in": "set it in .add_sink()"}
    graph.parameter("buffer_size", *at, fixed=started, min=1, **fields)
    in_loop = Stage()
    edges: dict[int, Edge] = {}
    for node in nodes:
        stage = _add(graph, node, threads, asked, started)
        for queue in _queues(node, "input"):
            edges[id(queue)].takes = stage
        outputs = _queues(node, "output")
        for number, queue in enumerate(outputs):
            name, set_by = f"{stage.name}[{number}]" if len(outputs) > 1 else stage.name, ""
            if node is nodes[-1]:
                name, set_by = "sink_queue", "buffer_size"
            items, size = _items_of(queue)
            follow = partial(follow_levels, items, _is_end)
            edges[id(queue)] = Edge(name, stage, in_loop, int(getattr(items, size)), follow, set_by)
    graph.edges = list(edges.values())
    return graph


def _sink(coroutine: Any) -> Any:
    """The last node of a pipeline that has not ended."""
    if coroutine.cr_frame is None:
        raise LookupError("the pipeline has ended")
    node = _core.local_variables(coroutine.cr_frame)["node"]
    if not hasattr(node, "upstream") or not hasattr(node, "output_queue"):
        raise LookupError("its nodes are not as in SPDL 0.8")
    return node


def _collect(node: Any, into: list[Any]) -> None:
    """Producers before consumers."""
    if any(node is known for known in into):
        return
    for upstream in node.upstream:
        _collect(upstream, into)
    into.append(node)


def _queues(node: Any, side: str) -> list[Any]:
    """Those of its "input" or "output"."""
    many, one = getattr(node, f"{side}_queues", None), getattr(node, f"{side}_queue", None)
    return list(many) if many is not None else [] if one is None else [one]


def _items_of(queue: Any) -> tuple[Any, str]:
    """The queue that has the items, and its attribute that limits them."""
    inner = getattr(queue, "_async_queue", queue)  # under the mirror that the loop takes from
    if hasattr(inner, "_getters"):
        return inner, "_maxsize"
    return inner._queue, "maxsize"  # a queue.Queue, with use_thread_output_queue


def _is_end(item: Any) -> bool:
    return type(item).__name__ == "_Sentinel"


def _add(graph: Graph, node: Any, threads: int, asked: int, started: bool) -> Stage:
    config = type(node.cfg).__name__
    if config == "PipeConfig":
        return _add_pipe(graph, node, threads, asked, started)
    runs_in = "async"
    operator = Operator(str(node.info.stage_name), "generator" if config == "DisaggregateConfig" else "map")
    if config == "SourceConfig":
        source = node.cfg.source
        runs_in = "async" if hasattr(source, "__aiter__") else "thread"
        operator = Operator(name_of(source), "source", None if started else partial(probes.time_source, node))
        if started:
            warn_once("wrap an SPDL pipeline before it starts: the time of its source is not recorded")
    elif config == "AggregateConfig":
        size = getattr(node.cfg.op, "n", None)
        name = f"aggregate({size})" if isinstance(size, int) else name_of(node.cfg.op)
        operator = Operator(name, "batch", partial(probes.time_aggregator, node))
    elif config == "SinkConfig":
        operator = Operator("add_sink", "prefetch")
    elif config == "_SubprocessPipelineConfig":
        runs_in = "process"
    stage = Stage([operator])
    graph.add(stage, runs_in=runs_in)
    return stage


def _add_pipe(graph: Graph, node: Any, threads: int, asked: int, started: bool) -> Stage:
    arguments = node.cfg._args
    executor, shares_pool = arguments.executor, _shares_pool(node)
    concurrency = int(arguments.concurrency)
    keeps_order = node.cfg._type.name == "OrderedPipe"
    runs_in = "async"
    own_limit: Any = None
    if not probes.is_async(arguments.op):
        runs_in, own_limit = _place_of(executor), getattr(executor, "_max_workers", None)
    has_own_limit = isinstance(own_limit, int) and own_limit > 0
    limit = threads if shares_pool else own_limit if has_own_limit else concurrency
    kind = "generator" if probes.is_generator(arguments.op) else "map"
    stage = Stage([Operator(node.cfg.name, kind, partial(probes.time_pipe, node, runs_in))])
    workers = min(concurrency, limit)
    shown = graph.add(stage, workers, runs_in, ordered=keeps_order or workers == 1)
    shown.pool = "num_threads" if shares_pool and asked > threads else ""
    name = stage.name

    def parameter(own: str, where: str, *owner: Any, **fields: Any) -> str:
        return graph.parameter(f"{name}.{own}", *owner, stage=stage.place, set_in=where, **fields)

    also = ", and num_threads in .build() for all pipes together" if shares_pool else ""
    # With output_order="input" it has made a queue of that length already.
    fixed = started or keeps_order
    where = f"set it in .pipe(){also}"
    at = arguments, "concurrency"
    shown.widened_by = parameter("concurrency", where, *at, fixed=fixed, usual=1, min=1, sets="workers")
    if limit < concurrency:
        shown.widened_by = "num_threads" if shares_pool else f"{name}.max_workers"
    if has_own_limit:
        at, where = (executor, "_max_workers"), "set it in the pipe's executor"
        parameter("max_workers", where, *at, fixed=True, usual=limit, min=1, sets="workers")
    if runs_in != "async":
        where = "pass executor=ProcessPoolExecutor(...) to .pipe()"
        parameter("executor", where, value=runs_in, usual="thread", sets="executor")
    if keeps_order:
        where = 'pass output_order="completion" to .pipe()'
        parameter("output_order", where, value="input", usual="completion", sets="order")
    return stage


def _shares_pool(node: Any) -> bool:
    """A pipe without an executor of its own shares the threads of the build."""
    if type(node.cfg).__name__ != "PipeConfig":
        return False
    return node.cfg._args.executor is None and not probes.is_async(node.cfg._args.op)


def _place_of(executor: Any) -> str:
    """ "thread", or "process" for an executor that runs calls elsewhere."""
    kind = getattr(executor, "_pool_executor_class", type(executor))
    processes = classes_of("concurrent.futures.process", "ProcessPoolExecutor")
    isolates = isinstance(kind, type) and (issubclass(kind, processes) or "Interpreter" in kind.__name__)
    return "process" if isolates else "thread"
