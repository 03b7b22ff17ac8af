"""The summary of a report: a JSON document of at most 4 kB, for scripts and for assistants that read it.

It selects from the report's own document, so every figure has the name and the meaning that docs/figures.md
gives it. Lists have the entries that matter most; ``left_out`` counts the rest.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

#: The document's version. It grows when a field is renamed, removed or changes its meaning, not when one is
#: added.
VERSION = 1
#: Bytes of the document in UTF-8, written by `to_json`.
MAX_BYTES = 4096

#: Characters of a sentence, and of a name. If the document is too large, they are shortened further.
_LENGTHS = ((240, 60), (120, 40), (60, 20))
#: Entries of each list, before the document is fitted; in the order in which they lose their last ones then.
_MAX = {
    "windows": 6,
    "settings": 12,
    "queues": 6,
    "ranks": 8,
    "loaders": 6,
    "evidence": 6,
    "operators": 8,
    "risks": 3,
    "findings": 4,
    "advice": 3,
}

_STEP = ("steps", "step_s", "compute_s", "wait_share", "starved_share")
_ADVICE = ("parameter", "from", "to", "text", "code", "predicted_step_s", "low", "high", "speedup")
_VERDICT = ("kind", "operator", "cause", "confidence", "share_of_step", "reason", "next_bottleneck")


def summary(document: dict[str, Any], loaders: list[str], ranks: list[int]) -> dict[str, Any]:
    """The summary of a report's ``document``. loaders, ranks: of the whole run."""
    for sentence, name in _LENGTHS:
        made = _made(document, loaders, ranks, _Texts(sentence, name))
        if _fitted(made):
            break
    return made


def to_json(summary_: dict[str, Any]) -> str:
    """One line."""
    return json.dumps(summary_, ensure_ascii=False, separators=(",", ":"))


class _Texts:
    """Shortens what people wrote."""

    def __init__(self, sentence: int, name: int) -> None:
        self.sentence: Callable[[Any], Any] = lambda text: _cut(text, sentence)
        self.name: Callable[[Any], Any] = lambda text: _cut(text, name)


def _made(document: dict[str, Any], loaders: list[str], ranks: list[int], texts: _Texts) -> dict[str, Any]:
    profile, diagnosis = document["profile"], document["diagnosis"]
    sink = profile["sink"]
    lists: dict[str, list[Any]] = {
        "findings": [
            {"kind": one["kind"], "severity": one["severity"], "says": texts.sentence(one["says"])}
            for one in document["findings"]
        ],
        "advice": [_advice(one, texts) for one in diagnosis["advice"]],
        "risks": [
            {"risk": one["risk"], "says": texts.sentence(one["says"]), "cure": texts.sentence(one["cure"])}
            for one in diagnosis["risks"]
        ],
        "operators": [
            _operator(one, texts)
            for one in sorted(profile["operators"], key=lambda one: -(one["demand_s"] or 0))
        ],
        "queues": [_queue(one, texts) for one in profile["queues"]],
        "evidence": [texts.sentence(one["says"]) for one in diagnosis["evidence"]],
        "settings": [[texts.name(k), texts.name(v)] for k, v in sorted(profile["settings"].items())],
        "windows": [_known(one) for one in diagnosis["windows"]],
        "loaders": [texts.name(one) for one in loaders],
        "ranks": ranks,
    }
    verdict = {key: diagnosis[key] for key in _VERDICT} | {"headroom_step_s": diagnosis["headroom_step_s"]}
    for key in ("operator", "next_bottleneck"):
        verdict[key] = texts.name(verdict[key])
    verdict["reason"] = texts.sentence(verdict["reason"])
    return {
        "summary": VERSION,
        "loader": texts.name(document["loader"]),
        "rank": document["rank"],
        "verdict": _known({"says": texts.sentence(diagnosis["summary"]), **verdict}),
        "step": _known(
            {key: sink[key] for key in _STEP}
            | {"getnext_wait_s": sink["getnext_wait"]["mean_s"], "elapsed_s": profile["elapsed_s"]}
        ),
        **{key: entries[: _MAX[key]] for key, entries in lists.items()},
        "left_out": {
            key: len(entries) - _MAX[key] for key, entries in lists.items() if len(entries) > _MAX[key]
        },
    }


def _fitted(made: dict[str, Any]) -> bool:
    """Shortens the lists until the document is small enough. False if even its least is too large."""
    while len(to_json(made).encode()) > MAX_BYTES:
        # Twos first: one entry of everything says more than all of one thing.
        list_ = next((key for least in (2, 1, 0) for key in _MAX if len(made[key]) > least), None)
        if list_ is None:
            return False
        made[list_].pop()
        made["left_out"][list_] = made["left_out"].get(list_, 0) + 1
    return True


def _advice(one: dict[str, Any], texts: _Texts) -> dict[str, Any]:
    kept = {key: one[key] for key in _ADVICE}
    for key in ("text", "code"):
        kept[key] = texts.sentence(kept[key])
    for key in ("parameter", "from", "to"):
        kept[key] = texts.name(kept[key])
    return _known(kept)


def _operator(one: dict[str, Any], texts: _Texts) -> dict[str, Any]:
    named = {"name": texts.name(one["name"]), "kind": one["kind"], "runs_in": one["executor"]}
    return _known(named | {"workers": one["workers"], "demand_s": one["demand_s"], "states": one["states"]})


def _queue(one: dict[str, Any], texts: _Texts) -> dict[str, Any]:
    ends = {"name": one["name"], "from": one["from"], "to": one["to"]}
    levels = {key: one[key] for key in ("capacity", "mean", "empty_share", "full_share")}
    return _known({key: texts.name(name) for key, name in ends.items()} | levels)


def _known(one: dict[str, Any]) -> dict[str, Any]:
    """Without what is not known or empty; numbers with four digits."""
    return {key: _rounded(value) for key, value in one.items() if value not in (None, "")}


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return _known(value)
    return float(f"{value:.4g}") if isinstance(value, float) else value


def _cut(text: Any, most: int) -> Any:
    return f"{text[: most - 1]}…" if isinstance(text, str) and len(text) > most else text
