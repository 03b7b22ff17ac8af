"""`hr.timeline`: a run, and a trace of torch's profiler, as one file that viewers open."""

import gzip
import json
import threading
import time
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from click.testing import CliRunner

import headrace as hr
from headrace.show.cli import main


def events_of(path: str | Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        document = json.load(file)
    events = document["traceEvents"]
    assert isinstance(events, list)
    return events


def ours(events: list[dict[str, Any]], phase: str, name: str | None = None) -> list[dict[str, Any]]:
    return [
        event
        for event in events
        if event.get("cat") == "headrace" and event["ph"] == phase and name in (None, event["name"])
    ]


def record_a_loop(batches: int = 8) -> Any:
    """A thread that decodes into a queue, a loop that takes from it; the wrapped loop."""
    decoded: Any = hr.Queue(4, name="decoded")

    @hr.operator("decode")
    def decode(item: int) -> int:
        time.sleep(0.004)
        return item

    def feed() -> None:
        for item in range(batches):
            decoded.put(decode(item))
        decoded.put(None)

    thread = threading.Thread(target=feed)
    thread.start()
    loader = hr.wrap(iter(decoded.get, None))
    for _batch in loader:
        time.sleep(0.002)
    thread.join()
    return loader


def test_a_run_alone_makes_a_timeline(tmp_path: Path) -> None:
    with hr.session(run=tmp_path / "run"):
        record_a_loop()
    merged = hr.timeline.merge(tmp_path / "run")
    assert merged.path == str(tmp_path / "run" / "timeline.json.gz")
    assert merged.clock_error_s is None
    events = events_of(merged.path)
    assert len(ours(events, "X")) == merged.slices
    assert len(ours(events, "X", "GetNext")) == 8
    assert len(ours(events, "X", "decode")) == 8
    levels = [event["args"]["items"] for event in ours(events, "C", "decoded")]
    assert levels
    assert max(levels) >= 1
    rows = [event["args"]["name"] for event in ours(events, "M", "thread_name")]
    assert "GetNext" in rows
    assert "steps" in rows


def test_a_running_loader_makes_one_too(tmp_path: Path) -> None:
    with hr.session(run=tmp_path / "run"):
        loader = record_a_loop()
        merged = hr.timeline.merge(loader, out=tmp_path / "live.json.gz")
    assert len(ours(events_of(merged.path), "X", "GetNext")) == 8


def test_what_is_no_run_or_trace_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(hr.Error, match="no such file"):
        hr.timeline.merge(tmp_path / "missing")
    with pytest.raises(hr.UsageError, match="run folder"):
        hr.timeline.merge(7)
    with hr.session(run=tmp_path / "run"):
        record_a_loop(1)
    (tmp_path / "empty").mkdir()
    with pytest.raises(hr.Error, match="no trace in it"):
        hr.timeline.merge(tmp_path / "run", tmp_path / "empty")
    (tmp_path / "text.json").write_text("hello", encoding="utf-8")
    with pytest.raises(hr.FormatError, match=r"text\.json"):
        hr.timeline.merge(tmp_path / "run", [tmp_path / "text.json"])
    with pytest.raises(hr.UsageError, match="wrap"):
        hr.trace_handler([1, 2], tmp_path)


def test_progress_can_end_it(tmp_path: Path) -> None:
    with hr.session(run=tmp_path / "run"):
        record_a_loop(1)
    (tmp_path / "trace.json").write_text('{"traceEvents": []}', encoding="utf-8")

    def stop(_share: float) -> None:
        raise RuntimeError("enough")

    out = tmp_path / "merged.json.gz"
    with pytest.raises(RuntimeError, match="enough"):
        hr.timeline.merge(tmp_path / "run", [tmp_path / "trace.json"], out, progress=stop)
    assert not out.exists()
    assert [path.name for path in tmp_path.iterdir() if "merged" in path.name] == []


def test_the_command_says_what_it_wrote(tmp_path: Path) -> None:
    with hr.session(run=tmp_path / "run"):
        record_a_loop()
    trace = tmp_path / "trace.json"
    trace.write_text('{"traceEvents": []}', encoding="utf-8")
    out = tmp_path / "merged.json.gz"
    done = CliRunner().invoke(
        main, ["timeline", str(tmp_path / "run"), "--trace", str(trace), str(trace), "-o", str(out)]
    )
    assert done.exit_code == 0, done.output
    assert "slices" in done.output
    assert "clock error: unknown" in done.output
    assert out.exists()
    assert CliRunner().invoke(main, ["timeline", str(tmp_path / "run"), str(trace)]).exit_code == 2
    assert CliRunner().invoke(main, ["timeline", str(tmp_path / "nothing")]).exit_code == 1


@pytest.mark.parametrize("workers", [0, 2])
def test_lies_over_a_trace_of_torchs_profiler(tmp_path: Path, workers: int) -> None:
    torch = pytest.importorskip("torch")
    from torch.profiler import ProfilerActivity, profile, schedule

    class Slow(torch.utils.data.Dataset):  # type: ignore[misc, name-defined]
        def __len__(self) -> int:
            return 64

        def __getitem__(self, index: int) -> Any:
            time.sleep(0.001 + 0.001 * (index % 5))
            return torch.full((4,), float(index))

    with hr.session(run=tmp_path / "run"):
        loader = hr.wrap(torch.utils.data.DataLoader(Slow(), batch_size=4, num_workers=workers))
        handler = hr.trace_handler(loader, tmp_path / "traces")
        with profile(
            activities=[ProfilerActivity.CPU],
            schedule=schedule(wait=2, warmup=2, active=10, repeat=1),
            on_trace_ready=handler,
        ) as profiler:
            for batch in loader:
                (batch @ torch.ones(4)).sum()
                time.sleep(0.003)
                profiler.step()
    (written,) = (tmp_path / "traces").glob("rank0.step*.timeline.json.gz")
    events = events_of(written)
    theirs = [
        event
        for event in events
        if event.get("ph") == "X"
        and event["name"].startswith("enumerate(DataLoader)#")
        and "__next__" in event["name"]
    ]
    assert len(theirs) >= 9
    calls = ours(events, "X", "GetNext")
    assert len(calls) == 2 + 2 + 10, "the handler ran in the middle of the loop"
    # The same figures again from the trace that was kept: the error that is printed holds.
    (trace,) = (tmp_path / "traces").glob("*.trace.json.gz")
    merged = hr.timeline.merge(tmp_path / "run", [trace], tmp_path / "again.json.gz")
    assert merged.clock_error_s is not None
    assert merged.clock_error_s < 0.01
    calls = ours(events_of(merged.path), "X", "GetNext")
    apart = []
    for event in theirs:
        middle = event["ts"] + event["dur"] / 2
        nearest = min(calls, key=lambda call: abs(call["ts"] + call["dur"] / 2 - middle))
        apart.append((nearest["ts"] + nearest["dur"] / 2 - middle) * 1e-6)
    # What remains of the shift; a single pair may be further apart where one of the calls waited for a core.
    assert abs(median(apart)) <= merged.clock_error_s
    assert sorted(map(abs, apart))[len(apart) * 3 // 4] <= merged.clock_error_s + 0.001
    if workers:
        rows = {event["args"]["name"] for event in ours(events, "M", "thread_name")}
        assert {"Slow worker 0", "Slow worker 1"} <= rows
        assert {"batches worker 0", "batches worker 1"} <= rows
        assert ours(events, "C", "results")
        assert len(ours(events, "s")) == len(ours(events, "f"))


def test_a_trace_behind_a_url_is_fetched(tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    run = tmp_path / "run"
    with hr.session(run=run):
        record_a_loop()
    kernel = {"ph": "X", "name": "k", "pid": 0, "tid": 7, "ts": 1, "dur": 2}
    trace = {"schemaVersion": 1, "traceEvents": [kernel]}
    with fsspec.open("memory://timeline/trace.json.gz", "wb") as file:
        file.write(gzip.compress(json.dumps(trace).encode()))
    with fsspec.open("memory://timeline/text.json", "wb") as file:
        file.write(b"no trace at all")
    shares: list[float] = []
    out = tmp_path / "merged.json.gz"
    merged = hr.timeline.merge(run, "memory://timeline/trace.json.gz", out, progress=shares.append)
    assert any(event["name"] == "k" for event in events_of(out))
    assert merged.slices > 0
    assert shares
    assert max(shares) <= 1
    with pytest.raises(hr.FormatError, match=r"^memory://timeline/text.json"):
        hr.timeline.merge(run, ["memory://timeline/text.json"], tmp_path / "none.json.gz")
    with pytest.raises(hr.FormatError, match=r"memory://timeline/nothing"):
        hr.timeline.merge(run, ["memory://timeline/nothing.json"], tmp_path / "none.json.gz")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["merged.json.gz", "run"]
