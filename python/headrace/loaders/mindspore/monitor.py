"""Queue levels from MindData's own monitor.

MindData can sample the level of every operator's output queue. Its switch is the one that MindSpore's device
profilers use (there is no public one for the CPU); it serves one iterator at a time and excludes AutoTune. A
sample costs about 20 ms of CPU time, so there is one a second.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

from headrace import _core
from headrace.common.handlers import start_without_signals
from headrace.loaders.mindspore.tree import Tree

_INTERVAL_MS = 1000
_COLLECT_EVERY_S = 5.0
_MAX_BYTES = 64 << 20

_current: Monitor | None = None
_lock = threading.Lock()


def _manager() -> Any | None:
    """MindData's profiling manager; None where it cannot be used."""
    if os.environ.get("MS_INDEPENDENT_DATASET", "").lower() == "true":
        return None
    config = getattr(sys.modules.get("mindspore.dataset"), "config", None)
    engine = sys.modules.get("mindspore._c_dataengine")
    if config is None or engine is None or config.get_enable_autotune() or config.get_debug_mode():
        return None
    return engine.GlobalContext.profiling_manager()


def prepare(tree: Tree) -> Monitor | None:
    """Before an iterator is made: MindData gets ready to watch it. None: it cannot, or watches another."""
    global _current
    # MindData's sampler asks for the ids of worker processes, and an answer that it does not expect ends the
    # user's pipeline: such datasets are not watched.
    if any(stage.in_processes for stage in tree.stages):
        return None
    with _lock:
        if _current is not None:
            return None
        manager = _manager()
        if manager is None:
            return None
        config = sys.modules["mindspore.dataset"].config
        interval = config.get_monitor_sampling_interval()
        config.set_monitor_sampling_interval(_INTERVAL_MS)
        try:
            manager.init()
            manager.start()
        finally:
            config.set_monitor_sampling_interval(interval)
        _current = Monitor(manager)
        return _current


class Monitor:
    """Watches one iterator, and reports the levels of its queues now and then."""

    def __init__(self, manager: Any) -> None:
        self._manager = manager
        self._queues: dict[int, _core.QueueHandle] = {}
        #: The stage of each operator id in MindData's files.
        self._stages: dict[int, int] | None = None
        self._tree: Tree | None = None
        self._seen = 0
        #: When the loop began, or the last sample was taken.
        self._last_ns = 0
        self._told = False
        self._collecting = threading.Lock()
        self._ended = threading.Event()

    def begin(self, tree: Tree, queues: dict[int, _core.QueueHandle]) -> None:
        """The iterator is made. ``queues``: of each stage."""
        self._queues = queues
        self._tree = tree
        start_without_signals(threading.Thread(target=self._run, name="headrace-minddata", daemon=True))

    def loop_begins(self) -> None:
        """Levels count from here on."""
        for queue in self._queues.values():
            queue.begin()
        self._last_ns = max(self._last_ns, _core.now_ns())

    def end(self) -> None:
        """The iterator is gone."""
        global _current
        if self._ended.is_set():
            return
        self._ended.set()
        with _lock:
            with contextlib.suppress(Exception):
                self._manager.stop()
            if _current is self:
                _current = None

    def _run(self) -> None:
        while not self._ended.wait(_COLLECT_EVERY_S):
            self.collect()

    def collect(self) -> None:
        """Report what was sampled since the last time; while the loop runs, for its clock to count it."""
        with self._collecting:
            try:
                self._collect()
            except Exception:  # levels are an extra: the loop must still run
                self.end()

    def _collect(self) -> None:
        if self._ended.is_set() or self._tree is None:
            return
        with tempfile.TemporaryDirectory(prefix="headrace-minddata-") as folder:
            self._manager.save(folder)
            operators = _only(folder, "pipeline_profiling_*.json").get("op_info") or []
            stamps = _only(folder, "minddata_cpu_utilization_*.json").get("time_stamp") or []
        if self._stages is None:
            self._stages = stages_of(operators, self._tree)
        levels = {
            self._stages[each["op_id"]]: each["metrics"]["output_queue"]["size"]
            for each in operators
            if each["op_id"] in self._stages and each.get("metrics")
        }
        count = min([len(stamps), *(len(each) for each in levels.values())])
        for index in range(self._seen, count):
            self._tell(int(stamps[index] * 1e6), {stage: each[index] for stage, each in levels.items()})
        self._seen = max(self._seen, count)

    def _tell(self, at_ns: int, levels: dict[int, int]) -> None:
        """A level holds from the middle between the sample before and this one, the first from the start."""
        since = (self._last_ns + at_ns) // 2 if self._told else self._last_ns
        for stage, level in levels.items():
            queue = self._queues.get(stage)
            if queue is not None:
                queue.sampled(int(level), since)
        self._last_ns = at_ns
        self._told = True


def _only(folder: str, pattern: str) -> dict[str, Any]:
    for path in Path(folder).glob(pattern):
        if path.stat().st_size <= _MAX_BYTES:
            found = json.loads(path.read_text(encoding="utf-8"))
            if isinstance(found, dict):
                return found
    return {}


def stages_of(operators: list[dict[str, Any]], tree: Tree) -> dict[int, int]:
    """The stage of each operator id, as far as both trees agree from the training loop on.

    MindData adds nodes of its own (the end of an epoch, a copy to a device): they are passed over.
    """
    by_id = {each["op_id"]: each for each in operators}
    children = {child for each in operators for child in each.get("children") or []}
    roots = [op_id for op_id in by_id if op_id not in children]
    found: dict[int, int] = {}

    def follow(op_ids: list[int], stages: list[int]) -> None:
        seen = _with_queues(op_ids, by_id)
        if len(seen) != len(stages):
            return
        for op_id, stage in zip(seen, stages, strict=True):
            found[op_id] = stage
            follow(by_id[op_id].get("children") or [], tree.stages[stage].inputs)

    follow(roots, tree.outputs)
    return found


def _with_queues(op_ids: list[int], by_id: dict[int, dict[str, Any]]) -> list[int]:
    """Those of these operators with a queue, and the children of those without, in turn."""
    result: list[int] = []
    for op_id in op_ids:
        node = by_id.get(op_id)
        if node is None:
            continue
        result += [op_id] if node.get("metrics") else _with_queues(node.get("children") or [], by_id)
    return result
