"""Which stage of the pipeline each rank is in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headrace import _core
from headrace.errors import UsageError

#: What a stage is given as: its ranks, or a text of them, "0-7" or "0-56/8".
Stages = Sequence[Sequence[int] | str]


def stages_of(ranks: Mapping[int, Mapping[str, Any]], given: Stages | None) -> dict[int, int]:
    """The stage of each rank; empty if it is unknown for one of them. Raises UsageError for `given`."""
    if given is not None:
        return _given(ranks, given)
    stages: dict[int, int] = {}
    for rank, summary in ranks.items():
        place = summary.get("places", {}).get("pipeline")
        if not isinstance(place, list) or len(place) != 2 or not all(type(one) is int for one in place):
            return {}
        stages[rank] = place[0]
    return stages


def listed(given: Stages) -> list[list[int]]:
    """The ranks of each stage. Raises UsageError for a stage without ranks."""
    stages = [
        _core.ranks_of_text(members) if isinstance(members, str) else list(members) for members in given
    ]
    for stage, members in enumerate(stages):
        if not members:
            raise UsageError(
                f"stage {stage} is {given[stage]!r}; a stage is a list of ranks or '0-7', '0-56/8'"
            )
    return stages


def _given(ranks: Mapping[int, Mapping[str, Any]], given: Stages) -> dict[int, int]:
    stages: dict[int, int] = {}
    for stage, members in enumerate(listed(given)):
        for rank in members:
            if stages.setdefault(rank, stage) != stage:
                raise UsageError(f"rank {rank} is given in stage {stages[rank]} and in stage {stage}")
    absent = [rank for rank in ranks if rank not in stages]
    if absent:
        raise UsageError(f"rank {absent[0]} is in none of the {len(given)} stages")
    return {rank: stages[rank] for rank in ranks}
