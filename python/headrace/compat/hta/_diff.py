"""`LabeledTrace` and `TraceDiff`: what changed between two traces."""

from __future__ import annotations

import enum
from collections.abc import Sequence

import pandas as pd

from headrace.compat.hta._symbols import shorten_name
from headrace.compat.hta._trace import Trace

Numbers = int | list[int] | None


class DeviceType(enum.Enum):
    """The rows to compare."""

    CPU = 1
    GPU = 2
    ALL = 3


class LabeledTrace:
    """A trace and what it is called in a comparison. Nothing is aligned, and no step is dropped."""

    def __init__(
        self, label: str | None = None, t: Trace | None = None, trace_dir: str | None = None
    ) -> None:
        if t is None and trace_dir is None:
            raise ValueError("give a trace (t) or its folder (trace_dir)")
        self.t = t if t is not None else Trace(trace_dir=trace_dir or "")
        self.label = label if label is not None else "t0"

    def ranks(self) -> list[int]:
        return self.t.get_ranks()

    def iterations(self) -> list[int]:
        """Steps that the trace has a ``ProfilerStep#N`` for."""
        symbols = self.t.symbol_table
        names = [symbols.sym_table[i] for i in symbols.matching(r"^ProfilerStep#\d+")]
        return sorted({int(name.split("#")[1]) for name in names})

    def extract_ops(
        self, rank: Numbers = None, iteration: Numbers = None, device_type: DeviceType = DeviceType.ALL
    ) -> pd.DataFrame:
        """The rows of ranks and steps; None: the first one of each."""
        ranks = _listed(rank, self.ranks(), "rank")
        steps = _listed(iteration, self.iterations(), "iteration")
        frame = pd.concat([self.t.get_trace(rank) for rank in ranks])
        frame = frame[frame["iteration"].isin(steps)]
        if device_type is DeviceType.CPU:
            frame = frame[frame["stream"] == -1]
        elif device_type is DeviceType.GPU:
            frame = frame[frame["stream"] != -1]
        return frame.assign(
            name=self.t.symbol_table.texts(frame["name"]), cat=self.t.symbol_table.texts(frame["cat"])
        )

    def get_ops_summary(self, ops: pd.DataFrame) -> pd.DataFrame:
        """How often and how long, by category and name."""
        table = ops.groupby(["cat", "name"])["dur"].agg(counts="count", total_duration="sum").reset_index()
        table.insert(2, "short_name", table["name"].map(shorten_name))
        numbers = self.t.symbol_table.sym_index
        table["cat_id"] = table["cat"].map(numbers)
        table["name_id"] = table["name"].map(numbers)
        return table.sort_values(["cat_id", "name_id"], ignore_index=True)


def _listed(given: Numbers, known: Sequence[int], what: str) -> list[int]:
    if given is None:
        if not known:
            raise ValueError(f"the trace has no {what}")
        return [known[0]]
    chosen = [given] if isinstance(given, int) else list(given)
    for number in chosen:
        if number not in known:
            raise ValueError(f"no {what} {number}; there are: {', '.join(map(str, known))}")
    return chosen


def _labeled(trace: LabeledTrace | str, label: str) -> LabeledTrace:
    return LabeledTrace(label, trace_dir=trace) if isinstance(trace, str) else trace


class TraceDiff:
    """Comparisons of two traces, by name."""

    @classmethod
    def compare_traces(
        cls,
        control: LabeledTrace | str,
        test: LabeledTrace | str,
        control_rank: Numbers = None,
        test_rank: Numbers = None,
        control_iteration: Numbers = None,
        test_iteration: Numbers = None,
        device_type: DeviceType = DeviceType.ALL,
        use_short_name: bool = False,
    ) -> pd.DataFrame:
        control, test = _labeled(control, "control"), _labeled(test, "test")
        labels = [control.label, test.label]
        if labels[0] == labels[1]:
            labels = ["control", "test"]
        sides = []
        for trace, label, rank, step in (
            (control, labels[0], control_rank, control_iteration),
            (test, labels[1], test_rank, test_iteration),
        ):
            ops = trace.extract_ops(rank, step, device_type)
            key = "short_name" if use_short_name else "name"
            if use_short_name:
                ops = ops.assign(short_name=ops["name"].map(shorten_name))
            side = ops.groupby(key)["dur"].agg(["count", "sum"])
            sides.append(side.set_axis([f"{label}_counts", f"{label}_total_duration"], axis=1))
        added = sides[1].index.difference(sides[0].index, sort=False)
        table = sides[0].join(sides[1], how="outer").fillna(0).astype(float)
        table = table.loc[[*sides[0].index, *added]].rename_axis(key)
        counts = [f"{label}_counts" for label in labels]
        table["diff_counts"] = table[counts[1]] - table[counts[0]]
        table["diff_duration"] = table[f"{labels[1]}_total_duration"] - table[f"{labels[0]}_total_duration"]
        change = table["diff_counts"]
        table["counts_change_categories"] = change.map(lambda by: "+" if by > 0 else "-" if by < 0 else "=")
        return table

    @classmethod
    def ops_diff(
        cls,
        control: LabeledTrace | str,
        test: LabeledTrace | str,
        control_rank: Numbers = None,
        test_rank: Numbers = None,
        control_iteration: Numbers = None,
        test_iteration: Numbers = None,
        device_type: DeviceType = DeviceType.ALL,
    ) -> dict[str, list[str]]:
        table = cls.compare_traces(
            control, test, control_rank, test_rank, control_iteration, test_iteration, device_type
        )
        before, after = table.iloc[:, 0], table.iloc[:, 2]
        both = (before > 0) & (after > 0)
        chosen = {
            "added": (before == 0) & (after > 0),
            "deleted": (before > 0) & (after == 0),
            "increased": both & (after > before),
            "decreased": both & (after < before),
            "unchanged": both & (after == before),
        }
        return {what: list(table.index[rows]) for what, rows in chosen.items()}
