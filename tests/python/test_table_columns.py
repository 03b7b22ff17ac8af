"""The tables of a trace have the columns that are declared, and the documentation lists them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import headrace as hr
from device_traces import TraceWriter, conformance_file, two_steps
from headrace import _core
from headrace.traces.table import Table
from headrace.traces.tables import CriticalPath

ROOT = Path(__file__).resolve().parents[2]
OF_TRACES, OF_MEMORY = _core.declared_tables()
DECLARED = {
    f"{name}.{part}".rstrip("."): columns
    for name, _, _, tables, _ in OF_TRACES
    for part, _, columns in tables
}


def tables_of(trace: hr.Trace) -> Iterator[tuple[str, set[str], Table]]:
    """Name of the declaration, optional columns that were asked for, and the table."""
    for name in ("time_breakdown", "overlap", "kernel_breakdown"):
        yield name, set(), getattr(trace, name)()
        yield name, {"device"}, getattr(trace, name)(per_device=True)
    for group_by in (["name"], ["name", "input_shapes"], ["name", "stack"]):
        yield "operators", set(group_by) - {"name"}, trace.operators(group_by)
    yield "sequences(name)", set(), trace.sequences("mm")
    yield "diff", set(), trace.diff(trace)
    for name in DECLARED:
        method, _, part = name.partition(".")
        if method.startswith("table("):  # written by profilers: tested with their files
            continue
        if method in ("diff", "operators", "sequences(name)"):
            continue
        answer = getattr(trace, method)()
        if isinstance(answer, CriticalPath) and part in ("nodes", "edges"):
            yield name, set(), getattr(answer, part)()
        elif name not in ("time_breakdown", "overlap", "kernel_breakdown"):
            yield name, set(), getattr(answer, part) if part else answer


def check(name: str, asked_for: set[str], table: Table) -> None:
    columns = [column for column in DECLARED[name] if not column[4] or column[0] in asked_for]
    described = [(column, unit, says) for column, _, unit, says, _ in columns]
    assert [tuple(row.values()) for row in table.describe().rows()] == described, name
    for column, kind, *_ in columns:
        values = table.column(column)
        assert {"integer": "i", "number": "f", "text": "O"}[kind] == values.dtype.kind, (name, column)


@pytest.mark.parametrize("ranks", [0, 1, 2])
def test_every_table_has_the_columns_that_are_declared(tmp_path: Path, ranks: int) -> None:
    for rank in range(ranks):
        two_steps(rank, late=100 * rank).write(tmp_path / f"rank{rank}.json")
    if not ranks:
        TraceWriter().host("cpu_op", "a", 0, 1).write(tmp_path / "host.json")
    for name, asked_for, table in tables_of(hr.Trace.load(tmp_path)):
        check(name, asked_for, table)


@pytest.mark.parametrize("folder", ["db_level1", "text_level2"])
def test_tables_of_a_profile_have_the_columns_that_are_declared(folder: str) -> None:
    trace = hr.Trace.load(conformance_file(f"ascend/{folder}"))
    for name in DECLARED:
        written = name.removeprefix("table(").rstrip(")")
        is_csv = folder == "text_level2" and "communication" not in written
        if name.startswith("table(") and written in trace.tables() and not is_csv:
            check(name, set(), trace.table(written))


def test_a_sentence_says_how_to_read_a_column() -> None:
    for name, columns in DECLARED.items():
        names = [column[0] for column in columns]
        assert len(set(names)) == len(names), name
        for column, _, _, says, _ in columns:
            assert not says or says.endswith("."), (name, column)


def test_each_table_can_be_had_by_its_name(tmp_path: Path) -> None:
    two_steps(0).write(tmp_path / "rank0.json")
    trace = hr.Trace.load(tmp_path)
    for name, _, _, tables, _ in OF_TRACES:
        for part, table, columns in tables:
            if table:
                asked_for = {column[0] for column in columns if column[4]}
                shown = trace.table(table).columns
                assert [c[0] for c in columns if c[0] in shown or c[0] not in asked_for] == shown, (
                    name,
                    part,
                )
    assert trace.table("kernels", memory=False).to_dict() == trace.kernels(memory=False).to_dict()
    with pytest.raises(hr.UsageError, match="no table 'secrets'"):
        trace.table("secrets")
    with pytest.raises(hr.UsageError, match="most_names cannot be 'all'"):
        trace.table("kernels", most_names="all")


def test_methods_have_the_docstrings_of_their_declarations() -> None:
    for owner, analyses in ((hr.Trace, OF_TRACES), (hr.MemorySnapshot, OF_MEMORY)):
        made = [(name, says) for name, says, _, _, is_made in analyses if is_made]
        assert len(made) > 5
        for name, says in made:
            assert " ".join((getattr(owner, name).__doc__ or "").split()) == " ".join(says.split())
