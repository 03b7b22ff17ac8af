"""Saved reports of older versions: what they told by names is told by the loader's model today."""

from __future__ import annotations

from typing import Any

from headrace.results import older_models
from headrace.results.data import as_json

_QUANTITIES = {
    ".capacity": "capacity",
    ".ordered": "order",
    "prefetch_factor": "window",
    "prefetch": "capacity",
}


def upgraded(profile: dict[str, Any]) -> dict[str, Any]:
    """``profile``, with what its version did not write yet."""
    if profile.get("model") is not None:
        return profile
    for part in ("operators", "queues"):
        parts = profile.get(part)
        for each in parts if isinstance(parts, list) else []:
            if isinstance(each, dict):
                _say_quantities(each.get("knobs"))  # today's "parameters"
    if not isinstance(profile.get("settings"), dict):
        return profile
    for model_of in older_models:
        model = model_of(profile)
        if model is not None:
            return {**profile, "model": as_json(model)}
    return profile


def _say_quantities(knobs: Any) -> None:
    for knob in knobs if isinstance(knobs, list) else []:
        if not isinstance(knob, dict) or "sets" in knob or not isinstance(knob.get("parameter"), str):
            continue
        name = knob["parameter"]
        if name == "persistent_workers":
            knob["sets"] = "keeps_workers"
        elif name.endswith("workers"):
            knob["sets"] = "workers"
        else:
            endings = (sets for ending, sets in _QUANTITIES.items() if name.endswith(ending))
            knob["sets"] = next(endings, "none")
