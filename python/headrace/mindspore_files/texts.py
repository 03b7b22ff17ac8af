"""Parts that the readers of the files share: texts, numbers, rows of comma-separated values, JSON."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

from headrace.common.folder_files import read_file
from headrace.common.plain import error_line
from headrace.errors import FormatError

#: The profile of a day is far below this.
_MAX_BYTES = 256 << 20
#: Values of a table. As Python objects, so many take 2 GB.
_MAX_VALUES = 1 << 24
_INT64 = 1 << 63
#: A value in quotes, in which "" is a quote, or a plain one; then a comma or the end of the line.
_VALUE = re.compile(r'[ \t\r]*"([^"]*(?:""[^"]*)*)"[^,\n]*(,|\n|\Z)|([^,\n]*)(,|\n|\Z)')

#: A row by its column names. Columns that the file does not have are missing.
Row = dict[str, str]


def read_text(path: str) -> str:
    """The content of a regular file; bytes that are not UTF-8 become U+FFFD."""
    return read_file(path, _MAX_BYTES).decode("utf-8-sig", "replace")


def read_json(path: str) -> Any:
    """The document of a JSON file. Raises FormatError for anything else."""
    content = read_file(path, _MAX_BYTES)
    try:
        document = json.loads(content)
        if b"\\ud" in content.lower():
            json.dumps(document, ensure_ascii=False).encode()  # half of a surrogate pair cannot be shown
    except (ValueError, RecursionError) as error:
        raise FormatError(path, getattr(error, "pos", 0), f"JSON ({error_line(error)[:80]})") from None
    return document


def member(of: object, *names: str) -> Any:
    """The value below these names; None if one of them is missing."""
    for name in names:
        of = of.get(name) if isinstance(of, dict) else None
    return of


def items(value: object) -> list[Any]:
    """A list of JSON; empty for anything else."""
    return value if isinstance(value, list) else []


def number(value: object) -> float | None:
    """A finite number, of JSON or of a text; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) and not (isinstance(value, str) and "_" in value) else None


def whole(value: object) -> int | None:
    """A whole number of 64 bits, of JSON or of a text; a fraction of JSON is cut."""
    if isinstance(value, str) and (len(value) > 20 or not value.strip().lstrip("-").isdigit()):
        return None
    found = None if number(value) is None else int(value)  # type: ignore[call-overload]
    return found if found is not None and -_INT64 <= found < _INT64 else None


def numbers(value: object) -> list[float]:
    """A list of numbers, NaN for other values; empty for anything but a list."""
    return [math.nan if (found := number(each)) is None else found for each in items(value)]


def wholes(value: object) -> list[int]:
    """The whole numbers of a list, or of the text "[1, 2, 3]"; empty for anything else."""
    if isinstance(value, str) and value.startswith("[") and value.endswith("]"):
        value = value[1:-1].split(",")
    return [found for each in items(value) if (found := whole(each)) is not None]


def lines_of(path: str) -> list[list[str]]:
    """The lines of comma-separated values, without empty lines and without blanks around plain values."""
    text = read_text(path)
    lines: list[list[str]] = []
    line: list[str] = []
    for count, found in enumerate(_VALUE.finditer(text)):
        quoted, end, value, plain_end = found.groups()
        line.append(value.strip(" \t\r") if quoted is None else quoted.replace('""', '"'))
        if quoted is None and line[-1].startswith('"'):
            raise FormatError(path, len(text[: found.start()].encode()), "a closing quote")
        if count >= _MAX_VALUES:
            raise FormatError(path, 0, f"a table of at most {_MAX_VALUES} values")
        if (end or plain_end) != ",":
            lines += [line] if line != [""] else []
            line = []
    return lines


def rows_of(path: str, needed: str, kind: str) -> tuple[list[str], list[Row]]:
    """The heading and the rows below it. Of columns with the same name the first one counts.

    needed: names of columns, with blanks between them. Raises FormatError, which says what ``kind`` of table
    was expected, if one of them is missing.
    """
    heading, *lines = lines_of(path) or [[]]
    if not heading or not set(needed.split()).issubset(heading):
        raise FormatError(path, 0, kind)
    return heading, [dict(reversed([*zip(heading, line, strict=False)])) for line in lines]


def file_problem(path: str, error: FormatError) -> str:
    """A sentence about a file that is left out, without the folders in front of its name."""
    place = f"byte {error.offset}: " if error.offset else ""
    expected = "" if error.offset is None else "expected "
    return f"{Path(path).name} could not be read: {place}{expected}{error.expected}"
