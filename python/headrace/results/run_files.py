"""Files beside a segment in its run folder that belong into its reports: findings, budget and so on."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

from headrace import _core
from headrace.results import autopilot_record, budget, findings, process_files, tokens

_KINDS = ("watch", "budget", "tokens", "autopilot")


def with_run_files(profile_json: str, run: str, image: _core.SegmentImage) -> str:
    """A profile with what was found wrong, where the run's time went, what language data its batches hold,
    and what was set while it trained.

    run: its folder; "": none. image: of the segment that the profile is from.
    """
    process_files.write_all()
    if not run or not any(process_files.paths(kind, run) for kind in _KINDS):
        return profile_json
    profile = json.loads(profile_json)
    loader, rank = profile["loader"], profile["rank"]
    language = tokens.tokens_in(run, rank, loader, profile["sink"]["step_s"])
    beside: dict[str, Any] = {
        "findings": _plain(findings.findings_in(run, rank, loader)),
        "autopilot": _plain(autopilot_record.changes_in(run, rank, loader)),
        "budget": _plain(budget.budget_in(run, rank, image)),
    }
    if language is not None:
        beside["tokens"] = dataclasses.asdict(language)
    return _core.with_run_files(profile_json, json.dumps(beside))


def _plain(parts: Sequence[Any]) -> list[dict[str, Any]]:
    return [dataclasses.asdict(one) for one in parts]
