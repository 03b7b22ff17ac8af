"""Whether this Headrace records. On Linux it does; elsewhere it reads what was recorded there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from headrace import _core
from headrace.errors import Error

#: The native module has the half that records, or has not.
RECORDS = _core.RECORDS


def require_recording(what: str) -> None:
    """Raises Error where this Headrace only reads. what: the call or module that records."""
    if not RECORDS:
        raise Error(
            f"{what} needs Linux: here Headrace reads what was recorded there (Report.load, Trace.load, "
            "headrace report, trace, view, cluster, timeline)"
        )


def refusal(what: str) -> Callable[..., NoReturn]:
    """Stands where the function or class ``what`` is missing; raises Error when it is called."""

    def refuse(*args: Any, **keywords: Any) -> NoReturn:
        require_recording(what)
        raise AssertionError(f"{what} is not missing")

    return refuse
