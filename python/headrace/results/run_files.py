"""What lies beside a segment in its run folder and belongs into its reports: findings, the budget."""

from __future__ import annotations

import json
from typing import Any

from headrace import _core
from headrace.results import budget, budget_file, findings


def with_run_files(profile_json: str, run: str, image: _core.SegmentImage | None) -> str:
    """A profile with what was found wrong, and with where the run's time went.

    run: its folder; "": none. image: of the segment that the profile is from; None: there is no budget.
    """
    for write in (*findings.before_reading, *budget_file.before_reading):
        write()
    watched = bool(run) and findings.was_watched(run)
    has_budget = bool(run) and image is not None and budget.has_budget(run)
    if not watched and not has_budget:
        return profile_json
    profile = _core.ParsedReport(profile_json)
    found = findings.findings_in(run, profile.rank, profile.loader) if watched else []
    parts = budget.budget_in(run, profile.rank, image) if has_budget and image is not None else []
    if not found and not parts:
        return profile_json
    beside: dict[str, Any] = {"findings": findings.as_json(found), "budget": budget.as_json(parts)}
    return _core.with_run_files(profile_json, json.dumps(beside))
