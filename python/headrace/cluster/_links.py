"""Links between ranks: which are slow, and what that costs the job at most."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from headrace import _core
from headrace.cluster._causes import floats_of
from headrace.traces.table_text import bandwidth, counted, seconds

#: Members of a link whose exposed communication is looked up.
_MAX_MEMBERS = 64


@dataclass
class SlowLink:
    """Times are seconds a step; bandwidths 10^9 bytes a second."""

    #: Ranks: "0-7", "0-56/8" (every eighth), "1,4"; of a pair "3>5".
    ranks: str
    is_pair: bool
    #: What it is compared with: the same collective in groups of the same form, or the same transport.
    kind: str
    bandwidth_gbps: float | None
    usual_gbps: float | None
    latency_s: float | None
    usual_latency_s: float | None
    #: What a step would be shorter by, at most.
    excess_s: float

    def __str__(self) -> str:
        of = (
            "from rank {} to rank {}".format(*self.ranks.split(">"))
            if self.is_pair
            else f"of ranks {self.ranks}"
        )
        how = [self.kind.replace("_", "-")]
        if self.bandwidth_gbps is not None and self.usual_gbps is not None:
            how.append(f"{bandwidth(self.bandwidth_gbps)} instead of {bandwidth(self.usual_gbps)}")
        if self.latency_s is not None and self.usual_latency_s is not None:
            how.append(f"latency {seconds(self.latency_s)} instead of {seconds(self.usual_latency_s)}")
        return f"the link {of} ({', '.join(how)})"


class Links:
    """The links of a job, from its ranks' summaries."""

    def __init__(self, ranks: Mapping[int, Mapping[str, Any]]) -> None:
        self._ranks = ranks

    @cached_property
    def _judged(self) -> dict[str, Any]:
        texts = [(rank, str(summary.get("links", ""))) for rank, summary in self._ranks.items()]
        return _core.judge_links([one for one in texts if one[1]])

    @property
    def rows(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self._judged["links"]
        return rows

    @cached_property
    def slow(self) -> list[SlowLink]:
        """Those that cost most first."""
        names = SlowLink.__dataclass_fields__
        return [SlowLink(**{name: row[name] for name in names}) for row in self.rows if row["slow"]]

    @property
    def common_rank(self) -> int | None:
        """The one rank that all slow links have in common."""
        rank: int | None = self._judged["common_rank"]
        return rank

    @cached_property
    def loss_s(self) -> float:
        """What the slow links cost a step at most: no more than the communication that is exposed."""
        return max((min(link.excess_s, self._exposed(link.ranks)) for link in self.slow[:100]), default=0.0)

    def _exposed(self, ranks: str) -> float:
        """Mean exposed communication of the members, seconds a step; infinite if it is unknown."""
        members = [int(one) for one in ranks.split(">")] if ">" in ranks else _core.ranks_of_text(ranks)
        found = []
        for rank in members[:_MAX_MEMBERS]:
            if rank in self._ranks:
                total, own = (floats_of(self._ranks[rank], name) for name in ("total", "own"))
                if total and len(total) == len(own):
                    found.append((math.fsum(total) - math.fsum(own)) / len(total))
        return math.fsum(found) / len(found) if found else math.inf

    @property
    def notes(self) -> list[str]:
        traces = [one for one in self._ranks.values() if one["source"] == "trace"]
        if len(traces) < 2:
            return []
        if not self.rows:
            return ["links are unknown: the traces do not say which ranks their collectives join"]
        unknown = self._judged["unknown"]
        if unknown:
            return [
                f"{counted(unknown, 'record')} of links are left out: files of ranks at the ends are missing"
            ]
        return []
