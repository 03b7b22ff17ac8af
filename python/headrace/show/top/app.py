"""The terminal view."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from rich.text import Text

from headrace.common.plain import error_line, plain
from headrace.errors import Error, UsageError
from headrace.results.library import ReportState
from headrace.results.sentences import advice, cost, faults, live_lines, risks, share, verdict
from headrace.show.top import words
from headrace.show.top.followed import Followed

try:
    from textual.app import App, ComposeResult
    from textual.binding import Binding, BindingType
    from textual.containers import VerticalScroll
    from textual.events import DescendantFocus
    from textual.widgets import DataTable, Footer, Static
except ImportError as missing:
    raise UsageError(f"headrace top needs {missing.name}: pip install 'headrace[top]'") from None

#: Rows of a table; the most important ones come first.
_MAX_ROWS = 64


class Top(App[None]):
    """Reads the run every ``every_s`` in a thread of its own, and shows what it found."""

    TITLE = "headrace top"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #who { text-style: bold; background: $panel; padding: 0 1; }
    #said, #waits { padding: 0 1; }
    #waits { color: $accent; }
    DataTable { height: auto; max-height: 60%; margin: 1 0 0 0; }
    #explained { dock: bottom; background: $panel; padding: 0 1; height: 1; margin: 0 0 1 0; }
    .none { display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "quit"),
        Binding("s", "sort", "sort"),
        Binding("f", "freeze", "freeze"),
        Binding("r", "next_rank", "next rank"),
        Binding("l", "next_loader", "next loader"),
    ]

    def __init__(self, followed: Followed, every_s: float = 1.0) -> None:
        super().__init__()
        self._followed = followed
        self._every_s = every_s
        self._state: ReportState | None = None
        self._frozen = False
        self._problem = ""
        self._who, self._said, self._waits, self._explained = (
            Static(id=name, markup=False) for name in ("who", "said", "waits", "explained")
        )
        self._tables: dict[str, DataTable[Text]] = {
            name: DataTable(id=name, classes="none", cursor_type="cell", zebra_stripes=True)
            for name in _COLUMNS
        }
        #: Column by which operators and queues are sorted; None: the order of the data flow.
        self._sorted: dict[str, int | None] = dict.fromkeys(_COLUMNS)

    def compose(self) -> ComposeResult:
        yield self._who
        with VerticalScroll():
            yield self._said
            yield self._waits
            yield from self._tables.values()
        yield self._explained
        yield Footer()

    def on_mount(self) -> None:
        for name, columns in _COLUMNS.items():
            self._tables[name].add_columns(*(column.title for column in columns))
        self._tables["operators"].focus()
        self._read()
        self.set_interval(self._every_s, self._read)

    def _read(self) -> None:
        if not self._frozen:
            self.run_worker(self._read_now, thread=True, exclusive=True, exit_on_error=False)

    def _read_now(self) -> None:
        """In a thread: a run of many workers takes some milliseconds."""
        try:
            state, problem = self._followed.state(), ""
        except (Error, OSError) as error:
            state, problem = None, error_line(error)
        self.call_from_thread(self._found, state, problem)

    def _found(self, state: ReportState | None, problem: str) -> None:
        self._state = state or self._state
        self._problem = problem
        self._show()

    # --- what is shown ---

    def _show(self) -> None:
        state = self._state
        if state is None:
            self._who.update(plain(self._problem) or "reading")
            return
        report = state.report
        status = plain(self._problem) or ("frozen" if self._frozen else state.status_text)
        who = f"{plain(report.loader)}   rank {report.rank} of {len(report.ranks)}   {status}"
        self._who.update(f"{who}   {plain(self._followed.name)}")
        self._said.update(_said(state))
        waits = self._followed.waits()
        known = [one for one in waits if one is not None]
        now = f" {share(known[-1])} now" if known else ""
        self._waits.update(f"waits, last minute {words.sparkline(waits)}{now}")
        for name, found in (
            ("operators", report.profile.operators),
            ("queues", report.profile.queues),
            ("ranks", words.ranks(report)),
        ):
            self._fill(name, found)

    def _fill(self, name: str, found: Sequence[Any]) -> None:
        """In place, so that the cursor stays."""
        table = self._tables[name]
        table.set_class(not found, "none")
        cells = words.rows(found, _COLUMNS[name], self._sorted[name], _MAX_ROWS)
        if len(cells) != table.row_count:
            cursor = table.cursor_coordinate
            table.clear()
            for row in cells:
                table.add_row(*map(Text, row))
            table.move_cursor(row=cursor.row, column=cursor.column)
            return
        for at, row in enumerate(cells):
            for column, text in enumerate(row):
                if table.get_cell_at((at, column)).plain != text:  # type: ignore[arg-type]
                    table.update_cell_at((at, column), Text(text), update_width=True)  # type: ignore[arg-type]

    def on_data_table_cell_highlighted(self, event: DataTable.CellHighlighted) -> None:
        if event.data_table.has_focus:
            self._explain(event.data_table)

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        if isinstance(event.widget, DataTable):
            self._explain(event.widget)

    def _explain(self, table: DataTable[Text]) -> None:
        column = _COLUMNS[table.id or ""][table.cursor_coordinate.column]
        self._explained.update(words.explained(column))

    # --- keys ---

    def action_sort(self) -> None:
        """By the column of the cursor; once more: in the order of the data flow again."""
        table = self.focused
        if isinstance(table, DataTable) and table.id in self._sorted:
            column = table.cursor_coordinate.column
            self._sorted[table.id] = None if self._sorted[table.id] == column else column
            self._show()

    def action_freeze(self) -> None:
        self._frozen = not self._frozen
        self._show()
        self._read()

    def action_next_rank(self) -> None:
        if self._state is not None:
            self._followed.next_rank(self._state)
            self._read()

    def action_next_loader(self) -> None:
        if self._state is not None:
            self._followed.next_loader(self._state)
            self._read()


_COLUMNS = {"operators": words.OPERATORS, "queues": words.QUEUES, "ranks": words.RANKS}


def _said(state: ReportState) -> Text:
    """The state now, verdict, cost, advice and faults to come."""
    report = state.report
    said = Text()
    for at, line in enumerate(live_lines(state.live)):
        said.append(f"{line}\n", style="bold red" if at else "bold")
    color = {"input_bound": "bold dark_orange", "not_input_bound": "bold green"}
    said.append(verdict(report), style=color.get(report.diagnosis.kind, "bold"))
    said.append(f"\n{cost(report.profile)}")
    for one in advice(report):
        said.append(f"\ndo: {one}")
    for one in risks(report):
        said.append(f"\nrisk, {one}", style="bold red")
    for one in faults(report):
        said.append(f"\nfault, {one}", style="bold red")
    return said
