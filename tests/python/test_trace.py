"""Reading device traces into `Trace`, and its tables."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path

import pytest

import headrace as hr
from device_traces import TraceWriter, conformance_file, two_steps
from headrace.traces import files as _trace_files

np = pytest.importorskip("numpy")


def test_a_file_becomes_columns(tmp_path: Path) -> None:
    trace = hr.Trace.load(two_steps(rank=3).write(tmp_path / "a.json.gz"))
    assert trace.ranks == [3]
    events = trace.events()
    assert len(events) == 12
    assert list(events.column("name")[:2]) == ["ProfilerStep#1", "aten::mm"]
    assert events.column("start_ns")[0] == 1_000_000
    assert events.column("duration_ns").sum() == sum(e["dur"] for e in two_steps().events) * 1000
    assert trace.metadata()["distributedInfo"]["world_size"] == 2
    assert "12 events, 2 steps" in repr(trace)


def step(number: int) -> TraceWriter:
    """A profiler's cycle: one step of that number, in a file that does not say its rank."""
    trace = TraceWriter().host("user_annotation", f"ProfilerStep#{number}", 1000 * number, 1000)
    return trace.launch(number, 1000 * number + 5).kernel("gemm", number, 1000 * number + 10, 100)


@pytest.mark.parametrize(
    "name", ["rank1.step{0}.trace.json.gz", "host_77.17953688{0:02}000.pt.trace.json"], ids=["ours", "torch"]
)
def test_cycles_of_one_rank_are_one_rank(tmp_path: Path, name: str) -> None:
    for number in (9, 10, 11):
        step(number).write(tmp_path / name.format(number))
    trace = hr.Trace.load(tmp_path)
    assert trace.ranks == ([1] if name.startswith("rank1") else [0])
    assert trace.steps().column("step").tolist() == [11]
    assert "in 3 cycles: the last one is read" in trace.notes[0]
    named = hr.Trace.load(tmp_path / name.format(9))
    assert named.steps().column("step").tolist() == [9]
    assert named.notes == []


def test_merged_files_are_no_traces_of_their_own(tmp_path: Path) -> None:
    with hr.session(run=tmp_path / "run"):
        list(hr.wrap(range(10)))
    folder = tmp_path / "traces"
    folder.mkdir()
    for rank in (0, 1):
        trace = two_steps(rank).write(folder / f"rank{rank}.step7.trace.json.gz")
        hr.timeline.merge(tmp_path / "run", [trace], folder / f"rank{rank}.step7.timeline.json.gz")
    hr.timeline.merge(tmp_path / "run", [trace], folder / "merged.json")
    loaded = hr.Trace.load(folder)
    assert loaded.ranks == [0, 1]
    assert all(file.endswith("trace.json.gz") for file in loaded.files)
    assert "GetNext" in hr.Trace.load(folder / "merged.json").events().column("name")
    # A folder that holds nothing else is read all the same.
    only = tmp_path / "only"
    only.mkdir()
    (folder / "merged.json").rename(only / "merged.json")
    assert hr.Trace.load(only).ranks == [1]


def test_columns_are_views_that_outlive_the_trace(tmp_path: Path) -> None:
    starts = hr.Trace.load(two_steps().write(tmp_path / "a.json")).events().column("start_ns")
    assert starts.base is not None
    assert not starts.flags.writeable
    assert starts.max() == 2_300_000


def test_arrow_takes_a_table_as_it_is(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    trace = hr.Trace.load(two_steps().write(tmp_path / "a.json"))
    events = trace.events()
    table = pyarrow.table(events)
    assert table.column_names == events.columns
    assert table["start_ns"].to_pylist() == events.column("start_ns").tolist()
    assert table["name"].combine_chunks().to_pylist() == list(events.column("name"))
    kernels = pyarrow.table(trace.kernels())
    del trace, events
    assert kernels["name"].to_pylist() == ["gemm", "ncclDevKernel_AllReduce"]


def test_an_empty_table_crosses_to_arrow_too(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    trace = hr.Trace.load(TraceWriter().host("cpu_op", "a", 0, 1).write(tmp_path / "a.json"))
    table = pyarrow.table(trace.kernels())
    assert table.num_rows == 0
    assert "name" in table.column_names


def test_tables_convert(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    table = hr.Trace.load(two_steps().write(tmp_path / "a.json")).overlap()
    frame = table.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert frame.overlap_pct[0] == pytest.approx(25.0)
    assert table.to_dict()["communication_s"] == [pytest.approx(0.0008)]
    assert json.loads(table.to_json())[0]["overlap_pct"] == pytest.approx(25.0)
    assert table.to_csv().splitlines()[0] == ",".join(table.columns)
    assert "25.00 %" in repr(table)
    assert "<table>" in table._repr_html_()


@pytest.mark.parametrize(("correlation", "bits"), [(7, 32), (2**31 - 1, 32), (2**31, 64)])
def test_identities_are_as_wide_as_they_have_to_be(tmp_path: Path, correlation: int, bits: int) -> None:
    written = TraceWriter().launch(correlation, 0).kernel("gemm", correlation, 10, 10)
    trace = hr.Trace.load(written.write(tmp_path / "a.json"))
    column = trace.events().column("correlation")
    assert column.dtype == f"int{bits}"
    assert column.tolist() == [correlation, correlation]
    assert trace.launches().column("correlation").tolist() == [correlation]
    pyarrow = pytest.importorskip("pyarrow")
    assert pyarrow.table(trace.events())["correlation"].to_pylist() == [correlation, correlation]


def test_a_missing_figure_is_nan_and_null(tmp_path: Path) -> None:
    trace = TraceWriter().launch(1, 0).kernel("gemm", 1, 10, 10).write(tmp_path / "a.json")
    table = hr.Trace.load(trace).overlap()
    assert math.isnan(table.column("overlap_pct")[0])
    assert json.loads(table.to_json())[0]["overlap_pct"] is None
    assert table.to_csv().splitlines()[1].endswith(",")


def test_an_unknown_column_is_named_with_those_there_are(tmp_path: Path) -> None:
    table = hr.Trace.load(two_steps().write(tmp_path / "a.json")).overlap()
    with pytest.raises(hr.UsageError, match="no column 'nothing'; there are: rank"):
        table.column("nothing")


# --- which files ---


def test_a_folder_holds_the_ranks(tmp_path: Path) -> None:
    for rank in (1, 0):
        two_steps(rank).write(tmp_path / f"worker{rank}.pt.trace.json.gz")
    (tmp_path / "notes.txt").write_text("no trace")
    trace = hr.Trace.load(tmp_path)
    assert trace.ranks == [0, 1]
    assert trace.rank(1).ranks == [1]
    assert trace.rank(1).time_breakdown().column("rank").tolist() == [1]


def test_ranks_can_be_named(tmp_path: Path) -> None:
    paths = {5: two_steps(0).write(tmp_path / "a.json"), 2: two_steps(0).write(tmp_path / "b.json")}
    trace = hr.Trace.load(paths)
    assert trace.ranks == [2, 5]
    assert [Path(file).name for file in trace.files] == ["b.json", "a.json"]


def test_a_rank_twice_is_refused(tmp_path: Path) -> None:
    paths = [two_steps(0).write(tmp_path / name) for name in ("a.json", "b.json")]
    with pytest.raises(hr.UsageError, match="rank 0 is in two files"):
        hr.Trace.load(paths)


def test_missing_ranks_are_told(tmp_path: Path) -> None:
    for rank in (0, 3):
        TraceWriter(rank, world_size=4).host("cpu_op", "a", 0, 1).write(tmp_path / f"{rank}.json")
    assert hr.Trace.load(tmp_path).notes == ["2 of 4 ranks are missing: 1, 2"]


def test_a_url_is_opened_by_fsspec() -> None:
    fsspec = pytest.importorskip("fsspec")
    with fsspec.open("memory://traces/rank1.json.gz", "wb") as file:
        file.write(gzip.compress(two_steps(1).text().encode()))
    assert hr.Trace.load("memory://traces/rank1.json.gz").ranks == [1]
    with pytest.raises(hr.FormatError, match="memory://traces/none"):
        hr.Trace.load("memory://traces/none.json")


def test_reading_behind_a_url_shows_how_far_it_is() -> None:
    fsspec = pytest.importorskip("fsspec")
    text = gzip.compress(two_steps(1).text().encode())
    with fsspec.open("memory://traces/counted.json.gz", "wb") as file:
        file.write(text)
    url = "memory://traces/counted.json.gz"
    loader = _trace_files.loader(_trace_files.expand(url), url, None)
    assert loader.progress == (0, len(text))
    loader.load()
    assert loader.progress == (len(text), len(text))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "expected"),
        (b"[]", None),
        (b'{"traceEvents": []}', None),
        (b'{"nothing": 1}', "traceEvents"),
        (b"\x1f\x8b", "expected"),
        (b"not json", "expected"),
    ],
)
def test_hostile_files(tmp_path: Path, content: bytes, says: str | None) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content)
    if says is None:
        assert len(hr.Trace.load(path).events()) == 0
    else:
        with pytest.raises(hr.FormatError, match=says):
            hr.Trace.load(path)


def test_metadata_in_another_encoding_is_read(tmp_path: Path) -> None:
    """As paths on Windows, and process groups that are named in Latin-1."""
    path = two_steps().write(tmp_path / "a.json")
    of_windows = '{"traceName": "D:\\\\é.json", '.encode("latin-1")
    path.write_bytes(path.read_bytes().replace(b"{", of_windows, 1))
    trace = hr.Trace.load(path)
    assert len(trace.events()) == 12
    assert trace.metadata()["traceName"] == "D:\\\ufffd.json"


def test_a_cut_file_is_read_up_to_the_cut_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(two_steps().text()[:-150])
    trace = hr.Trace.load(path)
    assert 0 < len(trace.events()) < 12
    assert any("ends" in note for note in trace.notes)


def test_wrong_arguments(tmp_path: Path) -> None:
    path = two_steps(0).write(tmp_path / "a.json")
    with pytest.raises(hr.UsageError, match="no trace was given"):
        hr.Trace.load([])
    (tmp_path / "empty").mkdir()
    with pytest.raises(hr.FormatError, match=r"no \.json, .* trace in this folder"):
        hr.Trace.load(tmp_path / "empty")
    with pytest.raises(hr.UsageError, match="'integer', 'number' or 'text'"):
        hr.Trace.load(path, arguments={"grid": "tuple"})
    trace = hr.Trace.load(path)
    with pytest.raises(hr.UsageError, match="no trace of rank 7"):
        trace.rank(7)
    with pytest.raises(hr.UsageError, match="was not read"):
        trace.argument("grid")
    with pytest.raises(hr.UsageError, match="not by colour"):
        trace.operators(group_by=("name", "colour"))


def test_arguments_that_are_asked_for(tmp_path: Path) -> None:
    writer = TraceWriter().event("kernel", "k", 0, 7, 0, 1, grid=[1, 2, 3], stream=7)
    trace = hr.Trace.load(writer.write(tmp_path / "a.json"), arguments={"grid": "text"})
    assert trace.argument("grid").to_dict() == {"row": [0], "value": ["[1, 2, 3]"]}


# --- tables ---

_TABLES = (
    "time_breakdown",
    "idle_breakdown",
    "overlap",
    "kernel_breakdown",
    "kernels",
    "queue_length",
    "memory_bandwidth",
    "launches",
    "operators",
    "annotations",
    "sequences",
    "steps",
    "step_breakdown",
    "stragglers",
)


@pytest.mark.parametrize("method", _TABLES)
def test_every_table_prints_on_any_trace(tmp_path: Path, method: str) -> None:
    for i, writer in enumerate((two_steps(0), TraceWriter(0), TraceWriter(0).host("cpu_op", "a", 0, -1))):
        trace = hr.Trace.load(writer.write(tmp_path / f"{i}.json"))
        assert repr(getattr(trace, method)())


def test_figures_of_a_small_trace(tmp_path: Path) -> None:
    trace = hr.Trace.load(two_steps(0).write(tmp_path / "a.json"))
    time = next(trace.time_breakdown().rows())
    assert time["compute_s"] == pytest.approx(0.0006)
    assert time["kernel_span_s"] == pytest.approx(0.0016)
    assert time["idle_s"] == pytest.approx(0.0004)
    (operator,) = [row for row in trace.operators().rows() if row["name"] == "aten::mm"]
    assert operator["calls"] == 2
    assert operator["host_total_s"] == pytest.approx(0.0001)
    assert operator["host_self_s"] == pytest.approx(0.00009)
    assert operator["device_self_s"] == pytest.approx(0.0006)
    assert trace.time_breakdown(steps=[1]).column("kernel_span_s")[0] == pytest.approx(0.0006)
    assert trace.launches().column("delay_s").tolist() == pytest.approx([75e-6, 225e-6] * 2)


def test_diff_of_two_traces(tmp_path: Path) -> None:
    control = hr.Trace.load(two_steps(0).write(tmp_path / "a.json"))
    test = hr.Trace.load(
        two_steps(0).launch(99, 2900).kernel("extra", 99, 2950, 10).write(tmp_path / "b.json")
    )
    rows = {row["name"]: row for row in control.diff(test).rows()}
    assert rows["extra"]["change"] == "added"
    assert rows["gemm"]["change"] == "unchanged"
    assert rows["cudaLaunchKernel"]["diff_calls"] == 1
    assert set(control.diff(test, side="device").column("name")) == {
        "gemm",
        "extra",
        "ncclDevKernel_AllReduce",
    }
    with pytest.raises(hr.UsageError, match="'both', 'host' or 'device'"):
        control.diff(test, side="left")


def test_the_last_rank_to_come_is_the_straggler(tmp_path: Path) -> None:
    for rank, late in ((0, 0), (1, 350)):
        two_steps(rank, late).write(tmp_path / f"{rank}.json")
    first = next(hr.Trace.load(tmp_path).stragglers(candidates=1).rows())
    assert first["rank"] == 1
    assert first["mean_late_s"] == pytest.approx(350e-6)


def test_sixty_four_ranks_in_one_call(tmp_path: Path) -> None:
    for rank in range(64):
        TraceWriter(rank, world_size=64).launch(1, 0).kernel("gemm", 1, 10, 10 + rank).write(
            tmp_path / f"{rank}.json.gz"
        )
    trace = hr.Trace.load(tmp_path)
    assert trace.ranks == list(range(64))
    assert trace.notes == []
    assert trace.time_breakdown().column("compute_s").tolist() == pytest.approx(
        [(10 + rank) * 1e-6 for rank in range(64)]
    )


def test_the_plugins_sample_is_input_bound() -> None:
    breakdown = hr.Trace.load(conformance_file("kineto/resnet50_workers0.json.gz")).step_breakdown()
    shares = {row["role"]: row["share_pct"] for row in breakdown.average.rows()}
    assert shares["data_loader"] == pytest.approx(33.37, abs=0.005)
