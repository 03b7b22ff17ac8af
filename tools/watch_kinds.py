"""Write the tables of kinds in docs/watch.md from the rules.

python tools/watch_kinds.py          # or `make figures`, after a change to a rule
python tools/watch_kinds.py --check  # exit 1 where one of the files is out of date
"""

from __future__ import annotations

import re
import sys

from written import ROOT, write_or_check

from headrace.watch import batches  # noqa: F401 - its rules are in the table once imported
from headrace.watch.rules import RULES

DOCS = {"docs/watch.md": ("fields", "epochs", "loop")}
TABLE = re.compile(r"(?<=\| kind \| what it is \| silent on \|\n\|---\|---\|---\|\n)(?:\|.*\n)*")


def with_table(page: str, needs: tuple[str, ...]) -> str:
    rows = [f"| `{one.kind}` | {' | '.join(one.docs)} |\n" for one in RULES.values() if one.needs in needs]
    return TABLE.sub(lambda _: "".join(rows), page)


if __name__ == "__main__":
    wanted = {
        ROOT / name: with_table((ROOT / name).read_text("utf-8"), needs) for name, needs in DOCS.items()
    }
    sys.exit(write_or_check(wanted))
