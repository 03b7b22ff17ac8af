"""Memory snapshots, against figures of independent code and an allocator that knows the truth."""

from __future__ import annotations

import collections
import csv
import gzip
import io
import json
import pickle
import zipfile
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import headrace as hr
from device_traces import TraceWriter, conformance_file
from headrace import _core
from headrace.errors import FormatError, UsageError
from headrace.show.cli import main
from memory_snapshots import (
    MIB,
    STACKS,
    START_US,
    CppPickler,
    Recorder,
    function,
    random_run,
    snapshot_of,
    step_marks,
    write,
)

pytest.importorskip("numpy")

METHODS = ["peak", "holders", "fragmentation", "oom", "growth", "over_time", "actions"]
MADE = "traces/memory_snapshot_made.pickle"


def of_device(table: hr.Table, device: int) -> list[dict[str, Any]]:
    return [row for row in table.rows() if row["device"] == device]


def tables_of(snapshot: hr.MemorySnapshot) -> list[str]:
    return [getattr(snapshot, name)().to_json() for name in METHODS]


# --- figures ------------------------------------------------------------------------------------------------


def test_every_figure_of_the_sample_is_exact() -> None:
    snapshot = hr.MemorySnapshot.load(conformance_file(MADE))
    expected = json.loads(conformance_file("traces/expected/memory_snapshot_made.json").read_text())
    assert {str(row["device"]) for row in snapshot.peak().rows()} == set(expected["devices"])
    for device, figures in expected["devices"].items():
        (peak,) = of_device(snapshot.peak(), int(device))
        (reserved,) = of_device(snapshot.fragmentation(), int(device))
        holders = of_device(snapshot.holders(), int(device))
        actions = {row["action"]: row["count"] for row in of_device(snapshot.actions(), int(device))}
        ooms = [
            {"requested": row["requested_bytes"], "device_free": row["device_free_bytes"], "at": row["event"]}
            for row in of_device(snapshot.oom(), int(device))
        ]
        recorded = [
            {"where": row["where"], "bytes": row["recorded_bytes"]}
            for row in holders
            if row["recorded_bytes"]
        ]
        recorded.sort(key=lambda row: (-row["bytes"], row["where"]))
        found = {
            **peak,
            **reserved,
            "peak_event": None if peak["peak_event"] < 0 else peak["peak_event"],
            "largest_inactive_block": reserved["largest_inactive_block_bytes"],
            "actions": actions,
            "ooms": ooms,
            "held_at_peak_top5": recorded[:5],
        }
        assert {name: found[name] for name in figures} == figures
        assert sum(row["held_bytes"] for row in holders) == figures["peak_requested_bytes"]


def test_memory_of_a_trace_is_exact() -> None:
    trace = hr.Trace.load(conformance_file("traces/kineto_memory_cpu.json.gz"))
    expected = json.loads(conformance_file("traces/expected/kineto_memory_cpu.json").read_text())
    (row,) = trace.memory().rows()
    assert row["events"] == expected["instants"]
    assert row["device_type"] == expected["device_type"]
    assert row["peak_allocated_bytes"] == expected["peak_total_allocated"]
    assert row["time_ns"] == round(expected["peak_ts_us"] * 1000)
    assert row["first_allocated_bytes"] == expected["first_total_allocated"]
    assert row["last_allocated_bytes"] == expected["last_total_allocated"]
    assert row["net_bytes"] == expected["sum_of_bytes"]
    assert row["step"] in trace.steps().column("step")
    assert row["operator"].startswith("aten::")


def test_memory_of_a_trace_by_device_and_step(tmp_path: Path) -> None:
    trace = TraceWriter()
    for step, totals in ((1, [100, 900]), (2, [2000, 300])):
        trace.host("user_annotation", f"ProfilerStep#{step}", 1000 * step, 900)
        trace.host("cpu_op", f"aten::op{step}", 1000 * step + 100, 700)
        for i, total in enumerate(totals):
            trace.host("cpu_instant_event", "[memory]", 1000 * step + 200 + i, 0)
            trace.events[-1].update(ph="i", s="t", args={
                "Bytes": 8, "Total Allocated": total, "Total Reserved": 4096, "Device Type": 1, "Device Id": 3
            })  # fmt: skip
    loaded = hr.Trace.load(trace.write(tmp_path / "trace.json"))
    (row,) = loaded.memory().rows()
    assert (row["device"], row["peak_allocated_bytes"], row["step"]) == (3, 2000, 2)
    assert (row["operator"], row["peak_reserved_bytes"], row["net_bytes"]) == ("aten::op2", 4096, 32)
    assert (
        "memory of device 3: peak 1.953 KiB in step 2, by aten::op2\n" in run(str(tmp_path / "trace.json"))[1]
    )
    (row,) = loaded.memory(steps=[1]).rows()
    assert (row["peak_allocated_bytes"], row["operator"]) == (900, "aten::op1")


def true_holders(recorder: Recorder, kept: int, at: int) -> dict[str, int]:
    """Requested bytes by place behind event ``at``, where the file has the last ``kept`` events."""
    first = len(recorder.events) - kept
    alive: dict[int, tuple[int, int]] = {}
    for index, event in enumerate(recorder.events[: at + 1]):
        if event["action"] == "alloc":
            alive[event["addr"]] = (index, event["size"])
        elif event["action"] == "free_completed":
            del alive[event["addr"]]
    label = {id(frames): place for frames, place in STACKS}
    ended = {event["addr"] for event in recorder.events[at + 1 :] if event["action"] == "free_completed"}
    held: collections.Counter[str] = collections.Counter()
    for addr, (index, size) in alive.items():
        known = index >= first or addr not in ended
        held[label[id(recorder.events[index]["frames"])] if known else "before the recording"] += size
    return dict(held)


@pytest.mark.parametrize("kept", [0, 150])
@pytest.mark.parametrize("expandable", [False, True])
def test_tables_agree_with_an_allocator_that_knows(tmp_path: Path, kept: int, expandable: bool) -> None:
    recorders = [Recorder(0, expandable=expandable, pool=(0, 3)), Recorder(2, expandable=expandable)]
    for recorder in recorders:
        random_run(recorder, seed=recorder.device, count=400)
    path = write(tmp_path / "snapshot.pickle", snapshot_of(recorders, max_entries=kept))
    snapshot = hr.MemorySnapshot.load(path)
    assert [row["device"] for row in snapshot.peak().rows()] == [0, 2]
    for recorder in recorders:
        events = len(recorder.events)
        first = events - (kept or events)
        before = recorder.levels[first - 1] if first else 0
        highest = max(recorder.levels[first:])
        (peak,) = of_device(snapshot.peak(), recorder.device)
        assert peak["peak_requested_bytes"] == max(before, highest)
        assert peak["requested_before_recording_bytes"] == before
        assert peak["live_in_trace_without_block_bytes"] == 0
        assert peak["events"] == events - first
        at = recorder.levels.index(highest, first) if highest > before else first - 1
        assert peak["peak_event"] == (at - first if highest > before else -1)
        held = {row["where"]: row["held_bytes"] for row in of_device(snapshot.holders(), recorder.device)}
        assert held == true_holders(recorder, events - first, at)

        reserved = 0
        for event in recorder.events[: at + 1]:
            sign = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}
            reserved += sign.get(event["action"], 0) * event["size"]
        assert peak["reserved_bytes"] == reserved

        moments: collections.Counter[int] = collections.Counter()
        for row in of_device(snapshot.over_time(moments=50, places=2), recorder.device):
            moments[row["event"]] += row["held_bytes"]
        assert moments == {event: recorder.levels[first + event] for event in moments}
        assert len(moments) == 50
        assert max(moments.values()) == highest

        (row,) = of_device(snapshot.fragmentation(), recorder.device)
        free = [b["size"] for s in recorder.segments for b in s["blocks"] if b["state"] == "inactive"]
        assert row["inactive_bytes"] == row["reserved_bytes"] - row["active_bytes"] == sum(free)
        assert row["requested_bytes"] == recorder.levels[-1]
        assert row["expandable_bytes"] == (row["reserved_bytes"] if expandable else 0)
        assert row["private_pool_bytes"] == (row["reserved_bytes"] if recorder.device == 0 else 0)


def test_all_picklers_give_the_same_tables(tmp_path: Path) -> None:
    recorders = [Recorder(0), Recorder(1, expandable=True)]
    for recorder in recorders:
        random_run(recorder, seed=7, count=900)
    made = snapshot_of(recorders, marks=step_marks(0, [300, 600, 900]))
    assert len(made["device_traces"][0]) > 1000  # Python writes the items of long lists in parts
    wanted = tables_of(hr.MemorySnapshot.load(write(tmp_path / "4.pickle", made)))
    for protocol in (2, 3, 5):
        assert (
            tables_of(hr.MemorySnapshot.load(write(tmp_path / f"{protocol}.pickle", made, protocol)))
            == wanted
        )
    native = tmp_path / "native.pickle"
    native.write_bytes(CppPickler().dumps(made))
    assert pickle.loads(native.read_bytes()) == made
    assert tables_of(hr.MemorySnapshot.load(native)) == wanted
    packed = tmp_path / "packed.bin"
    packed.write_bytes(gzip.compress(native.read_bytes()))
    assert tables_of(hr.MemorySnapshot.load(packed)) == wanted
    (tmp_path / "unpickled.pickle").write_bytes(
        pickle.dumps(json.loads(json.dumps(made)))
    )  # nothing is shared
    assert tables_of(hr.MemorySnapshot.load(tmp_path / "unpickled.pickle"))[0] == wanted[0]


def test_sums_are_those_of_pytorchs_own_tool(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from torch.cuda import _memory_viz

    recorders = [Recorder(0), Recorder(1)]
    for recorder in recorders:
        random_run(recorder, seed=3, count=600)
    path = write(tmp_path / "a.pickle", snapshot_of(recorders))
    lines = _memory_viz.segsum(pickle.loads(path.read_bytes())).splitlines()
    table = hr.MemorySnapshot.load(path).fragmentation()
    for name, column in (("reserved", "reserved_bytes"), ("allocated", "allocated_bytes")):
        assert f"total_{name}: {table.column(column).sum() / MIB:.1f}MiB" in lines


# --- growth -------------------------------------------------------------------------------------------------


def leaking(steps: int) -> tuple[Recorder, list[int]]:
    """Keeps 1 MiB of the loader in each step, allocates the optimizer's state in the second one."""
    recorder = Recorder(0)
    ends = []
    for step in range(steps):
        batch = recorder.alloc(3 * MIB, 0)
        recorder.alloc(MIB, 1)
        if step == 1:
            recorder.alloc(8 * MIB, 3)
        recorder.free(batch)
        ends.append(len(recorder.events) - 1)
    recorder.event("snapshot", 0, 0)
    return recorder, ends


def test_growth_names_what_holds_more_in_each_step(tmp_path: Path) -> None:
    recorder, ends = leaking(6)
    made = snapshot_of([recorder], marks=step_marks(0, ends))
    table = hr.MemorySnapshot.load(write(tmp_path / "a.pickle", made)).growth()
    state, leak = table.rows()
    assert (state["where"], state["growth_bytes"], state["grew_in"]) == ("adam.py:7 step", 8 * MIB, 1)
    assert (leak["where"], leak["growth_bytes"], leak["step_growth_bytes"]) == (
        "loader.py:11 loader", 5 * MIB, MIB
    )  # fmt: skip
    assert leak["grew_in"] == leak["steps"] == 5
    assert (leak["first_bytes"], leak["last_bytes"]) == (MIB, 6 * MIB)
    assert table.notes == ["device 0: compared at the ends of 6 steps, ProfilerStep#1 to ProfilerStep#6"]


def test_growth_without_steps_is_by_thirds(tmp_path: Path) -> None:
    recorder, _ = leaking(9)
    table = hr.MemorySnapshot.load(write(tmp_path / "a.pickle", snapshot_of([recorder]))).growth()
    (leak,) = [row for row in table.rows() if row["where"] == "loader.py:11 loader"]
    assert leak["grew_in"] == leak["steps"] == 2
    assert "thirds" in table.notes[0]


# --- failed requests ----------------------------------------------------------------------------------------


def failed_request(asked: int, inactive: int, free: int, **more: Any) -> Recorder:
    """``inactive`` bytes in pieces of 2 MiB between blocks in use, then a request that fails."""
    recorder = Recorder(0, **more)
    pieces = [recorder.alloc(2 * MIB) for _ in range(2 * (inactive // (2 * MIB)) or 2)]
    for addr in pieces[::2] if inactive else []:
        recorder.free(addr)
    recorder.event("oom", None, asked, 1, device_free=free)
    return recorder


@pytest.mark.parametrize(
    ("inactive", "device_bytes", "verdict", "cure"),
    [
        (32 * MIB, 0, "fragmentation", "expandable_segments:True"),
        (0, 0, "too much", "smaller batch"),
        (0, 80 << 30, "another process", "nvidia-smi"),
        (0, 1 << 30, "too much", "smaller batch"),
    ],
)
def test_a_failed_request_has_a_verdict(
    tmp_path: Path, inactive: int, device_bytes: int, verdict: str, cure: str
) -> None:
    recorder = failed_request(24 * MIB, inactive, 3 * MIB)
    snapshot = hr.MemorySnapshot.load(write(tmp_path / "a.pickle", snapshot_of([recorder])))
    (row,) = snapshot.oom(device_bytes=device_bytes).rows()
    assert (row["verdict"], row["requested_bytes"], row["device_free_bytes"]) == (verdict, 24 * MIB, 3 * MIB)
    assert cure in row["cure"]
    assert row["says"].startswith("24 MiB asked, ")
    assert row["where"] == "loader.py:11 loader"


def test_the_state_at_a_failed_request_is_not_that_of_the_snapshot(tmp_path: Path) -> None:
    recorder = failed_request(24 * MIB, 32 * MIB, 0)
    for addr in list(recorder.live):
        recorder.free(addr)
    recorder.release()
    (row,) = hr.MemorySnapshot.load(write(tmp_path / "a.pickle", snapshot_of([recorder]))).oom().rows()
    assert (row["reserved_bytes"], row["inactive_bytes"]) == (64 * MIB, 32 * MIB)
    assert row["largest_inactive_block_bytes"] != row["largest_inactive_block_bytes"]  # not known any more
    assert row["verdict"] == "fragmentation"


def test_a_cure_is_not_what_is_set_already(tmp_path: Path) -> None:
    made = snapshot_of([failed_request(24 * MIB, 32 * MIB, 0, expandable=True)])
    (row,) = hr.MemorySnapshot.load(write(tmp_path / "a.pickle", made)).oom().rows()
    assert row["cure"].startswith("expandable segments are on already")
    made = snapshot_of([failed_request(24 * MIB, 32 * MIB, 0, pool=(0, 1))])
    (row,) = hr.MemorySnapshot.load(write(tmp_path / "b.pickle", made)).oom().rows()
    assert "private pools" in row["cure"]


# --- places -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("frames", "where"),
    [
        (
            [{"filename": "", "line": 0, "name": "c10d::ProcessGroupNCCL::work(int)"}],
            "c10d::ProcessGroupNCCL::work",
        ),
        ([{"filename": "??", "line": 0, "name": "??"}], "C++ without names"),
        (
            [{"filename": "??", "line": 0, "name": "torch::autograd::VariableType::mm"}],
            "torch::autograd::VariableType::mm",
        ),
        ([{"filename": "/var/ipykernel_7/123.py", "line": 4, "name": "<module>"}], "123.py:4 <module>"),
        ([function("a", 5), function("b", 6)], "a.py:5 a"),
    ],
)
def test_a_stack_has_a_place(tmp_path: Path, frames: list[dict[str, Any]], where: str) -> None:
    recorder = Recorder(0)
    recorder.alloc(MIB)
    recorder.events[-1]["frames"] = frames
    (row,) = hr.MemorySnapshot.load(write(tmp_path / "a.pickle", snapshot_of([recorder]))).holders().rows()
    assert (row["where"], row["held_bytes"]) == (where, MIB)


def test_older_versions_are_read(tmp_path: Path) -> None:
    """Blocks without address and requested size; a list of segments, which memory_snapshot() returns."""
    blocks = [{"size": 512, "state": "active_allocated"}, {"size": 1536, "state": "inactive"}]
    segment = {"device": 0, "address": 4096, "total_size": 2048, "stream": 0, "blocks": blocks}
    more = {"stage": "END", "name": "of another kind", "time_us": 1}
    whole = {"segments": [segment], "device_traces": [], "later": {"versions": [more, {"x": 1.5}]}}
    for name, made in (("a", [segment]), ("b", whole)):
        snapshot = hr.MemorySnapshot.load(write(tmp_path / name, made))
        (row,) = snapshot.fragmentation().rows()
        assert (row["reserved_bytes"], row["active_bytes"], row["inactive_bytes"]) == (2048, 512, 1536)
        assert "no recorded events" in snapshot.peak().notes[0]


# --- what is refused ----------------------------------------------------------------------------------------


def refused(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    with pytest.raises(FormatError) as error:
        hr.MemorySnapshot.load(path)
    assert len(str(error.value).splitlines()) == 1
    return str(error.value)


def test_a_file_that_asks_for_a_global_is_refused_and_not_run(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(
        FormatError, match=r"asks for the global builtins\.print \(opcode STACK_GLOBAL, byte 2685\)"
    ):
        hr.MemorySnapshot.load(conformance_file("traces/memory_snapshot_made_global.pickle"))
    assert capfd.readouterr().out == ""


def test_other_pickles_and_files_are_named(tmp_path: Path) -> None:
    path = tmp_path / "x.pkl"
    assert "asks for the global pathlib.PosixPath (opcode GLOBAL" in refused(path, pickle.dumps(Path("a"), 2))
    assert "asks for the global os.system (opcode INST" in refused(path, b"\x80\x02(ios\nsystem\n.")
    assert "needs the opcode REDUCE" in refused(path, b"\x80\x02)R.")
    assert "needs the opcode NEWOBJ" in refused(path, b"\x80\x02)\x81.")
    assert "needs the opcode SHORT_BINBYTES" in refused(path, pickle.dumps({"a": b"x"}))
    assert "needs the opcode EMPTY_SET" in refused(path, pickle.dumps({1, 2}))
    assert "needs the opcode 0x07" in refused(path, b"\x80\x02\x07.")
    assert "a dict with" in refused(path, pickle.dumps({"epoch": 3, "losses": [1.0, 2.0]}))
    assert "a dict of segments" in refused(path, pickle.dumps([1, 2]))
    assert "protocol 2 to 5" in refused(path, pickle.dumps({}, 0))
    assert "there is nothing in it" in refused(path, b"")
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("archive/data.pkl", b"\x80\x02}.")
    assert "as torch.save writes it" in refused(path, archive.getvalue())


def test_every_cut_is_one_line(tmp_path: Path) -> None:
    content = conformance_file(MADE).read_bytes()
    for end in range(len(content)):
        message = refused(tmp_path / "cut.pickle", content[:end])
        assert end < 2 or "cut off" in message
    packed = gzip.compress(content)
    assert "the compressed data ends too early" in refused(tmp_path / "cut.gz", packed[: len(packed) // 2])


def test_what_would_blow_up_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.pickle"
    deep: list[Any] = []
    for _ in range(30):
        deep = [deep, deep]
    assert "nested" in refused(path, pickle.dumps(deep))
    events = [{"action": "alloc", "addr": i, "size": 1, "time_us": i, "frames": []} for i in range(100)]
    assert "each in one place" in refused(
        path, pickle.dumps({"segments": [], "device_traces": [events] * 100})
    )
    recorder = Recorder(0)
    recorder.alloc(MIB)
    made = snapshot_of([recorder])
    made["segments"] += [{**made["segments"][0]}]
    assert "each in one place" in refused(path, pickle.dumps(made))
    made["segments"] = [{**made["segments"][0], "device": 1 << 40}]
    assert "device's number" in refused(path, pickle.dumps(made))
    many = [[{**events[0]}] for _ in range(300)]
    assert "at most 256 devices" in refused(path, pickle.dumps({"segments": [], "device_traces": many}))
    assert "memo" in refused(path, b"\x80\x02}r\xff\xff\xff\x7f.")
    assert "at most 16 MiB" in refused(path, b"\x80\x02X\xff\xff\xff\xff.")
    events[0]["size"] = 1 << 62
    assert "sizes" in refused(path, pickle.dumps({"segments": [], "device_traces": [events]}))


def test_a_pickle_is_no_trace(tmp_path: Path) -> None:
    path = write(tmp_path / "a.pickle", snapshot_of([Recorder(0)]))
    with pytest.raises(FormatError, match=r"a pickle, no trace; hr\.MemorySnapshot\.load"):
        hr.Trace.load(path)


def test_the_class_takes_no_path() -> None:
    with pytest.raises(UsageError, match=r"MemorySnapshot\.load"):
        hr.MemorySnapshot("a.pickle")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="device_bytes"):
        hr.MemorySnapshot.load(conformance_file(MADE)).oom(device_bytes=-1)


# --- tables and the command ---------------------------------------------------------------------------------


def test_tables_have_the_columns_that_are_declared(tmp_path: Path) -> None:
    recorder = failed_request(24 * MIB, 32 * MIB, 0)
    snapshot = hr.MemorySnapshot.load(write(tmp_path / "a.pickle", snapshot_of([recorder])))
    declared = {
        name: [(column, unit, says) for column, _, unit, says, _ in tables[0][2]]
        for name, _, _, tables, _ in _core.declared_tables()[1]
    }
    assert list(declared) == METHODS
    for name, columns in declared.items():
        described = getattr(snapshot, name)().describe()
        assert [tuple(row.values()) for row in described.rows()] == columns, name


def run(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(main, ["trace", *arguments])
    return result.exit_code, result.stdout, result.stderr


def test_a_screen_begins_with_the_finding() -> None:
    status, out, _ = run(str(conformance_file(MADE)))
    assert status == 0
    assert " ".join(out.split()).startswith(
        "out of memory (device 0): 24 MiB asked, 48 MiB inactive in pieces of at most 16 MiB: fragmentation; "
        "set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"
    )
    assert "device 0: peak 128 MiB at event 10 of 24 in ProfilerStep#3" in out
    assert out.index("model.py:10 model\n", out.index("held at the peak")) > 0
    assert len(out.splitlines()) <= 40
    assert max(map(len, out.splitlines())) <= 100


def test_a_screen_without_a_failure(tmp_path: Path) -> None:
    recorder, ends = leaking(6)
    path = write(tmp_path / "a.pickle", snapshot_of([recorder], marks=step_marks(0, ends)))
    out = " ".join(run(str(path))[1].split())
    assert out.startswith("memory grows in each of 5 steps: 1 MiB a step, allocated in loader.py:11 loader")
    quiet = Recorder(0)
    quiet.alloc(2 * MIB)
    assert run(str(write(tmp_path / "b.pickle", snapshot_of([quiet]))))[1].startswith("no finding")


def test_a_page_has_the_finding_the_picture_and_the_tables(tmp_path: Path) -> None:
    recorder = failed_request(24 * MIB, 32 * MIB, 0)
    recorder.alloc(MIB, 1)
    recorder.events[-1]["frames"] = [function("<script>", 1)]
    for _ in range(200):  # it is held for more than a third
        recorder.free(recorder.alloc(1024))
    path = write(tmp_path / "a.pickle", snapshot_of([recorder]))
    status, out, _ = run(str(path), "--format", "html")
    assert status == 0
    assert out == hr.MemorySnapshot.load(path).to_html()
    assert '<h1 class="sentence">out of memory (device 0): 24 MiB asked' in out
    assert '<path class="l4" d="M0 ' in out
    assert "&lt;script&gt;.py:1 &lt;script&gt;" in out
    assert "<script" not in out
    for heading in ("Failed requests", "Who holds the peak", "What is reserved"):
        assert f"<h2>{heading}</h2>" in out
    assert run(str(path), "--format", "html", "-o", str(tmp_path / "page.html"))[0] == 0
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == out
    status, _, err = run(str(path), "--format", "html", "--table", "peak")
    assert (status, len(err.strip().splitlines())) == (2, 1)
    assert run(str(path), "-o", str(tmp_path / "summary.txt"))[0] == 0
    assert (tmp_path / "summary.txt").read_text(encoding="utf-8") == run(str(path))[1]
    empty = write(tmp_path / "b.pickle", {"segments": [], "device_traces": []})
    assert "no finding" in hr.MemorySnapshot.load(empty).to_html()


def test_tables_in_every_format(tmp_path: Path) -> None:
    recorder = failed_request(24 * MIB, 32 * MIB, 0)
    packed = tmp_path / "a.pickle.gz"
    packed.write_bytes(gzip.compress(pickle.dumps(snapshot_of([recorder]))))
    path = str(packed)
    for name in METHODS:
        rows = json.loads(run(path, "--table", name, "--format", "json")[1])
        table = list(csv.DictReader(io.StringIO(run(path, "--table", name, "--format", "csv")[1])))
        assert [list(row) for row in rows] == [list(row) for row in table]
    assert "64 MiB" in run(path, "--table", "fragmentation")[1]
    assert "Of the peak." in run(path, "--table", "holders", "--describe")[1]
    for wrong in (["--table", "kernels"], ["--rank", "0"], ["--format", "json"]):
        status, _, err = run(path, *wrong)
        assert status == 2
        assert len(err.strip().splitlines()) == 1
    broken = tmp_path / "broken.pickle"
    broken.write_bytes(pickle.dumps({1, 2}))
    status, _, err = run(str(broken))
    assert status == 1
    assert "EMPTY_SET" in err


def test_times_are_of_the_events(tmp_path: Path) -> None:
    recorder, ends = leaking(3)
    made = snapshot_of([recorder], marks=step_marks(0, ends))
    (row,) = hr.MemorySnapshot.load(write(tmp_path / "a.pickle", made)).peak().rows()
    assert row["time_ns"] == (START_US + 100 * row["peak_event"]) * 1000
    assert row["step"] == f"ProfilerStep#{1 + sum(row['peak_event'] > end for end in ends)}"
