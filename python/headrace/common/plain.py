"""Texts that somebody else chose (names, paths, messages of other libraries), as they may be printed."""

from __future__ import annotations

import re

#: A recording holds 240 bytes of an operator's name; a parameter's stands behind it.
_MAX_NAME = 300
#: The parts of a URL: a name and a password before the ``@``, a key or a signature behind the ``?``.
_IN_URL = re.compile(
    r"(?P<scheme>\b[a-z][a-z0-9+.:-]*://)(?P<user>[^\s/@?#]+@)?"
    r"(?P<path>[^\s?#'\"]*)(?P<query>\?[^\s#'\"]+)?",
    re.IGNORECASE,
)


def plain(text: object) -> str:
    """``text`` with "?" for control characters, marks that turn the direction of text, and broken bytes.

    Line breaks and tabs become blanks, so a name begins no line, where a workflow takes it for a command.
    """
    found = str(text)
    if found.isprintable():
        return found
    return "".join(one if one.isprintable() else " " if one.isspace() else "?" for one in found)


def short(text: object) -> str:
    """UTF-8 of ``text``; only the beginning of what is longer than a parameter's name can be."""
    found = str(text)[: _MAX_NAME + 1].encode("utf-8", "backslashreplace").decode()
    return found if len(found) <= _MAX_NAME else f"{found[: _MAX_NAME - 3]}..."


def error_line(error: object) -> str:
    """An error, or any text, as one printable line without secrets; an error without text by its type."""
    said = " ".join(without_secrets(plain(error)).split())
    return said or type(error).__name__


def typed_error_line(error: BaseException) -> str:
    """``"KeyError: 'name'"``; the type alone for an error without text."""
    said, kind = error_line(error), type(error).__name__
    return kind if said == kind else f"{kind}: {said}"


def without_secrets(text: str) -> str:
    """URLs in ``text`` without their passwords, keys and signatures."""
    return _IN_URL.sub(_shown, text) if "://" in text else text


def _shown(url: re.Match[str]) -> str:
    user = "***@" if url["user"] else ""
    query = re.sub(r"=[^&]*", "=***", url["query"] or "")
    return f"{url['scheme']}{user}{url['path']}{query}"
