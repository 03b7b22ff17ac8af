"""What the names in a function's source stand for while it runs."""

from __future__ import annotations

import functools
import linecache
import re
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any, NamedTuple

from headrace import _core
from headrace.common.own_attributes import own_attribute
from headrace.loaders.kit.names import is_the_users

_PATH = r"(?<![\w.])((?:[^\W\d]\w*\.)*[^\W\d]\w*)"
#: ``batches.get(...)``, ``self.batches.put_nowait(...)``, and any call.
GET = re.compile(_PATH + r"\.get(?:_nowait)?\s*\(")
CALLED = re.compile(_PATH + r"\s*\(")
PUT = re.compile(_PATH + r"\.put(?:_nowait)?\s*\(")


class Used(NamedTuple):
    """An object that a function uses."""

    path: str  #: as the source names it
    line: int
    found: Any


def used(pattern: re.Pattern[str], frame: FrameType, kind: Any) -> Iterator[Used]:
    """The objects of exactly this class that stand where the pattern has its group, in a user's function."""
    for path, line in _paths(pattern, frame.f_code):
        found = _value(path, frame)
        if type(found) is kind:
            yield Used(path, line, found)


@functools.lru_cache(maxsize=1024)
def _paths(pattern: re.Pattern[str], code: CodeType) -> tuple[tuple[str, int], ...]:
    if not is_the_users(code.co_filename):
        return ()
    lines = sorted({line for _, _, line in code.co_lines() if line is not None})
    return tuple(
        (path, line) for line in lines for path in pattern.findall(linecache.getline(code.co_filename, line))
    )


def _value(path: str, frame: FrameType) -> Any:
    """What a path of names stands for, without a call of anything of the user's."""
    first, *attributes = path.split(".")
    found = _core.local_variables(frame).get(first, frame.f_globals.get(first))
    for name in attributes:
        found = own_attribute(found, name)
    return found
