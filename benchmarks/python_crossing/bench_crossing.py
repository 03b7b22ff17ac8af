"""What recording adds to one Python call and to one item of a wrapped iterator."""

from __future__ import annotations

import itertools
import sys
import tempfile
import time
from pathlib import Path

import headrace as hr

sys.path.insert(0, str(Path(__file__).parents[1]))
from timing import bar, interleaved, median, paired

CALLS = 200_000
ROUNDS = 25


def body(item: int) -> int:
    return item


recorded_body = hr.operator("body")(body)


def plain_python_wrapper(item: int) -> int:
    began = time.perf_counter_ns()
    result = body(item)
    plain_python_wrapper.ns += time.perf_counter_ns() - began  # type: ignore[attr-defined]
    return result


plain_python_wrapper.ns = 0  # type: ignore[attr-defined]


def time_calls(function: object) -> float:
    """ns a call; the result is checked so that no contender can skip the work."""
    repeat = itertools.repeat(7, CALLS)
    began = time.perf_counter_ns()
    for item in repeat:
        result = function(item)  # type: ignore[operator]
    took = time.perf_counter_ns() - began
    assert result == 7
    return took / CALLS


def time_items(iterable: object) -> float:
    """ns an item."""
    count = 0
    began = time.perf_counter_ns()
    for _item in iterable:  # type: ignore[attr-defined]
        count += 1
    took = time.perf_counter_ns() - began
    assert count == CALLS
    return took / CALLS


def main() -> int:
    with tempfile.TemporaryDirectory() as folder, hr.session(run=folder):
        calls = interleaved(
            {
                "bare": lambda: time_calls(body),
                "recorded": lambda: time_calls(recorded_body),
                "python": lambda: time_calls(plain_python_wrapper),
            },
            ROUNDS,
        )
        loader = hr.wrap(range(CALLS), name="items")
        items = interleaved(
            {"bare": lambda: time_items(range(CALLS)), "recorded": lambda: time_items(loader)}, ROUNDS
        )
        steps = loader.report().profile.sink.steps
    assert steps == CALLS * (ROUNDS + 1), "an item was not recorded"
    print(
        f"  a call: bare {median(calls['bare']):.1f} ns, recorded {median(calls['recorded']):.1f} ns, "
        f"timed by a Python wrapper {median(calls['python']):.1f} ns"
    )
    print(f"  an item: bare {median(items['bare']):.1f} ns, recorded {median(items['recorded']):.1f} ns")
    over = lambda bare, more: more - bare  # noqa: E731
    holds = [
        bar(
            "one instrumented Python call, over the bare one",
            paired(calls["bare"], calls["recorded"], over),
            "ns",
            80,
        ),
        bar(
            "one item of a wrapped iterator, over the bare one",
            paired(items["bare"], items["recorded"], over),
            "ns",
            80,
        ),
    ]
    return 0 if all(holds) else 1


if __name__ == "__main__":
    sys.exit(main())
