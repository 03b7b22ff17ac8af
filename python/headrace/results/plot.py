"""A report as matplotlib axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.common.plain import plain
from headrace.errors import UsageError
from headrace.results.sentences import verdict

if TYPE_CHECKING:
    from headrace.results.report import Report

#: Operators and queues that are drawn: the largest demands, the first queues of the data flow.
_MAX = 24
#: Told apart by people who see colours differently, and in grey.
_WAIT, _OPERATOR, _STEP, _QUEUE = "#d55e00", "#0072b2", "#000000", "#009e73"


def plot(report: Report, axes: Any = None) -> Any:
    """Three axes: waits over time, demand of the operators, how full the queues were."""
    if axes is None:
        try:
            from matplotlib import pyplot
        except ImportError:
            raise UsageError("plot needs matplotlib: pip install matplotlib") from None
        shown = max(1, min(_MAX, len(report.profile.operators)))
        figure, axes = pyplot.subplots(1, 3, figsize=(14, 2.2 + 0.22 * shown), layout="constrained")
        figure.suptitle(f"{_name(report.loader)}: {_escaped(verdict(report))}")
    if len(axes) != 3:
        raise UsageError(f"plot needs three axes, not {len(axes)}")
    _waits(axes[0], report)
    _demands(axes[1], report)
    _queues(axes[2], report)
    return axes


def _waits(axes: Any, report: Report) -> None:
    windows = report.profile.windows
    if windows:
        covered = [one.wait_s + one.compute_s for one in windows]
        shares = [
            100 * one.wait_s / all_s if all_s > 0 else 0.0
            for one, all_s in zip(windows, covered, strict=True)
        ]
        axes.stairs(shares, [windows[0].start_s, *(one.end_s for one in windows)], fill=True, color=_WAIT)
    axes.set(title="waits for data", xlabel="time, s", ylabel="% of the time", ylim=(0, 100))


def _demands(axes: Any, report: Report) -> None:
    known = [(one.demand_s, one.name) for one in report.profile.operators if one.demand_s is not None]
    largest = sorted(known)[-_MAX:]
    # By place, because several may have the same name.
    axes.barh(range(len(largest)), [1000 * demand_s for demand_s, _ in largest], color=_OPERATOR)
    axes.set_yticks(range(len(largest)), [_name(name) for _, name in largest])
    compute_ms = 1000 * report.profile.sink.compute_s
    axes.axvline(compute_ms, color=_STEP, linestyle="--", label="training step")
    axes.legend(loc="lower right")
    axes.set(title="demand: busy time per batch / workers", xlabel="ms")


def _queues(axes: Any, report: Report) -> None:
    queues = report.profile.queues[:_MAX]
    places = range(len(queues))
    axes.barh(places, [100 * one.empty_share for one in queues], color=_WAIT, label="empty")
    full = [100 * one.full_share for one in queues]
    axes.barh(places, full, left=[100 - one for one in full], color=_QUEUE, label="full")
    axes.set_yticks(places, [_name(one.name) for one in queues])
    axes.invert_yaxis()
    if queues:
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.25), ncols=2, frameon=False)
    axes.set(title="queues", xlabel="% of the time", xlim=(0, 100))


def _name(text: str) -> str:
    return _escaped(text if len(text) <= 40 else f"{text[:39]}…")


def _escaped(text: str) -> str:
    """matplotlib reads what stands between dollar signs as mathematics."""
    return plain(text).replace("$", r"\$")
