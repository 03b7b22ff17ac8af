"""Objects that can be shown as a page of HTML."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from typing import overload


class HasPage(ABC):
    """A result with `to_html`."""

    @abstractmethod
    def _page(self) -> str:
        """The page."""

    @overload
    def to_html(self, path: str | os.PathLike[str]) -> None: ...
    @overload
    def to_html(self, path: None = None) -> str: ...
    def to_html(self, path: str | os.PathLike[str] | None = None) -> str | None:
        """One page that opens offline: written to ``path``, or returned without one.

        It contains no paths and no host name. Raises OSError if it cannot be written.
        """
        page = self._page() + "\n"
        if path is None:
            return page
        with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123 - pathlib costs 5 ms to import
            file.write(page)
        return None
