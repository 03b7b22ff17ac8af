"""The pages around the report: the list of runs, and the line above a report."""

from __future__ import annotations

import time
from urllib.parse import quote, urlencode

from headrace.pages import markup, render
from headrace.predict.comparison import Comparison
from headrace.results.library import Library, ReportState, Run, Summary
from headrace.results.sentences import live_lines
from headrace.results.tuning_record import TuningRecord
from headrace.traces.table_text import seconds

#: Runs that have not been read by then are in the next page, two seconds later.
_LIST_WITHIN_S = 0.5
#: Words, address, and whether it is the page itself.
_ALL_RUNS = ("all runs", "/", False)


def run_page(run: Run, state: ReportState, alone: bool, shown: tuple[float, float] = (0.0, 0.0)) -> str:
    """The report of `Report.to_html` below links to other loaders and ranks. alone: there is no list.

    shown: what the workers' lanes show, in seconds since the first GetNext; (0, 0): the newest steps.
    """
    chosen = state.report
    links = [] if alone else [_ALL_RUNS]
    if len(chosen.loaders) > 1:
        links += [_link(run, name, name == chosen.loader, name, chosen.rank) for name in chosen.loaders]
    if len(chosen.ranks) > 1:
        links += [
            _link(run, f"rank {rank}", rank == chosen.rank, chosen.loader, rank) for rank in chosen.ranks
        ]
    here = f"{_address(run, chosen.loader, chosen.rank)}&"
    return render(
        "view",
        title=run.name,
        links=links,
        status=state.status_text,
        now=live_lines(state.live),
        report=markup(chosen._html(False, chosen._segment(), shown, here)),
    )


def tuning_page(run: Run, alone: bool) -> str:
    """The page of `Tuned.to_html`. Raises Error for a file that cannot be read."""
    return _around(run.name, TuningRecord.load(run.path).html(False), alone)


def compare_page(comparison: Comparison, alone: bool) -> str:
    """The page of `Comparison.to_html`, with a way back to the list."""
    return _around(comparison.headline, comparison._html(False), alone)


def list_page(library: Library) -> str:
    """The runs, newest first, with what each was found to be."""
    runs, older = library.runs()
    found = library.summaries(runs, _LIST_WITHIN_S)
    rows = [_row(run, summary) for run, summary in zip(runs, found, strict=True)]
    return render("runs", title="runs", rows=rows, root=library.root, older=older)


def message_page(says: str) -> str:
    return render("view", title="headrace", says=says)


def _around(title: str, report: str, alone: bool) -> str:
    return render("view", title=title, links=[] if alone else [_ALL_RUNS], report=markup(report))


def _row(run: Run, found: Summary) -> tuple[Run, Summary, str, str, str, str, str]:
    said = found.kind.replace("_", "-")
    if found.operator:
        said += f": {found.operator}"
    if found.cause:
        said += f", {found.cause.replace('_', ' ')}"
    waits = "" if found.wait_share is None else f"{100 * found.wait_share:.0f} %"
    step = seconds(found.step_s) if found.step_s else ""
    when = "recording now" if run.running else time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(run.changed))
    gain = f"{found.most_gain:.2f}x" if found.kind == "input_bound" and found.most_gain else ""
    return run, found, said, waits, step, gain, when


def _address(run: Run, loader: str, rank: int) -> str:
    return f"/run/{quote(run.name)}?{urlencode({'loader': loader, 'rank': rank})}"


def _link(run: Run, words: str, current: bool, loader: str, rank: int) -> tuple[str, str, bool]:
    return words, _address(run, loader, rank), current
