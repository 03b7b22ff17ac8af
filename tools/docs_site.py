"""Hooks of mkdocs.yml: pages of the site whose text stands outside docs/, and links that lead out of docs/.

Pages in docs/ link to other files of the repository by relative paths, so that they work on a code host. The
site has no such files: their links become links to a page of the site where there is one, else the path.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
CPP = ROOT / "build" / "reference" / "cpp"

#: Files of the repository that are pages of the site.
ROOT_PAGES = {
    "CHANGELOG.md": "project/changelog.md",
    "CODE_OF_CONDUCT.md": "project/code_of_conduct.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
}

PYTHON = """# Python

Every public name of the package, from its docstrings. In a Python session `help(hr.wrap)` shows the same.
"""
#: In the order in which a user meets them. Of the modules, all that is public is shown.
NAMES = [
    *["wrap", "load", "Report", "operator", "get_next", "session", "Session", "Queue"],
    *["tune", "Tuned", "ceiling", "compare", "Comparison"],
    *["annotate", "step", "trace_steps", "trace_handler", "to_device", "Trace", "Table", "Cluster", "Fleet"],
    "MemorySnapshot",
    *["source", "generator", "Pipeline", "native_body", "open_device", "HostDevice", "DeviceArray"],
    *["Error", "UsageError", "FormatError", "SegmentError", "DeviceError", "WatchError"],
]
MODULES = [
    *["headrace.watch.tensors.watching", "headrace.export", "headrace.results.timeline", "headrace.job"],
    "headrace_pytest",
]

LINK = re.compile(r"\]\(([^)\s:#]+)(#[^)\s]*)?\)")


def python_page() -> str:
    names = [f"::: headrace.{name}" for name in NAMES]
    return "\n\n".join([PYTHON, *names, *(f"::: {module}" for module in MODULES)]) + "\n"


def on_files(files: Any, config: Any) -> Any:
    files.append(File.generated(config, "reference/python.md", content=python_page()))
    for source, page in ROOT_PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text(encoding="utf-8")))
    for path in sorted(CPP.rglob("*")):  # what doxygen wrote
        if path.is_file():
            name = f"cpp/{path.relative_to(CPP)}"
            files.append(File.generated(config, name, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The page with its links out of docs/ replaced."""
    here = page.file.src_uri
    source = next((name for name, uri in ROOT_PAGES.items() if uri == here), None)
    folder = (ROOT / source if source else DOCS / here).parent

    def replaced(link: re.Match[str]) -> str:
        target = Path(os.path.normpath(folder / link[1]))
        if not target.exists() or ROOT not in target.parents:
            return link[0]  # mkdocs says that it leads nowhere
        name = str(target.relative_to(ROOT))
        if name in ROOT_PAGES:
            uri = ROOT_PAGES[name]
        elif DOCS in target.parents:
            uri = str(target.relative_to(DOCS))
        else:
            return f"] (`{name}`)"
        return f"]({os.path.relpath(uri, Path(here).parent)}{link[2] or ''})"

    if here == "reference.md":
        markdown += "\n[**Every header, with its classes and functions**](cpp/index.html)\n"
    text = LINK.sub(replaced, markdown)
    text = re.sub(r"\[`?([^\[\]`]+)`?\] \(`\1`\)", r"`\1`", text)
    return re.sub(r"\[([^\[\]]+)\] \((`[^`]+`)\)", r"\1 (\2)", text)
