"""The parameters of a script: those of its command line, and those that it names itself."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headrace.common.folder_files import read_file
from headrace.common.plain import without_secrets
from headrace.errors import Error

_MAX_BYTES = 1 << 20
_MOST = 200
_LONGEST = 200
#: Words in the names of what is nobody's business.
_SECRET = frozenset(
    (
        *(
            "pass",
            "passwd",
            "password",
            "passphrase",
            "pw",
            "pwd",
            "secret",
            "secrets",
            "token",
            "pat",
            "auth",
        ),
        *("credential", "credentials", "apikey"),
    )
)
_KEY = re.compile(r"(api|access|secret|private|auth|ssh|encryption)[^a-z0-9]*key$|^key$", re.IGNORECASE)
#: The same inside of a value: JSON, a dict, a connection string.
_INSIDE = re.compile(
    r"(passw\w*|passphrase|pwd|secret\w*|credential\w*|(api|access|private).?key|[^a-z]token)[^a-z0-9]*[:=]",
    re.IGNORECASE,
)
_OPTION = re.compile(r"--?(?P<name>[A-Za-z][\w.-]*)(?:=(?P<value>.*))?$", re.DOTALL)
_ASSIGNED = re.compile(r"\+{0,2}(?P<name>[A-Za-z_][\w.]*)=(?P<value>.*)$", re.DOTALL)


def of_command_line(arguments: Sequence[str]) -> dict[str, str]:
    """``--lr 0.1``, ``--lr=0.1``, ``lr=0.1``, ``--amp``: by name, without dashes. Secrets are left out."""
    found: dict[str, str] = {}
    waiting = ""
    for argument in arguments:
        option = _OPTION.match(argument)
        if option:
            waiting = option["name"].replace("-", "_")
            found[waiting] = "True" if option["value"] is None else option["value"]
            waiting = waiting if option["value"] is None else ""
        elif waiting:
            found[waiting] = argument
            waiting = ""
        elif assigned := _ASSIGNED.match(argument):
            found[assigned["name"]] = assigned["value"]
    return cleaned(found)


def cleaned(parameters: dict[str, Any]) -> dict[str, str]:
    """As texts that a table can show; without secrets."""
    known = [(str(name)[:60], without_secrets(str(value))) for name, value in parameters.items()]
    kept = [(name, "(not kept)" if _INSIDE.search(value) else value[:_LONGEST]) for name, value in known]
    return dict([one for one in kept if not _is_secret(one[0])][:_MOST])


def _is_secret(name: str) -> bool:
    words = re.split(r"[^a-z0-9]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())
    return not _SECRET.isdisjoint(words) or _KEY.search(name) is not None


def _file(run: str, rank: int) -> Path:
    return Path(run) / f"rank{rank}.params.json"


def write(run: str, rank: int, parameters: dict[str, str]) -> None:
    """Adds to what the run folder has; raises OSError where that cannot be written."""
    known = {**read(run, rank), **parameters}
    path = _file(run, rank)
    temporary = path.with_suffix(f".json.{os.getpid()}")
    temporary.write_text(json.dumps(known), encoding="utf-8")
    temporary.replace(path)


def read(run: str | os.PathLike[str], rank: int = 0) -> dict[str, str]:
    """The parameters kept in a run folder; empty if there are none or the file is damaged."""
    try:
        known = json.loads(read_file(_file(os.fspath(run), rank), _MAX_BYTES))
    except (Error, OSError, ValueError, RecursionError):
        return {}
    return cleaned(known) if isinstance(known, dict) else {}
