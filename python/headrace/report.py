"""`Report`, and the plain objects that it consists of: ``from headrace.report import Profile, Advice``."""

from typing import Any

from headrace.results import report as _report
from headrace.results.report import Report as Report


def __getattr__(name: str) -> Any:
    return getattr(_report, name)
