"""Jobs of many ranks: who is slow, why, what the job would gain; what is kept; what is damaged."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import headrace as hr
from device_traces import TraceWriter
from headrace.cluster import _reading, _summary
from headrace.cluster._files import Files, find_ranks
from headrace.cluster._reading import default_cache
from headrace.cluster._view import Part, View
from headrace.errors import UsageError
from headrace.show.cli import main
from headrace.traces.table import Table
from test_ranks import record_rank

STEPS = 12
TRANSFER_US = 100


def kept_in(job: Path) -> Path:
    folder = default_cache(str(job))
    assert folder is not None
    return folder


def rank_trace(rank: int, own_us: list[dict[str, float]], latest_us: list[float]) -> TraceWriter:
    """A rank of a job that meets in every step. ``own_us``: its input, host and compute time."""
    trace = TraceWriter(rank, 4)
    at = 1_000.0 + 50_000 * rank  # clocks differ
    for step, (own, latest) in enumerate(zip(own_us, latest_us, strict=True)):
        whole = latest + TRANSFER_US
        trace.host("user_annotation", f"ProfilerStep#{step + 3}", at, whole)
        begin = at
        if own["input"]:
            name = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
            trace.host("user_annotation", name, begin, own["input"])
        launch = begin + own["input"] + own["host"]
        trace.launch(10 * step, launch, 1).kernel("gemm", 10 * step, launch, own["compute"])
        meet = launch + own["compute"]
        trace.launch(10 * step + 1, launch + 2, 1)
        trace.kernel("ncclDevKernel_AllReduce_Sum", 10 * step + 1, meet, at + whole - meet, stream=20)
        at += whole
    # An operation behind the last step, so that this one is not cut off.
    trace.host("user_annotation", f"ProfilerStep#{len(own_us) + 3}", at, 10)
    return trace


def write_job(folder: Path, extra: dict[int, dict[str, float]], ranks: int = 4) -> Path:
    """``extra``: microseconds that a rank takes longer in every step."""
    folder.mkdir(parents=True, exist_ok=True)
    own = [
        [
            {
                "input": 20 + extra.get(rank, {}).get("input", 0),
                "host": 30 + extra.get(rank, {}).get("host", 0),
                "compute": 800 + 3 * ((7 * rank + step) % 5) + extra.get(rank, {}).get("compute", 0),
            }
            for step in range(STEPS)
        ]
        for rank in range(ranks)
    ]
    latest = [max(sum(each[step].values()) for each in own) for step in range(STEPS)]
    for rank in range(ranks):
        rank_trace(rank, own[rank], latest).write(folder / f"rank{rank}.json.gz")
    return folder


class Counting(ThreadPoolExecutor):
    """Counts what it is given."""

    def __init__(self) -> None:
        super().__init__(2)
        self.calls = 0

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.calls += 1
        return super().submit(fn, *args, **kwargs)


def dies_at_rank_1(files: Files) -> dict[str, Any]:
    """As a file would that takes more memory than there is."""
    if files.rank == 1:
        os._exit(9)
    return summarise_or_say(files)


summarise_or_say = _reading.summarise_or_say


@pytest.fixture
def slow_input(tmp_path: Path) -> Path:
    return write_job(tmp_path / "job", {2: {"input": 400}})


class TestVerdict:
    def test_slow_input_is_named_with_its_gain(self, slow_input: Path) -> None:
        cluster = hr.Cluster.load(slow_input)
        diagnosis = cluster.diagnosis
        assert diagnosis.verdict == "slow_rank"
        (slow,) = diagnosis.slow
        assert (slow.rank, slow.resource, slow.steady) == (2, "input", True)
        assert slow.late_s == pytest.approx(400e-6, rel=0.05)
        assert diagnosis.speedup == pytest.approx(1356 / 962, rel=0.02)
        assert cluster.what_if(without_rank=2)["speedup"] == pytest.approx(diagnosis.speedup)
        assert cluster.what_if(without_rank=1)["speedup"] == pytest.approx(1)
        table = cluster.ranks
        assert next(iter(table.column("rank"))) == 2
        assert table.column("input_share")[0] == pytest.approx(420 / 1356, rel=0.05)
        assert cluster.lateness([2], [3])[0][0] == pytest.approx(400e-6, rel=0.05)

    def test_a_slow_device_is_named_with_its_kernels(self, tmp_path: Path) -> None:
        cluster = hr.Cluster.load(write_job(tmp_path / "job", {1: {"compute": 300}}))
        (slow,) = cluster.diagnosis.slow
        assert (slow.rank, slow.resource) == (1, "compute")
        assert "slower at the same kernels: gemm 1.37 x" in slow.says

    def test_a_slow_host_is_named(self, tmp_path: Path) -> None:
        (slow,) = hr.Cluster.load(write_job(tmp_path / "job", {0: {"host": 200}})).diagnosis.slow
        assert (slow.rank, slow.resource) == (0, "host")

    def test_the_mean_step_is_split_into_its_parts(self, slow_input: Path) -> None:
        cluster = hr.Cluster.load(slow_input)
        (late,) = (row for row in cluster.step_times.rows() if row["rank"] == 2)
        assert late["step_s"] == pytest.approx(1356e-6, rel=0.01)
        assert late["input_s"] == pytest.approx(420e-6, rel=0.01)
        assert late["communication_s"] == pytest.approx(TRANSFER_US / 1e6, rel=0.05)
        names = ("compute_s", "communication_s", "input_s", "host_s")
        assert sum(late[name] for name in names) == pytest.approx(late["step_s"])
        assert late["bubble_s"] != late["bubble_s"]  # the trace names no receives
        assert "exposed communication 29%, waits for the input 9%" in cluster.to_text()
        assert not any("exposed communication" in text for text in cluster.diagnosis.advice)

    def test_the_page_shows_the_late_rank(self, slow_input: Path, tmp_path: Path) -> None:
        out = tmp_path / "job.html"
        done = CliRunner().invoke(main, ["cluster", str(slow_input), "--format", "html", "-o", str(out)])
        assert done.exit_code == 0, done.output
        page = out.read_text()
        assert "Rank 2 is slow" in page
        assert "<title>rank 2, steps 3 to 14: late by up to" in page
        assert "<script" not in page
        assert page == hr.Cluster.load(slow_input).to_html()

    def test_ranks_lie_below_each_other_in_a_timeline(self, slow_input: Path, tmp_path: Path) -> None:
        cluster = hr.Cluster.load(slow_input)
        merged = cluster.timeline(tmp_path / "ranks.json")
        events = json.loads((tmp_path / "ranks.json").read_text())["traceEvents"]
        # Slowest, median, fastest: each with its kernels, those of the second and third with other pids.
        devices = {event["pid"] for event in events if event.get("cat") == "kernel"}
        assert len(devices) == 3
        aligned = [note for note in merged.notes if "were added to its times by" in note]
        assert len(aligned) == 2, merged.notes
        two = cluster.timeline(tmp_path / "two.json", ranks=[3, 0])
        assert len([note for note in two.notes if "were added to its times by" in note]) == 1
        asked = ["cluster", str(slow_input), "--timeline", str(tmp_path / "three.json")]
        done = CliRunner().invoke(main, asked)
        assert done.exit_code == 0
        assert "were added to its times by" in done.output + done.stderr
        assert (tmp_path / "three.json").stat().st_size > 0
        with pytest.raises(UsageError, match="no rank 9"):
            cluster.timeline(tmp_path / "none.json", ranks=[9])
        assert not (tmp_path / "none.json").exists()

    def test_an_even_job_has_no_slow_rank(self, tmp_path: Path) -> None:
        cluster = hr.Cluster.load(write_job(tmp_path / "job", {}))
        assert cluster.diagnosis.verdict == "even"
        assert cluster.diagnosis.speedup == 1
        (advice,) = cluster.diagnosis.advice
        assert advice.startswith("exposed communication takes 11% of the step")
        assert "NO SLOW RANK" in str(cluster)

    def test_recorded_runs_are_named_with_operator_and_cause(self, tmp_path: Path) -> None:
        run = tmp_path / "run"
        for rank, decode_s in enumerate((0.002, 0.014, 0.002)):
            record_rank(run, rank, decode_s, 0.006)
        (slow,) = hr.Cluster.load(run).diagnosis.slow
        assert (slow.rank, slow.operator) == (1, "decode")
        first, *others = hr.Cluster.load(run).diagnosis.advice
        assert "(decode, too few workers)" in first
        assert sum("run decode with" in text for text in others) == 1  # the others are alternatives
        # One run folder a rank says the same: the folder's name is the rank.
        for rank in range(3):
            (tmp_path / "apart" / f"rank{rank}").mkdir(parents=True)
            segment = next(run.glob(f"rank{rank}*.hrseg"))
            shutil.copy(segment, tmp_path / "apart" / f"rank{rank}" / "rank0.hrseg")
        (slow,) = hr.Cluster.load(tmp_path / "apart").diagnosis.slow
        assert slow.rank == 1

    @pytest.mark.parametrize("in_step", [True, False])
    def test_recordings_are_compared_by_waits_if_they_are_in_step(self, in_step: bool) -> None:
        parts = []
        for rank in range(5):
            wait_s = 0.3 if rank == 1 else 0.01
            compute_s = (0.5 if in_step else 0.21) - wait_s  # in step, the others wait inside their step
            compute_s = max(compute_s, 0.2)
            columns = {"total": wait_s + compute_s, "own": wait_s, "input": wait_s, "compute": compute_s}
            table = _summary.step_table(range(50), {name: [value] * 50 for name, value in columns.items()})
            diagnosis = {"kind": "input_bound", "operator": "decode", "cause": "storage_bound"}
            parts.append(
                {
                    "rank": rank,
                    "source": "segment",
                    "name": f"rank{rank}.hrseg",
                    "steps": table,
                    "histogram": {},
                    "diagnosis": {**diagnosis, "summary": "decode reads slowly", "advice": ["cache it"]},
                    "kernels": "[]",
                    "notes": [],
                }
            )
        cluster = hr.Cluster(parts)
        (slow,) = cluster.diagnosis.slow
        assert (slow.rank, slow.operator, slow.cause) == (1, "decode", "storage_bound")
        assert slow.late_s == pytest.approx(0.29, rel=1e-5)
        assert cluster.diagnosis.speedup == pytest.approx(0.5 / 0.21, rel=1e-5)
        assert "(decode, storage bound)" in cluster.diagnosis.advice[0]
        assert cluster.diagnosis.advice[1] == "on rank 1: cache it"
        assert any("waits for the input" in note for note in cluster.notes) == in_step

    def test_one_rank_is_not_compared(self, tmp_path: Path) -> None:
        diagnosis = hr.Cluster.load(write_job(tmp_path / "job", {}, ranks=1)).diagnosis
        assert diagnosis.verdict == "undetermined"
        assert "single rank" in diagnosis.summary


class TestText:
    def test_columns_that_do_not_fit_are_named(self, slow_input: Path) -> None:
        text = hr.Cluster.load(slow_input).to_text(60)
        said = " ".join(text[text.index("more columns") :].split("\n\n")[0].split())
        assert said.startswith("more columns in a wider terminal, on the page and in the JSON: ")
        assert said.endswith("file")
        assert "more columns" not in hr.Cluster.load(slow_input).to_text(200)

    @pytest.mark.parametrize("kind", ["", "SLOW RANK"])
    def test_names_of_the_program_write_no_control_characters(self, kind: str) -> None:
        name = "tr\x1b[31main"
        part = Part("Jobs", Table.of_rows(["job"], [{"job": name}]), "job", [f"{name}: 2 hours"])
        text = View("2 jobs", f"{name} is slow", True, kind, [f"stop {name}"], [part], [name]).text(80)
        assert text.count("tr?[31main") == 4
        assert "\x1b" not in text

    def test_what_is_not_known_is_no_number(self, tmp_path: Path) -> None:
        """Ranks without a step in common."""
        write_job(tmp_path / "job", {}, ranks=2)
        without_steps = TraceWriter(2, 4)
        without_steps.launch(1, 1_000, 1).kernel("gemm", 1, 1_000, 5)
        without_steps.write(tmp_path / "job/rank2.json.gz")
        cluster = hr.Cluster.load(tmp_path / "job")
        last = cluster.to_dict()["ranks"][-1]
        assert (last["rank"], last["steps"], last["late_s"], last["step_s"]) == (2, 0, None, None)
        assert "NaN" not in cluster.to_json()


class TestWhatIsKept:
    def test_a_second_look_reads_nothing_again(self, slow_input: Path) -> None:
        first, second = Counting(), Counting()
        cluster = hr.Cluster.load(slow_input, first)
        again = hr.Cluster.load(slow_input, second)
        assert (first.calls, second.calls) == (4, 0)
        assert again.to_json() == cluster.to_json()
        assert sorted(path.suffix for path in kept_in(slow_input).iterdir()) == [".json"] * 4

    def test_a_rank_that_changed_is_read_again(self, slow_input: Path, tmp_path: Path) -> None:
        hr.Cluster.load(slow_input, cache=tmp_path / "kept")
        assert not kept_in(slow_input).exists()
        other = write_job(tmp_path / "other", {1: {"compute": 300}})
        shutil.copy(other / "rank1.json.gz", slow_input / "rank1.json.gz")
        engine = Counting()
        hr.Cluster.load(slow_input, engine, cache=tmp_path / "kept")
        assert engine.calls == 1

    def test_an_interrupted_analysis_goes_on(self, slow_input: Path) -> None:
        def stop(done: int, of: int) -> None:
            assert of == 4
            if done == 3:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt), Counting() as interrupted:
            hr.Cluster.load(slow_input, interrupted, progress=stop)
        engine = Counting()
        assert hr.Cluster.load(slow_input, engine).diagnosis.slow[0].rank == 2
        assert engine.calls == 1

    @pytest.mark.parametrize("content", [b"", b"{}", b"headrace-summary 2 x 0\n{}", b"\xff" * 100])
    def test_a_damaged_summary_is_made_again(self, slow_input: Path, content: bytes) -> None:
        before = hr.Cluster.load(slow_input).to_json()
        for path in kept_in(slow_input).iterdir():
            path.write_bytes(content)
        engine = Counting()
        assert hr.Cluster.load(slow_input, engine).to_json() == before
        assert engine.calls == 4

    def test_a_cache_that_cannot_be_written_is_a_note(self, slow_input: Path, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("no folder")
        cluster = hr.Cluster.load(slow_input, cache=tmp_path / "file")
        assert cluster.diagnosis.slow[0].rank == 2
        assert any("summaries are not kept" in note for note in cluster.notes)

    def test_a_summary_kept_for_the_folder_above_has_its_own_name(
        self, slow_input: Path, tmp_path: Path
    ) -> None:
        shutil.copytree(slow_input, tmp_path / "runs/job")
        above = hr.Cluster.load(tmp_path / "runs", cache=tmp_path / "kept")
        assert {str(row["file"]) for row in above.ranks.rows()} == {f"job/rank{n}.json.gz" for n in range(4)}
        here = hr.Cluster.load(tmp_path / "runs/job", cache=tmp_path / "kept")
        assert {str(row["file"]) for row in here.ranks.rows()} == {f"rank{n}.json.gz" for n in range(4)}

    def test_a_summary_is_small_whatever_the_length(self) -> None:
        steps = range(1_000_000)
        table = _summary.step_table(steps, dict.fromkeys(_summary.COLUMNS, [0.5] * len(steps)))
        assert len(json.dumps(table)) < 32 << 10
        assert len(_summary.histogram([0.001 * i for i in range(1, 100_000)])) < 80


class TestDamage:
    def test_missing_and_damaged_ranks_are_listed(self, tmp_path: Path) -> None:
        job = write_job(tmp_path / "job", {3: {"input": 400}}, ranks=6)
        (job / "rank1.json.gz").unlink()
        whole = (job / "rank4.json.gz").read_bytes()
        (job / "rank4.json.gz").write_bytes(b"\x1f\x8b\x08" + b"no gzip")
        (job / "rank5.json.gz").write_bytes(whole[: len(whole) // 3])
        cluster = hr.Cluster.load(job)
        assert [slow.rank for slow in cluster.diagnosis.slow] == [3]
        assert cluster.missing[:2] == [1, 4]
        assert "rank4.json.gz" in [name for name, _ in cluster.read_errors]
        text = str(cluster)
        assert "no file of rank: 1, 4" in text
        assert "not read: rank4.json.gz:" in text

    def test_two_files_of_one_rank_are_said(self, slow_input: Path) -> None:
        (slow_input / "again").mkdir()
        shutil.copy(slow_input / "rank0.json.gz", slow_input / "again" / "rank0.json.gz")
        cluster = hr.Cluster.load(slow_input)
        assert len(cluster) == 4
        assert ("rank0.json.gz", "rank 0 has another file") in cluster.read_errors

    def test_nothing_to_read_is_one_line(self, tmp_path: Path) -> None:
        for path, said in ((tmp_path / "absent", "no such folder"), (tmp_path, "no rank of a job in it")):
            done = CliRunner().invoke(main, ["cluster", str(path)])
            assert done.exit_code == 1
            assert said in done.output
            assert done.output.count("\n") == 1
        (tmp_path / "rank0.json.gz").write_bytes(b"")
        done = CliRunner().invoke(main, ["cluster", str(tmp_path)])
        assert (done.exit_code, done.output.count("\n")) == (1, 1)
        assert "none of 1 ranks can be read" in done.output

    def test_a_lost_process_is_listed(self, slow_input: Path) -> None:
        class Broken(Executor):
            def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
                future: Future[Any] = Future()
                if args[0].rank == 1:
                    future.set_exception(RuntimeError("node 7 is gone"))
                else:
                    future.set_result(fn(*args, **kwargs))
                return future

        cluster = hr.Cluster.load(slow_input, Broken())
        assert cluster.missing == [1]
        assert cluster.read_errors == [("rank1.json.gz", "the engine failed: node 7 is gone")]

    def test_a_rank_that_ends_its_process_is_listed(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        job = write_job(tmp_path / "job", {2: {"input": 400}}, ranks=5)
        monkeypatch.setattr(_reading, "summarise_or_say", dies_at_rank_1)
        cluster = hr.Cluster.load(job)
        assert cluster.read_errors == [("rank1.json.gz", "reading it ended the process (out of memory?)")]
        assert [slow.rank for slow in cluster.diagnosis.slow] == [2]

    @pytest.mark.parametrize("thread", [False, True])  # processes are forked only from one without threads
    def test_a_script_needs_no_guard(self, slow_input: Path, tmp_path: Path, thread: bool) -> None:
        script = tmp_path / "script.py"
        script.write_text(
            "import sys, threading\nimport headrace as hr\nfrom headrace.cluster import _reading\n"
            "print('begins')\n"
            f"if {thread}: threading.Thread(target=threading.Event().wait, daemon=True).start()\n"
            f"assert _reading._context().get_start_method() == {'spawn' if thread else 'fork'!r}\n"
            "print(hr.Cluster.load(sys.argv[1]).to_text())\n"
        )
        command = [sys.executable, str(script), str(slow_input)]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert said.count("begins") == 1  # not in the processes that read
        assert "SLOW RANK" in said

    def test_two_analyses_at_once_over_one_cache(self, slow_input: Path) -> None:
        with ThreadPoolExecutor(4) as threads:
            loads = [threads.submit(hr.Cluster.load, slow_input, Counting()) for _ in range(4)]
            said = {load.result().to_json() for load in loads}
        assert len(said) == 1
        assert sorted(path.suffix for path in kept_in(slow_input).iterdir()) == [".json"] * 4


class TestEngines:
    def test_every_engine_gives_the_same(self, slow_input: Path, tmp_path: Path) -> None:
        with ThreadPoolExecutor(2) as threads:
            expected = hr.Cluster.load(slow_input, threads, cache=tmp_path / "a").to_json()
        assert hr.Cluster.load(slow_input, cache=tmp_path / "b").to_json() == expected
        words = ["cluster", str(slow_input), "--cache", str(tmp_path / "c"), "--format", "json"]
        done = CliRunner().invoke(main, [*words, "--engine", "concurrent.futures:ThreadPoolExecutor"])
        assert done.exit_code == 0, done.output
        assert json.loads(done.output) == json.loads(expected)

    @pytest.mark.parametrize("engine", ["none", "headrace:absent", "absent_module:Pool", "json:dumps"])
    def test_an_engine_that_is_none_is_wrong_usage(self, slow_input: Path, engine: str) -> None:
        done = CliRunner().invoke(main, ["cluster", str(slow_input), "--engine", engine])
        assert done.exit_code == 2, done.output
        assert done.output.startswith(f"headrace: engine {engine}") or "no engine" in done.output

    def test_files_behind_a_url(self, slow_input: Path, tmp_path: Path) -> None:
        fsspec = pytest.importorskip("fsspec")
        memory = fsspec.filesystem("memory")
        run = tmp_path / "run"
        record_rank(run, 0, 0.001, 0.002)
        for path in [*slow_input.glob("*.gz")]:
            memory.pipe(f"/bucket/job/{path.name}", path.read_bytes())
        memory.pipe("/bucket/run/rank0.hrseg", next(run.glob("*.hrseg")).read_bytes())
        with ThreadPoolExecutor(2) as threads:  # another process has another memory
            cluster = hr.Cluster.load("memory://bucket/job", threads, cache=tmp_path / "kept")
            assert cluster.diagnosis.slow[0].rank == 2
            engine = Counting()
            again = hr.Cluster.load("memory://bucket/job", engine, cache=tmp_path / "kept")
            assert (engine.calls, again.to_json()) == (0, cluster.to_json())
            assert len(hr.Cluster.load("memory://bucket/run", threads)) == 1
            with pytest.raises(hr.Error, match="no rank of a job"):
                hr.Cluster.load("memory://bucket/absent", threads)


def test_summaries_are_compared_in_any_order(slow_input: Path) -> None:
    parts = [_summary.summarise(files) for files in find_ranks(slow_input)[0]]
    assert max(len(_reading.encoded(part)) for part in parts) < 256 << 10
    one, other = hr.Cluster(parts), hr.Cluster(parts[::-1])
    assert one.to_json() == other.to_json()
    assert one.step_quantiles["p50"] is not None
    assert sum(sum(part["histogram"].values()) for part in parts) == 4 * STEPS


#: Records steps until it is ended; the rank's input takes so many seconds a batch.
RANK = """if True:
    import sys, time
    import headrace as hr
    run, rank, wait_s = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    def read():
        while True:
            time.sleep(wait_s)
            yield 0
    with hr.session(run=run, rank=rank):
        for i, _ in enumerate(hr.wrap(read(), name="train")):
            time.sleep(0.002)
            if i == 60:
                print("recorded", flush=True)
"""


def test_a_running_job_is_judged_and_a_killed_rank_stays_in_it(tmp_path: Path) -> None:
    run = tmp_path / "run"
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", RANK, str(run), str(rank), wait_s], stdout=subprocess.PIPE, text=True
        )
        for rank, wait_s in enumerate(("0.001", "0.012", "0.001"))
    ]
    try:
        for rank in ranks:
            assert rank.stdout is not None
            assert rank.stdout.readline() == "recorded\n"
        assert hr.Cluster.load(run).running == [0, 1, 2]
        ranks[1].kill()
        ranks[1].wait()
        cluster = hr.Cluster.load(run)
        assert cluster.running == [0, 2]
        assert [one.rank for one in cluster.diagnosis.slow] == [1]
        assert "still running: 2 ranks" in cluster.to_text()
        assert "SLOW RANK" in cluster.to_html()
    finally:
        for rank in ranks:
            rank.kill()
            rank.communicate()
