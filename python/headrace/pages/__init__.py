"""Pages as templates over plain data: each is one file without script that opens offline.

Whatever a template writes is escaped. Jinja2 is imported when the first page is written.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace import _core
from headrace.errors import UsageError

if TYPE_CHECKING:
    import jinja2


def render(template: str, whole_page: bool = True, **given: Any) -> str:
    """The page, or one ``<div>`` with its style sheet for a place in another page."""
    return _environment().get_template(f"{template}.html.j2").render(whole_page=whole_page, **given)


def markup(page: str) -> str:
    """A page or a part of one, for a place in another template: it is not escaped again."""
    from markupsafe import Markup

    return Markup(page)


@cache
def _environment() -> jinja2.Environment:
    try:
        import jinja2
    except ImportError:
        raise UsageError("a page needs jinja2: pip install jinja2") from None

    from headrace.pages import charts, graph, plots, words

    folder = Path(__file__).parent

    class Bytecode(jinja2.FileSystemBytecodeCache):
        """Beside the package's own: to compile the templates takes ten times as long as to write a page."""

        def dump_bytecode(self, bucket: Any) -> None:
            if not sys.dont_write_bytecode:
                with suppress(OSError):  # the package may be another user's
                    super().dump_bytecode(bucket)

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder / "templates"),
        bytecode_cache=Bytecode(str(folder / "__pycache__"), "template-%s.pyc"),
        autoescape=True,
        finalize=words.printable,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    functions = {
        name: each
        for module in (words, charts, graph, plots)
        for name, each in vars(module).items()
        if callable(each) and each.__module__ == module.__name__ and not name.startswith("_")
    }
    functions |= {name: getattr(_core, name) for name in ("duration", "memory_size", "percent")}
    environment.filters.update(functions)
    environment.globals.update(functions, version=_core.__version__)
    return environment
