"""The wall clock of a run: the file that a recording process keeps, beside the times of its loops."""

from __future__ import annotations

import dataclasses
import json
import os
from typing import Any

from headrace import _core
from headrace.common.loader_names import unnumbered
from headrace.results import process_files
from headrace.results.figures import BudgetPart

_MAX_BYTES = 4 << 20
#: No time in seconds and no count is larger.
_MOST = 1 << 53
#: The part of a place whose functions do not show it, by its phase.
_USUAL_PARTS = {"before": "startup", "first": "startup", "between": "between_epochs"}
#: Share of the wall clock: a smaller part gets no cure.
_WORTH_IT = 0.05
#: Share of an evaluation from which on starts of workers are named first.
_RESTARTS = 0.25
#: If the looks missed more than this part of the time outside of loops, what they missed is told as "other".
_MISSED = 0.25
#: A checkpoint beside the training slows it from this share on, in so many steps.
_SLOWED = 0.1
_FEWEST_STEPS = 8


def budget_in(run: str, rank: int, image: _core.SegmentImage) -> list[BudgetPart]:
    """The parts of a rank's run, the largest first; empty where nothing was kept.

    image: of the rank's segment, whose loops' times are exact.
    """
    document = _newest(run, rank)
    if document is None:
        return []
    try:
        read = _Parts(document, image.loaders())
        parts = read.all()
    except (KeyError, TypeError, ValueError, AttributeError):  # damaged, or of another program
        return []
    _advise(parts, {one.name: one for one in read.loops}, image)
    return sorted(parts, key=lambda part: -part.seconds)


def loops_in(
    run: str | os.PathLike[str], rank: int, loaders: list[dict[str, Any]]
) -> tuple[list[Loops], float]:
    """The loops that take time of a rank's training, and the wall clock of its run in seconds.

    loaders: of `_core.segment_loaders`. Without a file of the rank, none of the loops evaluates or is beside
    the training, and the wall clock is 0.
    """
    document = _newest(os.fspath(run), rank)
    try:
        read = _Parts(document or {"wall_s": 0, "loops": {}}, loaders)
    except (KeyError, TypeError, ValueError, AttributeError):  # damaged, or of another program
        read = _Parts({"wall_s": 0, "loops": {}}, loaders)
    return read.loops, read.wall_s


def evaluated(run: str) -> set[str]:
    """Names of the loaders that are evaluated on, as far as a run's folder says so. run: "": none."""
    process_files.write_all()
    kinds: dict[str, set[Any]] = {"evaluation": set(), "training": set()}
    for path in process_files.paths("budget", run) if run else ():
        loops = (process_files.document_of(path, _MAX_BYTES) or {}).get("loops")
        for name, one in loops.items() if isinstance(loops, dict) else ():
            kind = one.get("kind") if isinstance(one, dict) else None
            if isinstance(kind, str):
                kinds.setdefault(kind, set()).add(name)
    return kinds["evaluation"] - kinds["training"]


def _newest(run: str, rank: int) -> dict[str, Any] | None:
    """The budget of a rank. Several processes may have recorded it; the last one counts."""
    paths = sorted(process_files.paths("budget", run, rank), key=_written_at, reverse=True)
    documents = (process_files.document_of(path, _MAX_BYTES) for path in paths)
    return next((document for document in documents if document is not None), None)


def _written_at(path: str) -> float:
    try:
        return os.stat(path).st_mtime  # noqa: PTH116
    except OSError:
        return 0.0


def _number(value: Any) -> float:
    """A time or a count of a file; ValueError for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= _MOST:
        raise ValueError("not a number that a time or a count has")
    return float(value)


class _Parts:
    """The budget of one process."""

    def __init__(self, document: dict[str, Any], loaders: list[dict[str, Any]]) -> None:
        self._document = document
        self.wall_s = _number(document["wall_s"])
        # Loops beside the training loop, in other threads, take nothing of its time.
        loops = [self._loop(one) for one in loaders if one["epochs"] > 0]
        self.loops = _made_again([one for one in loops if not one.beside])

    def all(self) -> list[BudgetPart]:
        outside, pauses = self._places()
        pauses += self._slowed()
        of_loops = self._of_loops(sum(part.seconds for part in pauses))
        exact_s = sum(part.seconds for part in of_loops) + sum(part.seconds for part in pauses)
        # Looks are a few hundredths of a second late at each end of a loop; what loops took is exact.
        rest_s = self.wall_s - exact_s
        seen_s = sum(part.seconds for part in outside)
        if rest_s < 0:  # loops that ran in each other, of which too little is known
            return []
        if seen_s > 0 and seen_s >= (1 - _MISSED) * rest_s:
            for part in outside:
                part.seconds *= rest_s / seen_s
        elif rest_s > seen_s:
            outside.append(BudgetPart(part="other", seconds=rest_s - seen_s))
        parts = [part for part in _joined([*of_loops, *pauses, *outside]) if part.seconds > 0]
        for part in parts:
            part.share = part.seconds / self.wall_s if self.wall_s else 0.0
        return parts

    def _places(self) -> tuple[list[BudgetPart], list[BudgetPart]]:
        """Outside of loops; in their steps."""
        outside: list[BudgetPart] = []
        pauses: list[BudgetPart] = []
        unseen_s = _number(self._document["unseen_s"])
        if unseen_s > 0:
            outside.append(
                BudgetPart(part="startup", function="imports and set-up", seconds=unseen_s, times=1)
            )
        places = self._document["places"]
        between = {each["function"] for each in places if each["phase"] == "between" and not each["part"]}
        for each in places:
            phase, times = each["phase"], int(_number(each["times"]))
            first, last = (_number(each.get(name, 0)) for name in ("first_step", "last_step"))
            fewest, most = map(_number, each.get("gaps", (0, 0)))
            even = most <= fewest + max(2, fewest)  # a look may be a step late at each end
            usual = _USUAL_PARTS.get(phase, "other")
            if phase == "after" and each["function"] in between:
                usual = "between_epochs"  # the last of them
            part = BudgetPart(
                part=str(each["part"]) or usual,
                function=str(each["function"]) or None,
                seconds=_number(each["seconds"]),
                times=times,
                period=(last - first) / (times - 1) if even and times > 1 and last > first else None,
            )
            (pauses if phase in ("first", "pause") else outside).append(part)
        return outside, pauses

    def _slowed(self) -> list[BudgetPart]:
        """The cost of checkpoints that another thread writes, by the steps meanwhile."""
        beside = {name: _number(value) for name, value in self._document["beside"].items()}
        if min(beside["steps"], beside["calm_steps"]) < _FEWEST_STEPS:
            return []
        slowed_s = beside["seconds"] - beside["steps"] * beside["calm_seconds"] / beside["calm_steps"]
        if slowed_s < _SLOWED * beside["seconds"]:
            return []
        return [
            BudgetPart(
                part="checkpoints",
                function="beside the training, whose steps are slower meanwhile",
                seconds=slowed_s,
                times=int(beside["times"]),
                cure="write checkpoints with fewer threads, or from a process of its own",
                saves_s=slowed_s,
            )
        ]

    def _of_loops(self, pauses_s: float) -> list[BudgetPart]:
        """pauses_s: of long steps, which the computes contain."""
        parts: list[BudgetPart] = []
        longest = max(
            (one for one in self.loops if not one.evaluates), key=lambda one: one.compute_s, default=None
        )
        for one in self.loops:
            if one.evaluates:
                parts.append(
                    BudgetPart(
                        part="evaluation",
                        loader=one.name,
                        function=one.function,
                        seconds=one.first_s + one.waits_s + one.compute_s,
                        times=one.times,
                        period=(one.last_step - one.first_step) / (one.times - 1) if one.times > 1 else None,
                        loader_start_s=one.first_s,
                    )
                )
                continue
            compute_s = max(0.0, one.compute_s - (pauses_s if one is longest else 0.0))
            parts += [
                BudgetPart(part="steps", loader=one.name, seconds=compute_s, times=one.steps),
                BudgetPart(part="waits", loader=one.name, seconds=one.waits_s, times=one.steps),
                BudgetPart(
                    part="startup",
                    loader=one.name,
                    seconds=one.first_s,
                    times=one.times,
                    loader_start_s=one.first_s,
                ),
            ]
        return parts

    def _loop(self, loader: dict[str, Any]) -> Loops:
        """loader: of `_core.segment_loaders`."""
        known = self._document["loops"].get(loader["name"], {})
        epochs = int(loader["epochs"])
        zipped = known.get("kind") == "zipped"
        return Loops(
            name=loader["name"],
            index=loader["index"],
            function=str(known.get("function") or "") or None,
            evaluates=known.get("kind") == "evaluation",
            zipped=zipped,
            beside=bool(known.get("beside")),
            steps=int(loader["steps"]),
            first_s=loader["first_batches_s"],
            waits_s=loader["wait_s"] - loader["first_batches_s"],
            compute_s=0.0 if zipped else loader["compute_s"],
            times=max(1, int(_number(known.get("times", epochs)))),
            first_step=_number(known.get("first_step", 0)),
            last_step=_number(known.get("last_step", 0)),
        )


@dataclasses.dataclass
class Loops:
    """All loops over a loader; one that is made anew for each epoch is the same loader."""

    name: str
    index: int
    function: str | None
    evaluates: bool
    zipped: bool  #: with another loop, which has the time of their steps
    beside: bool
    steps: int
    first_s: float
    waits_s: float
    compute_s: float
    times: int
    first_step: float
    last_step: float
    made: int = 1


def _made_again(loops: list[Loops]) -> list[Loops]:
    found: dict[tuple[str, str | None, bool], Loops] = {}
    for one in loops:
        name = one.name if one.zipped else unnumbered(one.name)  # each of them is another loader
        first = found.setdefault((name, one.function, one.evaluates), one)
        if first is one:
            continue
        first.name = min(first.name, one.name, key=len)
        for name in ("steps", "first_s", "waits_s", "compute_s", "times", "made"):
            setattr(first, name, getattr(first, name) + getattr(one, name))
        first.first_step = min(first.first_step, one.first_step)
        first.last_step = max(first.last_step, one.last_step)
    return list(found.values())


def _joined(parts: list[BudgetPart]) -> list[BudgetPart]:
    """One for each part, loader and function; an evaluation and what it does outside of its loop are one."""
    found: dict[tuple[str, str | None, str | None], BudgetPart] = {}
    for part in parts:
        by_place = part.part == "evaluation" and part.function is not None
        key = (part.part, None if by_place else part.loader, part.function)
        first = found.setdefault(key, part)
        if first is not part:
            first.seconds += part.seconds
            first.loader_start_s += part.loader_start_s
            if first.loader is None:  # else its loops are counted
                first.times += part.times
                first.period = first.period if part.period is None else part.period
    return list(found.values())


def _advise(parts: list[BudgetPart], loops: dict[str, Loops], image: _core.SegmentImage) -> None:
    """The seconds of this run that each large part's cure would save."""
    trains = any(part.part == "steps" for part in parts)  # else the program is an inference
    for part in parts:
        if part.share < _WORTH_IT or part.cure:
            continue
        loop = loops.get(part.loader or "") if part.part in ("startup", "evaluation") else None
        start, each_s = ("", 0.0) if loop is None else _starts_again(loop, image)
        if loop is not None and start and each_s * loop.times >= _RESTARTS * part.seconds:
            part.cure = start
            part.saves_s = each_s * (loop.times - 1)
        elif part.part == "evaluation" and part.times > 1 and trains:
            part.cure = f"evaluate half as often, or on half of the batches ({part.function or part.loader})"
            part.saves_s = part.seconds / 2
        elif part.part == "checkpoints" and part.times > 1:
            part.cure = "write checkpoints beside the training (an asynchronous checkpoint), or less often"
            part.saves_s = part.seconds
        elif part.part == "weight_sync" and part.times > 1:
            part.cure = f"sync weights less often, or while generation goes on ({part.function})"
            part.saves_s = part.seconds / 2
        elif part.part == "logging":
            part.cure = f"log less often, or from another thread ({part.function})"
            part.saves_s = part.seconds / 2


def _starts_again(loop: Loops, image: _core.SegmentImage) -> tuple[str, float]:
    """The cure for workers that start anew in each epoch, and the seconds of one start. "": there is none.

    A start lasts until a worker's first request; a first batch has to be made in any case.
    """
    profile = json.loads(image.profile_json(loop.index)) if loop.times > 1 else {}
    settings = profile.get("settings", {})
    if settings.get("num_workers", "0") == "0":
        return "", 0.0
    if _FEWEST_STEPS <= loop.times >= loop.steps:
        batches = f"batches = iter({loop.name}) before the loop, next(batches) in it"
        return f"{loop.times} epochs of one batch: keep one iterator ({batches})", loop.first_s / loop.times
    start_s = float(profile["startup"]["worker_start_s"])
    if loop.made > 1:
        cure = f"make the loader {loop.name} once, before the first epoch, with persistent_workers=True"
        return cure, start_s
    if settings.get("persistent_workers") != "False":
        return "", 0.0
    return f"persistent_workers=True for {loop.name}: its workers start {loop.times} times", start_s
