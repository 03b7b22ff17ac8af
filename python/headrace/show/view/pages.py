"""The pages around the report: the list of runs, and the line above a report."""

from __future__ import annotations

import time
from html import escape
from urllib.parse import quote, urlencode

from headrace import _core
from headrace.predict.comparison import Comparison
from headrace.results.library import Library, ReportState, Run, Summary
from headrace.results.sentences import live_lines
from headrace.results.tuning_record import TuningRecord
from headrace.traces.table_text import seconds

#: What has not been read by then is in the page that is asked for next, two seconds later.
_LIST_WITHIN_S = 0.5

_STYLE = """<style>
.headrace nav { display: flex; flex-wrap: wrap; gap: 4px 18px; max-width: 1152px; margin: 0 auto;
  padding: 14px 28px 0; color: var(--soft); font-size: 14px; }
.headrace nav a, .headrace .sheet > p a, .headrace .runs a { color: var(--predicted); }
.headrace nav .status { margin-left: auto; }
.headrace nav [aria-current] { color: var(--ink); font-weight: 650; }
.headrace .now { max-width: 1152px; margin: 10px auto 0; padding: 0 28px; font-weight: 650; }
.headrace .now p { margin: 2px 0; }
.headrace .now .alert { color: var(--accent); }
.headrace .runs { width: 100%; border-collapse: collapse; margin: 18px 0; }
.headrace .runs th, .headrace .runs td { text-align: left; padding: 7px 14px 7px 0; vertical-align: baseline;
  border-bottom: 1px solid var(--line); white-space: normal; overflow-wrap: break-word; }
.headrace .runs th { color: var(--soft); font-weight: 600; font-size: 13px; }
.headrace .runs .number { text-align: right; white-space: nowrap; }
.headrace .runs .when { white-space: nowrap; }
.headrace .runs .bad { color: var(--accent); font-weight: 650; }
.headrace .runs .pick { white-space: nowrap; }
.headrace .picked { position: absolute; background: var(--predicted); opacity: .25; pointer-events: none; }
.headrace [hidden] { display: none !important; }
.headrace .filter { margin-top: 14px; font: inherit; padding: 5px 10px; min-width: 18em; max-width: 100%; }
.headrace button { font: inherit; padding: 5px 14px; }
@media (max-width: 720px) {
  .headrace .runs thead { display: none; }
  .headrace .runs tr { display: flex; flex-wrap: wrap; padding: 7px 0; border-bottom: 1px solid var(--line); }
  .headrace .runs td { border: 0; padding: 2px 14px 2px 0; }
  .headrace .runs td:empty { display: none; }
  .headrace .runs td:nth-child(-n+3) { flex-basis: 100%; }
  .headrace .runs [data-label]::before { content: attr(data-label) " "; color: var(--soft); }
}
</style>"""


def run_page(run: Run, state: ReportState, alone: bool, shown: tuple[float, float] = (0.0, 0.0)) -> str:
    """The report of `Report.to_html` below links to other loaders and ranks. alone: there is no list.

    shown: what the workers' lanes show, in seconds since the first GetNext; (0, 0): the newest steps.
    """
    links = [] if alone else ['<a href="/">all runs</a>']
    chosen = state.report
    if len(chosen.loaders) > 1:
        links += [
            _link(run, name, name == chosen.loader, loader=name, rank=chosen.rank) for name in chosen.loaders
        ]
    if len(chosen.ranks) > 1:
        links += [
            _link(run, f"rank {rank}", rank == chosen.rank, loader=chosen.loader, rank=rank)
            for rank in chosen.ranks
        ]
    links.append(f'<span class="status" role="status">{escape(state.status_text)}</span>')
    now = "".join(
        f"<p{' class=alert' if at else ''}>{escape(line)}</p>"
        for at, line in enumerate(live_lines(state.live))
    )
    here = f"/run/{quote(run.name)}?{urlencode({'loader': chosen.loader, 'rank': chosen.rank})}&"
    report = chosen._parsed.html(False, chosen._segment(), *shown, here)
    return _page(
        run.name, f"<nav>{''.join(links)}</nav>{now and f'<div class=now>{now}</div>'}<main>{report}</main>"
    )


def tuning_page(run: Run, alone: bool) -> str:
    """The page of `Tuned.to_html`. Raises Error for a file that cannot be read."""
    links = "" if alone else '<nav><a href="/">all runs</a></nav>'
    return _page(run.name, f"{links}<main>{TuningRecord.load(run.path).html(False)}</main>")


def compare_page(comparison: Comparison, alone: bool) -> str:
    """The page of `Comparison.to_html`, with a way back to the list."""
    links = "" if alone else '<nav><a href="/">all runs</a></nav>'
    return _page(comparison.headline, f"{links}<main>{comparison._compared.html(False)}</main>")


def list_page(library: Library) -> str:
    """The runs, newest first, with what each was found to be."""
    runs, older = library.runs()
    found = library.summaries(runs, _LIST_WITHIN_S)
    rows = "".join(_row(run, summary) for run, summary in zip(runs, found, strict=True))
    if not runs:
        where = escape(str(library.root))
        body = f"<p>No run was recorded at any depth below {where}; `headrace run train.py` records one.</p>"
    else:
        body = (
            '<input type="search" id="filter" class="filter" placeholder="words to find" '
            'aria-label="only rows with these words" hidden>'
            '<form action="/compare"><div class="scroll"><table class="runs">'
            "<thead><tr><th>run</th><th>loader</th><th>verdict</th>"
            '<th class="number">waits</th><th class="number">step</th>'
            '<th class="number" title="of an input that is never waited for">gain up to</th>'
            "<th>newest file</th>"
            f"<th>compare</th></tr></thead><tbody>{rows}</tbody></table></div>"
            '<button type="submit">compare two runs</button></form>'
        )
    if older:
        body += f"<p>{older} older runs are not listed.</p>"
    return _page("runs", f'<main class="sheet"><h1>Recorded runs</h1>{body}</main>')


def message_page(says: str) -> str:
    return _page(
        "headrace", f'<main class="sheet"><p>{escape(says)}</p><p><a href="/">all runs</a></p></main>'
    )


def _row(run: Run, found: Summary) -> str:
    said = found.kind.replace("_", "-")
    if found.operator:
        said += f": {found.operator}"
    if found.cause:
        said += f", {found.cause.replace('_', ' ')}"
    kind = "bad" if found.kind == "input_bound" else ""
    waits = "" if found.wait_share is None else f"{100 * found.wait_share:.0f} %"
    step = seconds(found.step_s) if found.step_s else ""
    when = "recording now" if run.running else time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(run.changed))
    name = escape(run.name)
    gain = f"{found.most_gain:.2f}x" if found.kind == "input_bound" and found.most_gain else ""

    def label(word: str) -> str:
        """Shown where a narrow window has no heading."""
        return f' data-label="{word}"'

    picks = "".join(
        f'<input type="radio" name="{side}" value="{name}" aria-label="{name} as {side.upper()}">'
        for side in ("" if run.is_tuning else "ab")
    )
    return (
        f'<tr><td><a href="/run/{quote(run.name)}">{name}</a></td>'
        f"<td>{escape(found.loader)}</td>"
        f'<td class="{kind}">{escape(said or found.problem)}</td>'
        f'<td class="number"{waits and label("waits")}>{waits}</td>'
        f'<td class="number"{step and label("step")}>{step}</td>'
        f'<td class="number"{gain and label("gain up to")}>{gain}</td><td class="when">{when}</td>'
        f'<td class="pick"{picks and label("compare")}>{picks}</td></tr>'
    )


def _link(run: Run, words: str, current: bool, **chosen: object) -> str:
    if current:
        return f'<span aria-current="page">{escape(words)}</span>'
    return f'<a href="/run/{quote(run.name)}?{escape(urlencode(chosen))}">{escape(words)}</a>'


def _page(title: str, body: str) -> str:
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><link rel="icon" href="data:,">'
        f"<title>{escape(title)} - headrace</title>{_core.page_style()}{_STYLE}"
        '<script src="/static/idiomorph.min.js" defer></script><script src="/static/live.js" defer></script>'
        f'</head><body class="headrace">{body}</body></html>\n'
    )
