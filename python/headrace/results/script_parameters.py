"""The parameters of a script: those of its command line, and those that it names itself.

Run folders are shared, so a value is kept only if it is a number, a short word, or a path under a name that
holds paths. Of all other parameters, and of those named like a secret, only the name is kept.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

from headrace.common.folder_files import read_file, replace_file
from headrace.common.handlers import let_through
from headrace.errors import Error

#: In the place of a value that is not kept.
HIDDEN = "..."
_MAX_BYTES = 1 << 20
_MAX_PARAMETERS = 200
_MAX_DEPTH = 4
#: Longer words are sentences or tokens.
_MAX_WORD = 32
#: A 64-bit integer has 20 digits, a float 24 characters.
_MAX_NUMBER = 24
_MAX_VALUE = 200
#: Share of letters that follow one of the other case: a third in camel case, half in random letters.
_MAX_SWITCHES = 0.4
#: One word of a name, in lower case, that stands for a secret. Not: monkey, tokens, tokenizer, author.
_SECRET = re.compile(
    r"pass\d*|pa?s?wd?\d*|psk|hmac|[th]?otp|mfa|cvv|cvc|kennwort|pat|pin|conn|dsn|sas|sig|ssh|pem|jwt|creds?|certs?|certificates?|salt|session\w*"
    r"|.*(?<!mon)(?<!don)(?<!tur)(?<!hoc)keys?|\w*(api|access)key\w*|\w*tok|\w*token(?!iz|s$)\w*|\w*secret\w*"
    r"|\w*passw\w*|\w*pass(phrase|code)\w*|\w*auth(?!ors?$)\w*|\w*credential\w*|\w*cookies?|\w*bearer\w*"
    r"|\w*hooks?|\w*headers?|\w*phrase|mnemonic\w*|connection(?!s$)\w*|signature|private\w*"
)
_OF_PATHS = re.compile(
    r"caches?|checkpoints?|ckpts?|cfg|confi?g?|datas?|datasets?|dirs?|directory|files?|folders?|images?|labels?"
    r"|logs?|(log|out|work)dir|models?|outs?|outputs?|paths?|pretrained|resume|root|runs?|saves?|shards?|tests?"
    r"|train|val|weights"
)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,59}")
_NUMBER = re.compile(
    r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?[a-z%]{0,3}|\d+(x\d+)+|[-+]?(inf|nan)", re.IGNORECASE | re.ASCII
)
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_+.-]*")
#: How services begin their tokens.
_TOKEN = re.compile(
    r"(hf|gh[a-z]|github_pat|glpat|sk|pk|rk|xox[a-z]|akia|asia|aiza|ya29|eyj|npm|pypi|dckr|dop|shp\w*|sg)[_.-]"
    r"|akia|asia|aiza|eyj",
    re.IGNORECASE,
)
_RUN = re.compile(r"[A-Za-z0-9]{16,}")
_URL = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*://)?(?P<user>[^/@]*@)?(?P<path>[^?#]*)", re.IGNORECASE)
_PART = re.compile(r"[\w+.~*{},-]*(:\d{1,5})?")
_OPTION = re.compile(r"(--(?P<name>[A-Za-z][\w.-]*)|-(?P<short>[A-Za-z]{1,3}))(=(?P<value>.*))?", re.DOTALL)
_ASSIGNED = re.compile(r"\+{0,2}(?P<name>[A-Za-z_][\w.]*)=(?P<value>.*)", re.DOTALL)


def of_command_line(arguments: Sequence[str]) -> dict[str, str]:
    """``--lr 0.1``, ``--lr=0.1``, ``lr=0.1``, ``--amp``: by name, without dashes; as `cleaned` shows them."""
    found: dict[str, str] = {}
    waiting = ""
    for argument in arguments:
        option = _OPTION.fullmatch(argument)
        if option:
            waiting = (option["name"] or option["short"]).replace("-", "_")
            found[waiting] = "True" if option["value"] is None else option["value"]
            waiting = waiting if option["value"] is None else ""
        elif waiting:
            found[waiting] = argument
            waiting = ""
        elif assigned := _ASSIGNED.fullmatch(argument):
            found[assigned["name"]] = assigned["value"]
    return cleaned(found)


def cleaned(parameters: Mapping[str, Any]) -> dict[str, str]:
    """As texts that a table can show, those inside of mappings and pairs by their names with dots between."""
    return dict(islice(_flat("", parameters, _MAX_DEPTH), _MAX_PARAMETERS))


def _flat(name: str, value: Any, depth: int) -> Iterator[tuple[str, str]]:
    if name and (not _NAME.fullmatch(name) or _is_mixed(name)):
        return  # the name itself may be a secret
    inside = _named(value)
    if inside is None or depth == 0:
        yield name, HIDDEN if _is_secret(name) else _shown(name, value)
        return
    for key, one in inside[:_MAX_PARAMETERS]:
        if isinstance(key, (str, int)):
            yield from _flat(f"{name}.{key}" if name else str(key), one, depth - 1)


def _named(value: Any) -> list[tuple[Any, Any]] | None:
    """Names and values of a mapping, or of a list of pairs."""
    if isinstance(value, Mapping):
        return list(value.items())
    is_pairs = isinstance(value, (list, tuple)) and value and all(map(_is_pair, value))
    return list(value) if is_pairs else None


def _is_pair(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and len(value) == 2 and isinstance(value[0], str)


def _words(name: str) -> list[str]:
    return re.split(r"[^a-z0-9]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())


def _is_secret(name: str) -> bool:
    words = _words(name)
    is_pinned = "pin" in words and "memory" in words
    return not is_pinned and any(_SECRET.fullmatch(word) for word in words)


def _shown(name: str, value: Any) -> str:
    try:
        if isinstance(value, (list, tuple)):
            nested = (list, tuple, Mapping)
            items = [HIDDEN if isinstance(one, nested) else _shown(name, one) for one in value[:_MAX_VALUE]]
            text = ",".join(items)
        else:
            text = os.fspath(value) if isinstance(value, os.PathLike) else str(value)
    except Exception as error:  # of a class of the user's
        let_through(error)
        return HIDDEN
    if len(text) > _MAX_VALUE:
        return HIDDEN
    if all(map(_is_harmless, re.split(", ?", text.strip("[]()")))):
        return text
    is_path = any(map(_OF_PATHS.fullmatch, _words(name)))
    return _path(text) if is_path else HIDDEN


def _is_harmless(text: str) -> bool:
    if _NUMBER.fullmatch(text):
        return len(text) <= _MAX_NUMBER
    is_word = _WORD.fullmatch(text) is not None and len(text) <= _MAX_WORD
    return text in ("", HIDDEN) or (is_word and not _is_token(text))


def _is_token(text: str) -> bool:
    """How generated secrets look: a service's prefix, or a long mix of letters and digits, or of cases."""
    switches = (
        sum(a.isupper() != b.isupper() for a, b in pairwise(one)) / len(one) for one in _RUN.findall(text)
    )
    return _TOKEN.match(text) is not None or _is_mixed(text) or any(one > _MAX_SWITCHES for one in switches)


def _is_mixed(text: str) -> bool:
    return any(not one.isalpha() and not one.isdecimal() for one in _RUN.findall(text))


def _path(text: str) -> str:
    """A path or a URL without user, password and query; parts that may be secrets are hidden."""
    url = _URL.match(text)
    assert url is not None  # every text has a beginning that fits
    parts = url["path"].split("/")
    kept = [one if _PART.fullmatch(one) and not _is_token(one) else HIDDEN for one in parts]
    return (url["scheme"] or "") + "/".join(kept)


def _file(run: str, rank: int) -> Path:
    return Path(run) / f"rank{rank}.params.json"


def write(run: str, rank: int, parameters: dict[str, str]) -> None:
    """Adds to what the run folder has; raises OSError where that cannot be written."""
    known = {**read(run, rank), **parameters}
    replace_file(str(_file(run, rank)), json.dumps(known))


def read(run: str | os.PathLike[str], rank: int = 0) -> dict[str, str]:
    """The parameters kept in a run folder; empty if there are none or the file is damaged."""
    try:
        known = json.loads(read_file(_file(os.fspath(run), rank), _MAX_BYTES))
    except (Error, OSError, ValueError, RecursionError):
        return {}
    return cleaned(known) if isinstance(known, dict) else {}
