"""``headrace top`` without a terminal: a line every 10 s."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from headrace import _core
from headrace.common.plain import plain
from headrace.results.library import ReportState
from headrace.results.sentences import one_line
from headrace.show.top.followed import Followed

#: Between two lines; a new risk is not kept waiting.
_EVERY_S = 10.0
_LOOK_EVERY_S = 1.0


def lines(followed: Followed, sleep: Callable[[float], None] = time.sleep) -> Iterator[str]:
    """Until the run has ended. Raises Error if the run cannot be read any more."""
    said_at = float("-inf")
    known: set[str] = set()
    while True:
        state = followed.state()
        new = {one.risk for one in state.report.diagnosis.risks}
        new |= {"straggler" for one in [state.live] if one and one.straggler and one.straggler.chronic}
        new -= known
        if new or not state.running or _core.now_s() - said_at >= _EVERY_S:
            said_at = _core.now_s()
            known |= new
            yield line(state)
        if not state.running:
            return
        sleep(_LOOK_EVERY_S)


def line(state: ReportState) -> str:
    """All that matters: who, whether it goes on, verdict, step, what to do, what will go wrong."""
    report = state.report
    who = f"{plain(report.loader)}, rank {report.rank}, {state.status_text}"
    return f"{time.strftime('%H:%M:%S')} {who} | {one_line(report, state.live)}"
