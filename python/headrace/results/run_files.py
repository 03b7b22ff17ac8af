"""What lies beside a segment in its run folder and belongs into its reports: findings, budget, tokens."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from headrace import _core
from headrace.results import budget, budget_file, findings, tokens, tokens_file


def with_run_files(profile_json: str, run: str, image: _core.SegmentImage | None) -> str:
    """A profile with what was found wrong, and with where the run's time went.

    run: its folder; "": none. image: of the segment that the profile is from; None: there is no budget.
    """
    for write in (*findings.before_reading, *budget_file.before_reading, *tokens_file.before_reading):
        write()
    watched = bool(run) and findings.was_watched(run)
    has_budget = bool(run) and image is not None and budget.has_budget(run)
    has_tokens = bool(run) and tokens.has_tokens(run)
    if not watched and not has_budget and not has_tokens:
        return profile_json
    profile = _core.ParsedReport(profile_json)
    found = findings.findings_in(run, profile.rank, profile.loader) if watched else []
    parts = budget.budget_in(run, profile.rank, image) if has_budget and image is not None else []
    language = None
    if has_tokens:
        step_s = json.loads(profile_json)["sink"]["step_s"]
        language = tokens.tokens_in(run, profile.rank, profile.loader, step_s)
    beside: dict[str, Any] = {"findings": findings.as_json(found), "budget": budget.as_json(parts)}
    if language is not None:
        beside["tokens"] = dataclasses.asdict(language)
    return _core.with_run_files(profile_json, json.dumps(beside))
