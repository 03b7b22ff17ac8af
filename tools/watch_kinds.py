"""Write the tables of kinds in the docs, and the kinds that reports accept, from the rules.

python tools/watch_kinds.py          # or `make figures`, after a change to a rule
python tools/watch_kinds.py --check  # exit 1 where one of the files is out of date
"""

from __future__ import annotations

import inspect
import re
import sys

from written import ROOT, write_or_check

from headrace.watch import batches  # noqa: F401 - its rules are in the table once imported
from headrace.watch.rules import RULES
from headrace.watch.tensors import rules  # noqa: F401

PAGE = ROOT / "docs/watch.md"
#: By table of the page: what its rules need.
TABLES = (("fields", "epochs", "loop"), ("tensors",))
KINDS = ROOT / "python/headrace/results/findings.py"
TABLE = re.compile(r"(?<=\| kind \| what it is \| silent on \|\n\|---\|---\|---\|\n)(?:\|.*\n)*")


def with_tables(page: str) -> str:
    needs = iter(TABLES)
    return TABLE.sub(lambda _: "".join(rows_of(next(needs))), page)


def rows_of(needs: tuple[str, ...]) -> list[str]:
    rows = []
    for one in RULES.values():
        if one.needs in needs:
            # First what the rule finds, then what it is silent on.
            what, _, silent = inspect.cleandoc(one.holds.__doc__ or "").partition("\n\n")
            texts = (" ".join(text.split()).rstrip(".") for text in (what, silent))
            rows.append(f"| `{one.kind}` | {' | '.join(texts)} |\n")
    return rows


def with_kinds(module: str) -> str:
    """`ranks_overlap` is no rule: it is found between the files of ranks."""
    head, rest = module.split("KINDS = frozenset(\n    (\n")
    _, tail = rest.split("    )\n)\n", 1)
    kinds = "".join(f'        "{kind}",\n' for kind in [*RULES, "ranks_overlap"])
    return f"{head}KINDS = frozenset(\n    (\n{kinds}    )\n)\n{tail}"


if __name__ == "__main__":
    written = {PAGE: with_tables(PAGE.read_text("utf-8")), KINDS: with_kinds(KINDS.read_text("utf-8"))}
    sys.exit(write_or_check(written))
