"""`map(executor="process")`: bodies in worker processes."""

from __future__ import annotations

import functools
import gc
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as hr
import process_bodies as bodies
from headrace.pipeline import OperatorError
from headrace.pipeline._process_map import WorkerPool
from recorded_loops import played
from stored_reports import StoredReports


@pytest.fixture(autouse=True)
def run_folder(tmp_path: Path) -> Iterator[None]:
    with hr.session(run=tmp_path / "run"):
        yield


@pytest.fixture(autouse=True)
def no_process_is_left() -> Iterator[None]:
    before = set(children())
    yield
    gc.collect()
    assert set(children()) <= before


def children(of: int | None = None) -> list[int]:
    """Processes whose parent is this one, zombies included."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == (of or os.getpid()):
            found.append(int(entry.name))
    return found


def slots_mapped() -> int:
    return Path("/proc/self/maps").read_text().count("memfd:headrace")


def in_processes(items: Any, body: Any, workers: int = 1, **options: Any) -> hr.Pipeline[Any]:
    return hr.source(items).map(body, workers=workers, executor="process", **options)


# --- what comes out -----------------------------------------------------------------------------------------


def test_items_come_in_order() -> None:
    for workers in (1, 3):
        assert list(in_processes(range(150), bodies.uneven, workers)) == [2 * x for x in range(150)]


def test_unordered_gives_every_item_once() -> None:
    out = list(in_processes(range(150), bodies.uneven, 3, ordered=False))
    assert sorted(out) == [2 * x for x in range(150)]


def test_goes_together_with_the_other_operators() -> None:
    pipe = in_processes(range(40), bodies.large, 2).filter(lambda a: a[0] % 2 == 0).batch(4, collate=np.stack)
    batches = list(pipe)
    assert [b.shape for b in batches] == [(4, 50_000)] * 5
    assert [int(x) for b in batches for x in b[:, -1]] == list(range(0, 40, 2))


RECORDS = np.zeros(3000, dtype=[("a", "i4"), ("b", "f8", (2,))])
RECORDS["a"] = np.arange(3000)
BIG = np.arange(120_000, dtype=np.float32).reshape(300, 400)
READ_ONLY = BIG.copy()
READ_ONLY.flags.writeable = False
VALUES: dict[str, Any] = {
    "none": None,
    "text": "é" * 10_000,
    "large text": "é" * 1_000_000,
    "bytes": b"abc",
    "large bytes": bytes(range(256)) * 10_000,
    "bytearray": bytearray(range(256)) * 1000,
    "array": BIG,
    "transposed": BIG.T,
    "fortran": np.asfortranarray(BIG),
    "not contiguous": BIG[::3, 1::2],
    "reversed": BIG[::-1],
    "zero-size": np.empty((0, 7), dtype=np.int16),
    "scalar": np.array(2.5),
    "small": np.arange(5),
    "structured": RECORDS,
    "strings": np.array(["a", "bcd"] * 4000),
    "dates": np.arange("2020-01", "2020-02", dtype="datetime64[D]"),
    "objects": np.array([1, "two", None], dtype=object),
    "read-only": READ_ONLY,
    "nested": {"a": [BIG, (BIG + 1, b"x")], "b": bodies.Point(3, BIG[0])},
    "many": [np.full(2000, i) for i in range(1500)],
    "instance": bodies.Labelled(BIG, "cat"),
    "matrix": BIG.view(np.matrix),
    "huge": np.arange(6_000_000, dtype=np.int64),
}


def equal(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and bool((np.asarray(a) == np.asarray(b)).all())
    if isinstance(a, dict):
        return list(a) == list(b) and all(equal(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(equal(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, bodies.Labelled):
        return equal(vars(a), vars(b))
    return bool(a == b)


def test_whatever_can_be_pickled_goes_there_and_comes_back() -> None:
    out = dict(zip(VALUES, in_processes(VALUES.values(), bodies.same), strict=True))
    assert [name for name, value in VALUES.items() if not equal(value, out[name])] == []


def test_arrays_may_be_written_to_as_before() -> None:
    items = [BIG, READ_ONLY, np.arange(5)]
    assert [got["writeable"] for got in in_processes(items, bodies.sums)] == [True, False, True]
    out = list(in_processes(items, bodies.same))
    assert [a.flags.writeable for a in out] == [True, False, True]
    out[0][:] = 1
    out[2][:] = 1
    assert (out[0] == 1).all()


def test_arrays_are_aligned() -> None:
    pair = [np.arange(5001, dtype=np.uint8), np.arange(10_000, dtype=np.complex128)]
    for _, array in in_processes([pair] * 3, bodies.same):
        assert array.flags.aligned
        assert array.ctypes.data % 64 == 0


def test_tensors() -> None:
    torch = pytest.importorskip("torch")
    pipe = in_processes(range(5), bodies.tensors).map(bodies.same, executor="process")
    for x, item in enumerate(pipe):
        wanted = bodies.tensors(x)
        assert list(item) == list(wanted)
        for name, tensor in wanted.items():
            assert item[name].dtype == tensor.dtype, name
            assert item[name].requires_grad == tensor.requires_grad, name
            assert torch.equal(item[name], tensor), name
    held = [str(entry.readlink()) for entry in Path("/proc/self/fd").iterdir() if entry.is_symlink()]
    assert not [link for link in held if "memfd" in link or "torch" in link], "no descriptor per tensor"


def test_results_outlive_the_pipeline_and_slots_are_used_again() -> None:
    before = slots_mapped()
    pipe = in_processes(range(60), bodies.large, 2, capacity=4)
    held = []
    for i, array in enumerate(pipe):
        if i % 10 == 0:
            held.append(array)
    assert slots_mapped() - before < 30
    del array
    pipe.close()
    gc.collect()
    assert slots_mapped() - before == len(held)
    assert [int(a[0]) for a in held] == list(range(0, 60, 10))
    assert all((a == a[0]).all() for a in held)
    held.clear()
    assert slots_mapped() == before


def test_memory_beyond_the_bound_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.pipeline._process_map._MIN_BYTES", 2 << 20)
    monkeypatch.setattr("headrace.pipeline._process_map._MEMORY_SHARE", 0)
    before = slots_mapped()
    out = list(in_processes(range(40), bodies.large))
    assert [int(a[-1]) for a in out] == list(range(40))
    assert slots_mapped() - before <= 5
    again = list(in_processes(out, bodies.same))
    assert all((a == b).all() for a, b in zip(out, again, strict=True))


def test_sizes_that_grow() -> None:
    items = [np.full(1000 * n, n) for n in range(1, 60)]
    out = list(in_processes(items, bodies.double, 2))
    assert all((a == 2 * b).all() and len(a) == len(b) for a, b in zip(out, items, strict=True))


def test_functions_with_arguments_of_their_own() -> None:
    add = functools.partial(np.add, BIG)
    assert all((a == BIG + i).all() for i, a in enumerate(in_processes(range(4), add, name="add")))


def test_items_from_a_device_reach_the_processes() -> None:
    pipe = hr.source(range(4)).map(bodies.array_of, name="load").to_device("cpu")
    assert list(pipe.map(bodies.total, executor="process")) == [0.0, 5000.0, 10000.0, 15000.0]


# --- processes ----------------------------------------------------------------------------------------------


def test_bodies_run_in_as_many_processes_as_workers_and_stay_for_later_passes() -> None:
    pipe = in_processes(range(200), bodies.pid_of, 2)
    first = set(pipe)
    assert len(first) == 2
    assert os.getpid() not in first
    assert set(pipe) == first
    assert set(children()) >= first
    pipe.close()
    assert not set(children()) & first
    assert len(set(pipe) - first) == 2


def test_workers_change_while_it_runs() -> None:
    pipe = in_processes(range(500), bodies.uneven, name="work")
    out = []
    for i, item in enumerate(pipe):
        out.append(item)
        if i % 100 == 30:
            pipe.set_workers("work", 1 + i // 100 % 3)
    assert out == [2 * x for x in range(500)]


def test_early_break_and_next_pass() -> None:
    pipe = in_processes(range(1000), bodies.double, 2).batch(2)
    for batch in pipe:
        assert batch == [0, 2]
        break
    assert next(iter(pipe)) == [0, 2]


def test_a_late_answer_belongs_to_nobody() -> None:
    pipe = in_processes(range(40), bodies.late_after_3)
    for item in pipe:
        if item == 2:
            break
    assert list(pipe) == list(range(40))


def test_a_long_body_holds_up_neither_the_stop_nor_the_close() -> None:
    before = set(children())
    pipe = in_processes(range(10), bodies.slow_after_3, 2)
    iterator = iter(pipe)
    assert [next(iterator) for _ in range(3)] == [0, 1, 2]
    own = set(children()) - before
    assert own
    del iterator
    pipe.close()
    assert not set(children()) & own


def test_pickled_pipelines_are_the_same() -> None:
    pipe = pickle.loads(pickle.dumps(in_processes(range(10), bodies.double, 2).batch(5)))
    assert list(pipe) == [[0, 2, 4, 6, 8], [10, 12, 14, 16, 18]]


def test_a_forked_process_has_its_own_workers() -> None:
    pipe = in_processes(range(20), bodies.double)
    wanted = [2 * x for x in range(20)]
    assert list(pipe) == wanted
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            status = 0 if list(pipe) == wanted else 2
            pipe.close()
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert list(pipe) == wanted


def test_in_workers_of_pytorchs_loader() -> None:
    data = pytest.importorskip("torch.utils.data")
    loader = data.DataLoader(in_processes(range(40), bodies.double), batch_size=4, num_workers=2)
    assert sorted(int(x) for batch in loader for x in batch) == [2 * x for x in range(40)]


# --- errors -------------------------------------------------------------------------------------------------


def test_a_bodys_exception_comes_with_its_traceback() -> None:
    with pytest.raises(KeyError) as caught:
        list(in_processes(range(100), bodies.fails_at_17, 2))
    assert isinstance(caught.value, OperatorError)
    assert (caught.value.operator, caught.value.item) == ("fails_at_17", 17)
    assert isinstance(caught.value.__cause__, KeyError)
    assert "in fails_at_17" in str(caught.value.__cause__.__cause__)


@pytest.mark.parametrize(
    ("body", "kind", "text"),
    [
        (bodies.strange, RuntimeError, r"StrangeError: 5 and 6"),
        (bodies.unpicklable_error, RuntimeError, r"ValueError: with a lock"),
        (bodies.unpicklable, pickle.PicklingError, r"unpicklable returns cannot be sent"),
    ],
)
def test_what_cannot_be_pickled_is_told_as_text(body: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        list(in_processes(range(3), body))


def test_items_that_cannot_be_pickled() -> None:
    with pytest.raises(OperatorError, match=r"same.*item 1.*pickle"):
        list(in_processes([1, lambda: 2], bodies.same))


def test_functions_that_cannot_be_sent_are_refused_at_once() -> None:
    source = hr.source(range(3))
    with pytest.raises(hr.UsageError, match=r"<lambda> cannot be pickled.*executor='thread'"):
        source.map(lambda x: x, executor="process")
    with pytest.raises(hr.UsageError, match="interpreter lock"):
        source.map(hr.native_body(1234, output_bytes=4), executor="process", name="native")


def test_skipped_items_are_counted() -> None:
    pipe = in_processes(range(50), bodies.fails_at_17, 2, on_error="skip")
    assert list(pipe) == [x for x in range(50) if x != 17]
    assert next(op.failures for op in pipe.report().profile.operators if op.name == "fails_at_17") == 1


def test_a_killed_worker_ends_the_pass_with_what_is_known() -> None:
    pipe = in_processes(range(100), bodies.killed_at_30, 2)
    got = []
    with pytest.raises(OperatorError, match=r"'killed_at_30', item 30:.*worker process died \(signal 9"):
        got.extend(pipe)
    assert caught_items(pipe) >= 30


def caught_items(pipe: hr.Pipeline[Any]) -> int:
    return next(op.items for op in pipe.report().profile.operators if op.executor == "process")


def test_a_worker_that_leaves() -> None:
    with pytest.raises(OperatorError, match=r"item 5:.*worker process died \(exit code 3\)"):
        list(in_processes(range(100), bodies.exits_at_5))


def test_a_killed_worker_is_replaced_where_failures_are_skipped(tmp_path: Path) -> None:
    jobs = [(str(tmp_path / "flag"), x) for x in range(40)]
    pipe = in_processes(jobs, bodies.killed_once, on_error="skip")
    assert list(pipe) == [x for x in range(40) if x != 10]
    assert list(pipe) == list(range(40))


# --- scripts ------------------------------------------------------------------------------------------------


def script(path: Path, text: str) -> Path:
    path.write_text(textwrap.dedent(text))
    return path


def run(path: Path, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=os.environ | {"HEADRACE_DIR": str(tmp_path)},
    )


def test_functions_of_a_script(tmp_path: Path) -> None:
    path = script(
        tmp_path / "train.py",
        """
        import headrace as hr
        class Thing:
            def __init__(self, x): self.x = x
        def make(x): return Thing(x + 1)
        if __name__ == "__main__":
            print([thing.x for thing in hr.source(range(5)).map(make, workers=2, executor="process")])
        """,
    )
    done = run(path, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[1, 2, 3, 4, 5]\n", "")


def test_a_script_without_a_guard_is_told_so(tmp_path: Path) -> None:
    path = script(
        tmp_path / "train.py",
        """
        import headrace as hr
        def make(x): return x
        print(list(hr.source(range(5)).map(make, executor="process")))
        """,
    )
    done = run(path, tmp_path)
    assert done.returncode == 1
    assert "if __name__ == '__main__':" in done.stderr
    assert done.stdout == ""


def test_a_function_of_no_script_is_refused(tmp_path: Path) -> None:
    text = (
        "import headrace as hr\ndef f(x): return x\ntry: hr.source([1]).map(f, executor='process')\n"
        "except hr.UsageError as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=60, check=False
    )
    assert "move it into a module" in done.stdout


RUNNING = """
    import os, sys, time
    import headrace as hr
    def slow(x):
        if x == 3: time.sleep(3600)
        return os.getpid()
    if __name__ == "__main__":
        pipe = hr.source(range(100)).map(slow, workers=2, executor="process")
        iterator = iter(pipe)
        print(next(iterator), flush=True)
        {then}
"""


def gone(pid: int) -> bool:
    """Ended within ten seconds."""
    until = time.monotonic() + 10
    while time.monotonic() < until:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        if "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text():
            return True
        time.sleep(0.02)
    return False


def test_interpreter_exit_while_running(tmp_path: Path) -> None:
    done = run(script(tmp_path / "train.py", RUNNING.format(then="print('leaving')")), tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    pid, text = done.stdout.splitlines()
    assert text == "leaving"
    assert gone(int(pid))


def test_keyboard_interrupt_goes_to_the_training_loop(tmp_path: Path) -> None:
    then = "list(iterator)"
    path = script(tmp_path / "train.py", RUNNING.format(then=then))
    with subprocess.Popen(
        [sys.executable, str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=os.environ | {"HEADRACE_DIR": str(tmp_path)},
    ) as started:
        assert started.stdout is not None
        assert started.stderr is not None
        pid = int(started.stdout.readline())
        workers = children(of=started.pid)
        os.killpg(started.pid, signal.SIGINT)
        errors = started.stderr.read()
        assert started.wait(30) == -signal.SIGINT
    assert errors.count("Traceback") == 1
    assert "KeyboardInterrupt" in errors
    assert pid in workers
    assert all(gone(worker) for worker in workers)


def test_no_worker_outlives_a_killed_training_loop(tmp_path: Path) -> None:
    path = script(tmp_path / "train.py", RUNNING.format(then="list(iterator)"))
    with subprocess.Popen(
        [sys.executable, str(path)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"HEADRACE_DIR": str(tmp_path)},
    ) as started:
        assert started.stdout is not None
        int(started.stdout.readline())
        workers = children(of=started.pid)
        assert workers
        started.kill()
        assert started.wait(30) == -signal.SIGKILL
    assert all(gone(worker) for worker in workers)


# --- recording ----------------------------------------------------------------------------------------------


def test_the_report_shows_service_as_the_worker_process_measured_it(stored: StoredReports) -> None:
    report = stored(lambda: played(in_processes(range(250), bodies.spin, 1)))
    spin = next(op for op in report.profile.operators if op.name == "spin")
    assert spin.executor == "process"
    assert spin.kind == "map"
    assert spin.items == 250
    assert spin.cpu_s == pytest.approx(250 * 0.004, rel=0.2)
    assert report.diagnosis.operator == "spin"
    assert report.diagnosis.cause in ("too_few_workers", "cpu_saturated")
    wait = report.profile.sink.wait_share * report.profile.elapsed_s
    assert sum(row.seconds for row in report.profile.stall_ledger) == pytest.approx(wait, rel=0.01)


def test_large_arrays_and_little_work_are_a_hand_off(stored: StoredReports) -> None:
    # Many, so that the first ones, whose memory is new, are few of them.
    items = [np.zeros(2_000_000)] * 300
    report = stored(lambda: played(in_processes(items, bodies.same, 1, capacity=2)))
    assert report.diagnosis.cause == "handoff"
    assert report.diagnosis.operator == "same.handoff"


def test_starting_is_nobodys_service() -> None:
    pipe = in_processes(range(20), bodies.double)
    assert len(list(pipe)) == 20
    for op in pipe.report().profile.operators:
        assert op.busy_s < 0.2


def test_pools_without_a_process_cost_none() -> None:
    pool = WorkerPool("x", None, 1)  # type: ignore[arg-type]
    assert pool.pids == []
    pool.close()
