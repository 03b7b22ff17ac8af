"""Ranks that come late to their collectives."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from headrace.compat.hta._trace import Trace


def potential_stragglers(trace: Trace, steps: Sequence[int] | None, num_candidates: int) -> list[int]:
    known = trace.get_iterations()
    if steps is None:
        steps = known
    unknown = sorted(set(steps) - set(known))
    if unknown:
        raise ValueError(f"no profiler step {unknown[0]}; there are: {', '.join(map(str, known))}")
    num_candidates = max(1, num_candidates)
    frames = [frame.assign(rank=rank) for rank, frame in trace.traces.items()]
    rows = pd.concat(frames, ignore_index=True)
    rows = rows[rows["iteration"].isin(list(steps))]
    if rows.empty:
        return []
    mean_step = ((rows["ts"] + rows["dur"]).max() - rows["ts"].min()) / max(1, len(set(steps)))
    collectives = trace.symbol_table.matching("ncclKernel")
    rows = rows[
        (rows["stream"] > 0)
        & (rows["iteration"] > 0)
        & rows["name"].isin(collectives)
        & (rows["dur"] >= 0.01 * mean_step)
    ]
    rows = rows.drop_duplicates(["rank", "stream", "iteration", "name"], keep="last")
    if rows.empty:
        return []
    spread = (rows["dur"] / mean_step).groupby([rows["stream"], rows["iteration"], rows["name"]]).std()
    chosen = spread.groupby(["stream", "name"]).mean()
    if chosen.isna().all():
        return []
    stream, name = chosen.idxmax()
    rows = rows[(rows["stream"] == stream) & (rows["name"] == name)]
    starts = rows.pivot_table(index="iteration", columns="rank", values="ts", aggfunc="last")
    lateness = starts.sub(starts.min(axis=1), axis=0) / mean_step
    marks = pd.Series(0, index=lateness.columns)
    for _, late in lateness.iterrows():
        sizes = np.sort(late.dropna().to_numpy())[::-1]
        if len(sizes):
            marks += (late >= sizes[min(num_candidates, len(sizes)) - 1]).astype(int)
    return [int(rank) for rank in marks.sort_values(ascending=False, kind="stable").index[:num_candidates]]
