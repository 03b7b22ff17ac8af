"""`Table`: the result of an analysis of device traces, in columns of C++ memory."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from headrace import _core
from headrace.errors import UsageError

if TYPE_CHECKING:
    import pandas

#: Rows of a printed table; the rest is counted below it.
_SHOWN = 30


class Table:
    """Named columns of one length.

    ``print(table)`` shows it, ``table.column("idle_s")`` is a NumPy view, ``table.to_pandas()`` a data frame.
    It is an Arrow stream (``__arrow_c_stream__``), so ``pyarrow.table(table)``, ``polars.from_arrow`` and
    DuckDB take it without a copy. Columns in seconds end in ``_s``. Immutable.
    """

    def __init__(self, columns: _core.Columns) -> None:
        self._columns = columns

    @classmethod
    def of_rows(
        cls, names: Iterable[str], rows: Sequence[Mapping[str, Any]], notes: Iterable[str] = ()
    ) -> Table:
        """The columns ``names`` of ``rows``; a number that a row does not have, or has as None, is NaN."""
        columns = [
            (name, [math.nan if row.get(name) is None else row[name] for row in rows]) for name in names
        ]
        return cls(_core.Columns.of(columns, list(notes)))

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return self._columns.names

    @property
    def notes(self) -> list[str]:
        """Remarks for the reader, a sentence each."""
        return self._columns.notes

    def describe(self) -> Table:
        """The columns, their units, and how to read those whose name does not say it."""
        told = [list(each) for each in zip(*self._columns.describe(), strict=True)] or [[], [], []]
        return Table(_core.Columns.of(list(zip(("column", "unit", "how_to_read"), told, strict=True)), []))

    def __len__(self) -> int:
        return self._columns.rows

    def __bool__(self) -> bool:
        return True

    def column(self, name: str) -> Any:
        """The values of a column: numbers as a read-only view of its memory, texts as an array of ``str``.

        Raises UsageError if there is no such column.
        """
        numpy = _numpy()
        if self._columns.is_text(name):
            return numpy.array(self._columns.values(name), dtype=object)
        return self._columns.view(name)

    def to_dict(self) -> dict[str, list[Any]]:
        """Each column as a list. A missing number is NaN."""
        return {name: self._columns.values(name) for name in self.columns}

    def rows(self) -> Iterator[dict[str, Any]]:
        """The rows, each as a dict of Python objects."""
        names = self.columns
        for values in zip(*self.to_dict().values(), strict=True):
            yield dict(zip(names, values, strict=True))

    def to_pandas(self) -> pandas.DataFrame:
        """A data frame with its own memory. Raises UsageError if pandas is not installed."""
        try:
            import pandas
        except ImportError:
            raise UsageError("to_pandas needs pandas: pip install pandas") from None
        return pandas.DataFrame({name: self.column(name) for name in self.columns}, copy=True)

    def json_rows(self, most: int | None = None) -> list[dict[str, Any]]:
        """The rows, at most so many, as JSON has them. A missing number is None."""
        return [{k: _json_value(v) for k, v in row.items()} for row in islice(self.rows(), most)]

    def to_json(self, indent: int | None = None) -> str:
        """A list of rows. A missing number is null."""
        import json

        return json.dumps(self.json_rows(), indent=indent)

    def to_csv(self) -> str:
        """Comma-separated, with a header line. A missing number is empty."""
        import csv
        import io

        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(self.columns)
        for row in self.rows():
            writer.writerow("" if _json_value(value) is None else value for value in row.values())
        return out.getvalue()

    def to_text(self, width: int = 100, max_rows: int | None = _SHOWN) -> str:
        """For people: times with their units, at most ``max_rows`` rows, long names cut in their middle."""
        from headrace.traces.table_text import table_text

        return table_text(self, width, max_rows)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._columns.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        from headrace.traces.table_text import table_html

        return table_html(self, _SHOWN)


@cache
def named_tables(of_memory: bool) -> dict[str, tuple[str, str]]:
    """The analysis of each table that can be had by its name, and the part of the answer ("": all of it)."""
    declared = _core.declared_tables()[of_memory]
    found = {table: (name, part) for name, _, _, tables, _ in declared for part, table, _ in tables if table}
    # `Trace.table` sets the option that makes it of the host.
    return found if of_memory else {**found, "host_annotations": found["annotations"]}


class Analyses:
    """Base of the classes with a method for each declared analysis (tools/native_files.py)."""

    _of_memory = False

    def _made(self, name: str, **options: Any) -> list[Table]:
        """The tables of a declared analysis. Without ``steps``, those of the whole trace."""
        if options.get("steps", ()) is None:
            del options["steps"]
        for option, value in options.items():
            if isinstance(value, Iterable) and not isinstance(value, str):
                options[option] = list(value)
        return list(map(Table, self._columns(name, options)))

    def _columns(self, name: str, options: dict[str, Any]) -> tuple[_core.Columns, ...]:
        raise NotImplementedError

    def table(self, name: str, **options: Any) -> Table:
        """The table of an analysis by its name, with the options of its method. Raises UsageError if there is
        no such table.
        """
        tables = named_tables(self._of_memory)
        if name not in tables:
            raise UsageError(f"no table {name!r}; there are {', '.join(sorted(tables))}")
        method, part = tables[name]
        answer = getattr(self, method)(**options)
        found = getattr(answer, part) if part else answer
        table: Table = found() if callable(found) else found
        return table


def _json_value(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _numpy() -> Any:
    try:
        import numpy
    except ImportError:
        raise UsageError("columns as arrays need numpy: pip install numpy") from None
    return numpy
