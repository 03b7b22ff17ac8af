"""`Tables`: what the files of another profiler hold beside the loader's profile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from headrace import mindspore_files
from headrace.errors import UsageError
from headrace.traces.table import Table


class Tables(Mapping[str, Table]):
    """Tables by name, each read when it is asked for."""

    def __init__(self, folder: str | None, rank: int) -> None:
        self._folder = folder
        self._rank = rank
        self._names = [] if folder is None else mindspore_files.table_names(folder, rank)

    def __getitem__(self, name: str) -> Table:
        if name not in self._names:
            raise KeyError(name)
        return self.query(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def query(self, name: str, *, search: str = "", group_by: str = "", sort_by: str = "") -> Table:
        """Rows of a table in which a text contains ``search`` (in any case), in groups of equal values of the
        column ``group_by`` (times and counts are added), sorted by a column, largest first.

        Raises UsageError for a table or column that there is not, FormatError if its file is damaged.
        """
        if self._folder is None:
            raise UsageError(f"no table {name}: the report was not read from a folder of another profiler")
        return mindspore_files.table(self._folder, self._rank, name, search, group_by, sort_by)
