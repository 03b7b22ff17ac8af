"""Write the modules after whose import loaders are recorded into the import hook of `headrace run`.

    python tools/loader_modules.py          # after a change to a `RECORDED_AFTER`
    python tools/loader_modules.py --check  # exit 1 if the hook is out of date

Each loader in python/headrace/loaders declares its own. The hook must not import them: it runs in every
interpreter that the user's program starts.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys

from written import ROOT, write_or_check

from headrace import loaders

HOOK = ROOT / "python/headrace/run/inject/_headrace_import_hook.py"


def with_table(hook: str) -> str:
    """The hook's text with the table of today."""
    rows = []
    for found in pkgutil.iter_modules(loaders.__path__):
        adapter = importlib.import_module(f"headrace.loaders.{found.name}")
        for module, beside in getattr(adapter, "RECORDED_AFTER", {}).items():
            rows.append(f'    "{module}": ("{found.name}", "{beside}"),\n')
    head, _, rest = hook.partition("LOADER_MODULES = {\n")
    _, _, tail = rest.partition("}\n")
    return f"{head}LOADER_MODULES = {{\n{''.join(rows)}}}\n{tail}"


if __name__ == "__main__":
    sys.exit(write_or_check({HOOK: with_table(HOOK.read_text(encoding="utf-8"))}))
