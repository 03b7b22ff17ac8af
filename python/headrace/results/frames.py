"""Parts of a report as data frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.errors import UsageError

if TYPE_CHECKING:
    import pandas


def frame(document: dict[str, Any], part: str) -> pandas.DataFrame:
    """A list of a report's ``document``. Raises UsageError if there is no such list, or no pandas."""
    try:
        import pandas
    except ImportError:
        raise UsageError("to_pandas needs pandas: pip install pandas") from None
    profile, diagnosis = document["profile"], document["diagnosis"]
    rows = {
        "operators": [_flat(one) for one in profile["operators"]],
        "workers": [
            {"operator": operator["name"], **_flat(worker)}
            for operator in profile["operators"]
            for worker in operator["per_worker"]
        ],
        "queues": [_flat(one) for one in profile["queues"]],
        "windows": [_flat(one) for one in profile["windows"]],
        "stall_ledger": [_flat(one) for one in profile["stall_ledger"]],
        "longest_waits": [_flat(one) for one in profile["sink"]["longest_waits"]],
        "steps": [_flat(one) for one in document["steps"]["per_step"]],
        "advice": [_flat(one) for one in diagnosis["advice"]],
    }
    if part not in rows:
        raise UsageError(f"a report has no part {part!r}; its parts are: {', '.join(rows)}")
    return pandas.DataFrame(rows[part])


def _flat(row: dict[str, Any], before: str = "") -> dict[str, Any]:
    """Structs as columns ``states.busy``; lists are left out."""
    flat: dict[str, Any] = {}
    for key, value in row.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{before}{key}.")
        elif not isinstance(value, list):
            flat[before + key] = value
    return flat
