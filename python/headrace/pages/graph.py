"""The recorded graph as columns from left to right: what stands side by side, and which queues lead there."""

from __future__ import annotations

from typing import Any

from headrace.pages.charts import MAX_DRAWN

Figures = dict[str, Any]


def stages(operators: list[Figures], queues: list[Figures]) -> list[Figures]:
    """``{"queues", "boxes"}``: every operator is in one box, by its place; every queue is before one stage.

    Operators that the same workers run in turn share a box. The training step is the last, without operators.
    A queue ``is_clear`` where its place shows which two boxes it connects.
    """
    box_of: list[int] = []
    numbers: dict[Any, int] = {}
    for at, op in enumerate(operators):
        alone = op["segment"] is None or op["segment"] < 0
        key = "sink" if op["in_sink"] else ("alone", at) if alone else op["segment"]
        box_of.append(numbers.setdefault(key, len(numbers)))
    boxes: list[list[int]] = [[] for _ in range(len(numbers) + 1)]
    for at, number in enumerate(box_of):
        boxes[number].append(at)

    # Indices that no operator puts come from the sampler, where it is recorded.
    samplers = [number for number, box in enumerate(boxes) if box and operators[box[0]]["kind"] == "sampler"]
    ends = []
    for queue in queues:
        to = [box_of[at] for at in queue["to_operators"]] + [len(boxes) - 1] * queue["to_sink"]
        puts = [box_of[at] for at in queue["from_operators"]]
        ends.append((puts or (samplers if to and not queue["from"] else []), to))

    column = _columns(len(boxes), ends)
    found: list[Figures] = [{"queues": [], "boxes": []} for _ in range(column[-1] + 1)]
    for number, box in enumerate(boxes):
        in_sink = bool(box) and operators[box[0]]["in_sink"]
        found[column[number]]["boxes"].append({"operators": box, "in_sink": in_sink})
    for queue, (puts, to) in zip(queues, ends, strict=True):
        after = max((column[box] + 1 for box in puts), default=0)
        ahead = [column[box] for box in to if column[box] >= after]
        # A queue that leads back stands where it is taken from.
        place = min(ahead or [column[to[0]] if to else after])
        place = min(place, column[-1])
        sides = found[place]["boxes"], found[place - 1]["boxes"] if place else []
        is_clear = (
            all(column[box] + 1 == place for box in puts)
            and all(column[box] == place for box in to)
            and all(len(side) <= 1 for side in sides)
        )
        found[place]["queues"].append({**queue, "is_clear": is_clear})
    return found


def _columns(count: int, queues: list[tuple[list[int], list[int]]]) -> list[int]:
    """A box stands right of everything that it takes from. Queues that lead back are not followed."""
    before: list[set[int]] = [set() for _ in range(count)]
    for puts, to in queues:
        for box in to:
            before[box].update(each for each in puts if each < box)
    puts_any = {box for puts, _ in queues for box in puts}
    column = [0] * count
    for box in range(count):
        if before[box]:
            column[box] = max(column[each] + 1 for each in before[box])
        elif box and box not in puts_any:  # its input is unknown, so it stands where the data flow has it
            column[box] = column[box - 1] + 1
    column[-1] = max(column[:-1]) + 1 if count > 1 else 0
    return column


def shown_stages(graph: list[Figures], here: int | None) -> list[Figures]:
    """The first ones, the last, and that of the bottleneck. here: its place among the operators."""
    return [
        stage
        for at, stage in enumerate(graph)
        if at + 1 < MAX_DRAWN
        or at + 1 == len(graph)
        or any(here in box["operators"] for box in stage["boxes"])
    ]


def shown_boxes(boxes: list[Figures], here: int | None, most: int) -> list[Figures]:
    return [box for at, box in enumerate(boxes) if at < most or here in box["operators"]]


def box_operators(box: Figures, operators: list[Figures], here: int | None, most: int) -> list[int]:
    """The operators to draw: of many the bottleneck and the slowest, in the order of the data flow."""
    if len(box["operators"]) <= most:
        return list(box["operators"])
    by_time = sorted(box["operators"], key=lambda at: (at != here, -(operators[at]["demand_s"] or 0)))
    return sorted(by_time[: most - 1])


def most_workers(box: Figures, operators: list[Figures]) -> int:
    return int(max(operators[at]["workers"] for at in box["operators"]))
