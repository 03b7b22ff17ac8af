"""A rank's files as a profile, by which any other loader is judged as well.

How each figure comes about (docs/mindspore.md says it for users):

    steps     end of batch i + 1 - end of batch i; the wait is what the file gives; compute is the rest.
              Where the device's GetNext calls are recorded, those are the loop's: from start to start.
    samples   those after the first batch, up to the last one, and up to where the source ran dry
    demand    busy share x step

What no file says is None: items, service times, and everything of operators that run inside another one.
`notes` says what limits the figures.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from headrace.mindspore_files.batches import Call
from headrace.mindspore_files.cpu import Series
from headrace.mindspore_files.model import model_of
from headrace.mindspore_files.pipeline import Operator
from headrace.mindspore_files.rank import RankFiles
from headrace.mindspore_files.samples import (
    COMPUTES_CORES,
    FEWEST_SAMPLES,
    add_levels,
    states_of,
    steady_samples,
    work_of,
)
from headrace.mindspore_files.steps import LISTED_STEPS, device_of
from headrace.mindspore_files.windows import windows_of

#: As many as any other loader lists.
_LONGEST_WAITS = 8
#: Operators whose CPU time is so far above the process's own are not inside it: the two are sampled apart.
_IN_PROCESS = 1.1
#: The device's queue is mostly empty.
_MOSTLY = 0.5
#: Share of the samples at work below which the others may hide as much again.
_MOSTLY_AT_WORK = 0.5
#: Share of a window for which the loop starves, from which on the window shows what it waits for.
_STARVES = 0.1


def profile_of(files: RankFiles) -> dict[str, Any]:
    """A `Profile` as its JSON has it; figures that are missing have their defaults."""
    return _Builder(files).build()


class _Builder:
    def __init__(self, files: RankFiles) -> None:
        self._files = files
        self._steady = steady_samples(files)
        self._notes = list(files.notes)
        self._sink: dict[str, Any] = {}
        self._host: dict[str, Any] = {}
        #: Figures, and the operator of the file; None for a feeder that no file lists.
        self._operators: list[tuple[dict[str, Any], Operator | None]] = []
        #: Figures, and levels at the steady samples; None for those of another file.
        self._queues: list[tuple[dict[str, Any], list[int] | None]] = []
        #: Place of the operator that feeds the device; -1: no operator does.
        self._feeder = -1
        self._elapsed_s = 0.0

    def build(self) -> dict[str, Any]:
        files = self._files
        for part in (files.pipeline, files.batches, files.getnext, files.cpu):
            self._notes += part.notes if part is not None else []
        calls = files.calls
        self._add_operators()
        self._add_sink(calls)
        if files.pipeline is not None and (apart := len(files.pipeline.operators) - len(self._operators)):
            self._notes.append(f"{apart} operators of another tree are left out")
        self._add_host()
        self._add_feeder()
        self._add_queues()
        windows = self._add_work(calls)
        groups = self._add_threads()
        profile = {
            "loader": "dataset",
            "settings": {},
            "model": model_of(files, self._host.get("cores", 0), self._operators, groups, self._queues),
            "rank": files.rank,
            "elapsed_s": self._elapsed_s,
            "epochs": 1 if calls else 0,
            "startup": {"first_batch_s": calls[0].wait_s if calls else 0.0},
            "sink": self._sink,
            "operators": [figures for figures, _ in self._operators],
            "queues": [figures for figures, _ in self._queues],
            "windows": windows,
            "host": self._host,
            "finished": True,
            "notes": self._notes,
        }
        if files.in_sink_mode or files.dataset_iterator is not None:
            profile["settings"] = {"dataset_sink_mode": str(files.in_sink_mode)}
        if files.steps is not None:
            device = device_of(files.steps, files.points or ("", ""), files.getnext, files.batches)
            profile["device"] = device | {"rank": files.rank}
        return profile

    def _add_operators(self) -> None:
        pipeline, steady = self._files.pipeline, len(self._steady)
        if pipeline is None:
            self._notes.append(
                "no operator is known: pipeline_profiling and minddata_pipeline_raw are missing"
            )
            return
        if steady < FEWEST_SAMPLES:
            self._notes.append(
                f"the queues were read {steady} times in the steady run; at least {FEWEST_SAMPLES} are "
                "needed to say what an operator did (a shorter monitor sampling interval gives more)"
            )
        for op in pipeline.in_data_flow():
            self._add_operator(op.name, op.kind, op, workers=max(1, op.workers or 1), fidelity="sampled")

    def _add_operator(self, name: str, kind: str, op: Operator | None, **figures: Any) -> None:
        unknown: dict[str, Any] = dict.fromkeys(("items_per_batch", "busy_s", "demand_s"))
        one = {"name": name, "kind": kind, "states": {}, "parameters": [], **unknown, **figures}
        self._operators.append((one, op))

    def _add_sink(self, calls: list[Call]) -> None:
        files, batches = self._files, self._files.batches
        if files.steps_on_device:
            self._notes.append(
                "the steps and waits are the device's: from one of its GetNext calls to the next"
            )
        elif batches is None:
            self._notes.append(
                "no file tells when the training loop took batches (dataset_iterator_profiling, "
                "device_queue_profiling, minddata_aicpu, minddata_getnext_profiling)"
            )
        elif batches.span_ms is None:
            self._notes.append("the batches' file is of an old version that has no times")
        else:
            self._sink["wait_resolution_s"] = 1e-3  # the writer cuts waits to whole milliseconds
            if files.device_queue is not None:
                self._notes.append(
                    "the waits are those of the thread that feeds the device: what the device's queue "
                    "bridges is not known without minddata_aicpu or minddata_getnext_profiling"
                )
        self._sink["steps"] = len(calls)
        if len(calls) < 2:
            return
        begin_s, steps = calls[0].end_s, len(calls) - 1
        self._elapsed_s = elapsed_s = max(0.0, calls[-1].end_s - begin_s)
        waits = sorted(call.wait_s for call in calls[1:])
        waited = sum(waits)
        ready = [call.wait_s for call in calls[1:] if call.ready]
        stalls = sorted(enumerate(calls[1:], 2), key=lambda stall: -stall[1].wait_s)[:_LONGEST_WAITS]
        quantiles = {f"p{at}_s": waits[int(at / 100 * (steps - 1) + 0.5)] for at in (50, 90, 99)}
        self._sink |= {
            "getnext_wait": {"count": steps, "mean_s": waited / steps, **quantiles, "max_s": waits[-1]},
            "step_s": elapsed_s / steps,
            "compute_s": max(0.0, (elapsed_s - waited) / steps),
            "wait_share": min(1.0, waited / elapsed_s) if elapsed_s else 0.0,
            "starved_share": min(1.0, (waited - sum(ready)) / elapsed_s) if elapsed_s else 0.0,
            "ready_share": len(ready) / steps,
            "handoff_floor_s": sum(ready) / max(1, len(ready)),
            "longest_waits": [
                {"at_s": max(0.0, call.start_s - begin_s), "wait_s": call.wait_s, "step": step}
                for step, call in stalls
                if call.wait_s > 0
            ],
            "sequence": [
                {"wait_s": one.wait_s, "compute_s": max(0.0, following.start_s - one.end_s)}
                for one, following in pairwise(calls[1:][-LISTED_STEPS - 1 :])
            ],
        }

    def _cores(self, percent: Series) -> float | None:
        """Mean of the steady run."""
        mean = percent.mean(self._files.span_ms)
        return None if mean is None else mean / 100

    def _add_host(self) -> None:
        cpu, host = self._files.cpu, self._host
        if cpu is None:
            return
        host["cores"] = cpu.cores
        host["process_cpu_cores"] = own = self._cores(cpu.process)
        host["memory"] = None if cpu.resident_bytes is None else int(cpu.resident_bytes)
        if not cpu.cores or own is None:
            return
        # Worker processes are part of their operators, and not of the process.
        in_operators = sum(self._cores(percent) or 0.0 for percent in cpu.operators.values())
        host["cpu_share"] = min(1.0, max(own, in_operators) / cpu.cores)
        if (idle := self._cores(cpu.idle)) is not None:
            busy = min(1.0, max(0.0, 1 - idle - (self._cores(cpu.io) or 0.0)))
            host["foreign_cpu_share"] = max(0.0, busy - host["cpu_share"])

    def _add_feeder(self) -> None:
        """Sink mode: a thread takes batches from the host queue and pushes them to the device."""
        queue, getnext = self._files.device_queue, self._files.getnext
        kinds = [figures["kind"] for figures, _ in self._operators]
        self._feeder = kinds.index("transfer") if "transfer" in kinds else -1
        if queue is None:
            return
        if self._feeder < 0:
            self._feeder = len(self._operators)
            self._add_operator("DataQueueOp", "transfer", None, items_per_batch=1)
        feeder = self._operators[self._feeder][0]
        feeder |= {"fidelity": "counter", "items": len(queue.batches)}
        pushes = [one.push_ms for one in queue.batches[1:] if one.push_ms is not None]
        # A push lasts until the device's queue has room: it is work only where that queue is mostly empty.
        levels = [call.level for call in getnext.calls] if getnext is not None else []
        if pushes and levels and levels.count(0) >= _MOSTLY * len(levels):
            feeder["busy_s"] = sum(pushes) * 1e-3
            feeder["demand_s"] = feeder["busy_s"] / len(pushes)
            busy = min(1.0, feeder["busy_s"] / self._elapsed_s) if self._elapsed_s else 0.0
            feeder["states"] = {"busy": busy, "blocked_in": 1 - busy} if self._elapsed_s else {}

    def _consumer(self, op: Operator) -> int:
        """Place of the operator that takes what ``op`` makes; -1: the training loop."""
        above = op.output
        while above is not None and above.is_inlined:
            above = above.output
        return next((at for at, (_, one) in enumerate(self._operators) if one and one is above), self._feeder)

    def _add_queues(self) -> None:
        begin, end = self._steady.begin, self._steady.end
        for place, (_, op) in enumerate(self._operators):
            if op is None or op.levels is None or (to := self._consumer(op)) == place:
                continue
            # Levels of a run without steady samples are still levels.
            levels = op.levels[begin:end]
            self._add_queue(
                place, to, f"{op.name} queue", op.capacity, levels, op.levels if begin == end else levels
            )
        batches = self._files.batches
        host = [queue for queue in self._queues if queue[0]["name"] == "host queue"]
        has_samples = any(figures["samples"] for figures, _ in host)
        if batches is not None and not has_samples and len(batches.levels) >= FEWEST_SAMPLES:
            self._queues = [queue for queue in self._queues if queue not in host]
            inlined = {at for at, (_, op) in enumerate(self._operators) if op is not None and op.is_inlined}
            makers = set(range(len(self._operators))) - inlined - {self._feeder}
            capacities = [one.capacity for one in batches.batches[1:] if one.capacity is not None] or [0]
            self._add_queue(max(makers, default=-1), self._feeder, "", capacities[-1], None, batches.levels)
        if self._files.getnext is not None:
            levels = [call.level for call in self._files.getnext.calls]
            self._add_queue(self._feeder, -1, "data queue", 0, None, levels)

    def _add_queue(
        self, source: int, to: int, name: str, capacity: int, steady: list[int] | None, levels: list[int]
    ) -> None:
        is_last = to < 0 or to == self._feeder
        figures = {
            "name": "host queue" if is_last and name != "data queue" else name,
            "unit": "batches" if is_last else "rows",
            "capacity": capacity,
            "from": self._operators[source][0]["name"] if source >= 0 else "",
            "from_operators": [source] if source >= 0 else [],
            "to": self._operators[to][0]["name"] if to >= 0 else "sink",
            "to_operators": [to] if to >= 0 else [],
            "to_sink": to < 0,
            "fidelity": "sampled",
            "parameters": [],
        }
        add_levels(figures, levels)
        self._queues.append((figures, steady))

    def _add_work(self, calls: list[Call]) -> list[dict[str, Any]]:
        """The states of each operator, in the whole run, and in the windows that are returned."""
        work: list[list[float]] = [[] for _ in self._operators]
        percents = self._files.cpu.operators if self._files.cpu is not None else {}
        elapsed_s, step_s = self._elapsed_s, self._sink.get("step_s", 0.0)
        for place, (figures, op) in enumerate(self._operators):
            percent = percents.get(op.id, Series()) if op is not None else Series()
            cores = self._cores(percent) if elapsed_s else None
            figures["cpu_s"] = None if cores is None else cores * elapsed_s
            if op is None or op.is_inlined or place == self._feeder:
                continue
            inputs = [levels for queue, levels in self._queues if place in queue["to_operators"]]
            own = [levels for queue, levels in self._queues if place in queue["from_operators"]]
            states = states_of(inputs, own[-1] if own else None, op.capacity, bool(op.inputs))
            figures["states"], work[place] = work_of(states, self._steady, figures["workers"], percent, cores)
            if elapsed_s and figures["states"]:
                figures["busy_s"] = figures["states"]["busy"] * figures["workers"] * elapsed_s
                figures["demand_s"] = figures["states"]["busy"] * step_s
        windows = []
        if self._files.pipeline is not None and not self._files.steps_on_device:
            windows = windows_of(calls, self._steady, self._files.batches, work, self._queues)
        for place, (figures, _) in enumerate(self._operators):
            busy = max(figures["states"].get("busy", 0.0), _busy_while_starving(windows, place))
            if figures.get("fidelity") == "sampled" and busy < _MOSTLY_AT_WORK:
                figures["busy_s"] = figures["demand_s"] = None
        return windows

    def _add_threads(self) -> list[int]:
        """Where each operator runs: in the process's threads or in processes of its own, where its CPU time
        shows it. Returns for each operator that in whose threads it runs: inlined ones share those of the
        operator that takes from them, -1 is the loop."""
        own = self._host.get("process_cpu_cores")
        cores = [(one["cpu_s"] or 0.0) / (self._elapsed_s or 1.0) for one, _ in self._operators]
        groups = list(range(len(cores)))
        for place, (figures, op) in enumerate(self._operators):
            if own is not None and cores[place] >= COMPUTES_CORES:
                is_inside = sum(cores) <= _IN_PROCESS * own
                is_apart = cores[place] > _IN_PROCESS * own
                figures["executor"] = "process" if is_apart else "thread" if is_inside else ""
            if op is not None and op.is_inlined:
                groups[place] = above = self._consumer(op)
                if above >= 0:
                    figures["segment"] = self._operators[above][0]["segment"] = above
        return groups


def _busy_while_starving(windows: list[dict[str, Any]], place: int) -> float:
    """Busy share of the operator in the windows in which the loop starves; 0 without such windows."""
    busy = span = 0.0
    for window in windows:
        lasted = window["end_s"] - window["start_s"]
        share = window["operators"][place]["busy_share"]
        if share is not None and window["starved_s"] >= _STARVES * lasted:
            busy += share * lasted
            span += lasted
    return busy / span if span else 0.0
