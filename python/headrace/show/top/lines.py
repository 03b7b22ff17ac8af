"""``headrace top`` without a terminal: a line every 10 s."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from headrace.common.plain import plain
from headrace.results.library import Look
from headrace.results.sentences import one_line
from headrace.show.top.followed import Followed

#: Between two lines; a new risk is not kept waiting.
_EVERY_S = 10.0
_LOOK_EVERY_S = 1.0


def lines(
    followed: Followed,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[str]:
    """Until the run has ended. Raises Error if the run cannot be read any more."""
    said_at = float("-inf")
    known: set[str] = set()
    while True:
        look = followed.look()
        new = {one.risk for one in look.report.diagnosis.risks} - known
        if new or not look.running or clock() - said_at >= _EVERY_S:
            said_at = clock()
            known |= new
            yield line(look)
        if not look.running:
            return
        sleep(_LOOK_EVERY_S)


def line(look: Look) -> str:
    """All that matters: who, whether it goes on, verdict, step, what to do, what will go wrong."""
    report = look.report
    who = f"{plain(report.loader)}, rank {report.rank}, {look.news}"
    return f"{time.strftime('%H:%M:%S')} {who} | {one_line(report)}"
