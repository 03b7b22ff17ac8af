"""Whatever dies, what was counted stays; whatever ends, ends at once and leaves nothing behind."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace import _core

LOOP = """
    import sys, threading
    import headrace as hr

    q = hr.Queue(8, name="decoded")

    @hr.operator("decode")
    def decode(item):
        return item

    def produce():
        for item in range(10**9):
            q.put(decode(item))

    threading.Thread(target=produce, daemon=True).start()
    loader = hr.wrap(iter(q.get, None), name="train", run="run")
    for number, batch in enumerate(loader):
        if number == 499:
            print("half", flush=True)
            sys.stdin.readline()
"""


def shared_memory() -> set[str]:
    """Live segments of this user."""
    folder = Path(f"/dev/shm/headrace-{os.geteuid()}")
    return {path.name for path in folder.iterdir()} if folder.exists() else set()


def left_by(pid: int) -> set[str]:
    return {name for name in shared_memory() if name.startswith(f"{pid}-")}


class TestKilled:
    def test_the_trainer(self, start: Callable[..., Any], tmp_path: Path) -> None:
        program = start(LOOP)
        program.says("half")
        program.process.kill()
        program.process.wait()
        report = hr.Report.load(tmp_path / "run")
        assert (report.loader, report.profile.sink.steps) == ("train", 500)
        assert report.profile.finished
        decode = next(one for one in report.profile.operators if one.name == "decode")
        assert 500 <= decode.items <= 510
        # Reading changed nothing; the next run of this user, whatever it is, brings the segment home: one of
        # another test may have.
        assert left_by(program.process.pid) or (tmp_path / "run/rank0.hrseg").exists()
        start("import headrace as hr; list(hr.wrap([1], run='next'))").result()
        assert left_by(program.process.pid) == set()
        assert [path.name for path in (tmp_path / "run").glob("*.hrseg*")] == ["rank0.hrseg"]
        assert hr.Report.load(tmp_path / "run").to_dict() == report.to_dict()

    def test_twenty_at_once(self, start: Callable[..., Any], tmp_path: Path) -> None:
        source = """
            import os, signal, sys
            import headrace as hr

            for item in hr.wrap(range(100), run="run", rank=int(sys.argv[1])):
                if item == 50 + int(sys.argv[1]):
                    os.kill(os.getpid(), signal.SIGKILL)
        """
        programs = [start(source, rank) for rank in range(8)]
        assert {program.result().status for program in programs} == {-signal.SIGKILL}
        steps = [hr.Report.load(tmp_path / "run", rank=rank).profile.sink.steps for rank in range(8)]
        assert steps == [51 + rank for rank in range(8)]

    @pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
    def test_a_worker(self, execute: Callable[..., Any], tmp_path: Path, method: str) -> None:
        execute(
            """
            import multiprocessing, os, signal, sys
            import headrace as hr

            @hr.operator("decode")
            def decode(item):
                return item

            def work(answers):
                for item in range(30):
                    decode(item)
                answers.put("done")
                answers.close()
                answers.join_thread()
                signal.pause()

            def batches(context):
                workers = []
                answers = context.Queue()
                for _ in range(2):
                    workers.append(context.Process(target=timed, args=(answers,)))
                    workers[-1].start()
                for _ in workers:
                    assert answers.get(timeout=60) == "done"
                for worker in workers:
                    os.kill(worker.pid, signal.SIGKILL)
                    worker.join()
                    yield worker.exitcode

            timed = hr.operator("work")(work)
            if __name__ == "__main__":
                context = multiprocessing.get_context(sys.argv[1])
                loader = hr.wrap(batches(context), name="train", run="run")
                assert list(loader) == [-9, -9]
                report = loader.report()
                items = {one.name: one.items for one in report.profile.operators}
                assert items["decode"] == 60, items
            """,
            method,
        )
        profile = hr.Report.load(tmp_path / "run").profile
        assert {one.name: one.items for one in profile.operators}["decode"] == 60

    def test_the_trainer_does_not_take_its_workers_along(
        self, start: Callable[..., Any], tmp_path: Path
    ) -> None:
        program = start(
            """
            import multiprocessing, os, signal, sys, time
            import headrace as hr

            @hr.operator("decode")
            def decode(item):
                return item

            def work(parent):
                while os.getppid() == parent:
                    decode(1)
                for item in range(1000):
                    decode(item)
                open("survived", "w").close()

            if __name__ == "__main__":
                context = multiprocessing.get_context("fork")
                loader = hr.wrap(range(10), name="train", run="run")
                loop = iter(loader)
                next(loop)
                context.Process(target=work, args=(os.getpid(),)).start()
                print("half", flush=True)
                time.sleep(60)
            """
        )
        program.says("half")
        program.process.kill()
        program.process.wait()
        assert hr.Report.load(tmp_path / "run").profile.sink.steps == 1
        end = time.monotonic() + 30
        while not (tmp_path / "survived").exists():
            assert time.monotonic() < end
            time.sleep(0.01)

    def test_what_runs_is_not_taken_for_dead(self, start: Callable[..., Any], tmp_path: Path) -> None:
        program = start(LOOP)
        program.says("half")
        for _ in range(3):
            assert hr.Report.load(tmp_path / "run").profile.sink.steps == 500
        assert left_by(program.process.pid)
        program.process.kill()
        program.process.wait()
        assert hr.Report.load(tmp_path / "run").profile.finished
        _core.collect_orphans("")
        assert left_by(program.process.pid) == set()


class TestFork:
    def test_the_child_iterates_on_and_the_parents_figures_are_its_own(
        self, execute: Callable[..., Any], tmp_path: Path
    ) -> None:
        execute(
            """
            import os
            import headrace as hr

            @hr.operator("decode")
            def decode(item):
                return item

            loader = hr.wrap(map(decode, range(100)), name="train", run="run")
            got, child = [], None
            for item in loader:
                got.append(item)
                if item == 49:
                    child = os.fork()
            assert got == list(range(100))
            if child == 0:
                assert list(hr.wrap([1, 2], name="of the child")) == [1, 2]
                os._exit(7)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
            assert loader.report().profile.sink.steps == 100
            """
        )
        report = hr.Report.load(tmp_path / "run", loader="train")
        assert (report.profile.sink.steps, report.profile.epochs) == (100, 1)
        assert sorted(path.name for path in (tmp_path / "run").glob("*.hrseg*")) == ["rank0.hrseg"]

    def test_a_child_that_ends_in_order_closes_nothing(
        self, execute: Callable[..., Any], tmp_path: Path
    ) -> None:
        execute(
            """
            import os, sys
            import headrace as hr

            loader = hr.wrap(range(10), name="train", run="run")
            for item in loader:
                if item == 4 and os.fork() == 0:
                    del loader
                    sys.exit(0)
                if item == 5:
                    os.wait()
            assert os.path.exists("run/rank0.live")
            assert loader.report().profile.sink.steps == 10
            """
        )
        profile = hr.Report.load(tmp_path / "run").profile
        assert profile.sink.steps == 10

    def test_queues_and_operators_in_a_forked_child(self, execute: Callable[..., Any]) -> None:
        execute(
            """
            import os, threading
            import headrace as hr

            q = hr.Queue(4, name="q")
            stop = threading.Event()

            @hr.operator("busy")
            def busy():
                q.put(1)
                q.get()

            def work():
                while not stop.is_set():
                    busy()

            with hr.session(run="run"):
                threads = [threading.Thread(target=work) for _ in range(3)]
                for thread in threads:
                    thread.start()
                # A child inherits the locks as they are at that moment: none may be held for ever.
                for _ in range(40):
                    child = os.fork()
                    if child == 0:
                        mine = hr.Queue(2)
                        for number in range(50):
                            mine.put(number)
                            assert mine.get() == number
                            with hr.operator("block"):
                                pass
                        assert list(hr.wrap([1, 2, 3])) == [1, 2, 3]
                        os._exit(3)
                    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
                stop.set()
                for thread in threads:
                    thread.join()
            """
        )

    def test_a_daemon_that_opens_a_run_of_its_own(self, execute: Callable[..., Any], tmp_path: Path) -> None:
        execute(
            """
            import os
            import headrace as hr

            list(hr.wrap([1, 2, 3], name="parent", run="parents"))
            child = os.fork()
            if child == 0:
                for _ in hr.wrap([1, 2], name="child", run="childs"):
                    pass
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
            """
        )
        assert hr.Report.load(tmp_path / "childs").profile.sink.steps == 2
        assert hr.Report.load(tmp_path / "parents").profile.sink.steps == 3


ENDS = {
    "in mid-loop": "sys.exit(0)",
    "by an exception": "raise SystemExit(0)",
    "with a loop kept open": "globals()['kept'] = loop; sys.exit(0)",
    "without any clean-up": "sys.stdout.flush(); os._exit(0)",
}


class TestEnd:
    @pytest.mark.parametrize("end", ENDS)
    @pytest.mark.parametrize("daemon", [True, False])
    def test_with_threads_that_wait_in_queues(
        self, start: Callable[..., Any], tmp_path: Path, end: str, daemon: bool
    ) -> None:
        program = start(
            f"""
            import os, sys, threading
            import headrace as hr

            raw, done = hr.Queue(2, name="raw"), hr.Queue(2, name="done")

            @hr.operator("decode")
            def decode(item):
                return item

            def read():
                for item in range(10**9):
                    raw.put(item)

            def work():
                while True:
                    done.put(decode(raw.get()))

            def wait():
                with hr.operator("waits"):
                    hr.Queue(name="never").get()

            for body in (read, work, work, wait):
                threading.Thread(target=body, daemon=True).start()
            if not {daemon}:
                # Ends by itself, after the main thread.
                threading.Thread(target=lambda: [done.get(timeout=5) for _ in range(50)]).start()
            loader = hr.wrap(iter(done.get, None), name="train", run="run")
            loop = iter(loader)
            for _ in range(200):
                next(loop)
            {ENDS[end]}
            """
        )
        result = program.result(timeout=60)
        assert (result.status, result.err) == (0, "")
        assert hr.Report.load(tmp_path / "run").profile.sink.steps == 200
        _core.collect_orphans("")  # of those that ended without any clean-up
        assert left_by(program.process.pid) == set()

    def test_many_times(self, start: Callable[..., Any]) -> None:
        source = """
            import threading
            import headrace as hr

            q = hr.Queue(1)

            def work():
                while True:
                    with hr.operator("x"):
                        q.put(1)
                        q.get()

            for _ in range(4):
                threading.Thread(target=work, daemon=True).start()
            loader = hr.wrap(range(3), run="run")
            list(loader)
        """
        programs = [start(source) for _ in range(12)]
        for program in programs:
            result = program.result()
            assert (result.status, result.err) == (0, "")

    def test_an_exception_in_the_loop_is_the_programs_own(
        self, start: Callable[..., Any], tmp_path: Path
    ) -> None:
        result = start(
            """
            import headrace as hr

            for item in hr.wrap(range(10), run="run"):
                if item == 6:
                    raise RuntimeError("the user's")
            """
        ).result()
        assert result.status == 1
        assert result.err.rstrip().endswith("RuntimeError: the user's")
        assert hr.Report.load(tmp_path / "run").profile.sink.steps == 7

    def test_nothing_is_left_in_shared_memory(self, start: Callable[..., Any]) -> None:
        program = start(
            """
            import headrace as hr

            for number in range(20):
                with hr.session(run=f"run {number}"):
                    list(hr.wrap([1]))
            for number in range(20):
                list(hr.wrap([1], run=f"other {number}"))
            kept = [hr.wrap([1], run=f"kept {number}") for number in range(20)]
            list(hr.wrap([1]))
            """
        )
        assert program.result().status == 0
        assert left_by(program.process.pid) == set()

    def test_recording_after_the_end_is_harmless(self, execute: Callable[..., Any]) -> None:
        result = execute(
            """
            import atexit
            import headrace as hr
            from headrace.record import session

            @hr.operator("late")
            def late(item):
                return item

            q = hr.Queue(4)
            loader = hr.wrap(range(5), run="run")

            def at_the_very_end():
                q.put(late(1))
                assert q.get() == 1
                assert list(loader) == list(range(5))
                assert list(hr.wrap([7])) == [7]
                print("fine")

            # Registered after headrace: runs before it closes. Before headrace: runs after it has closed.
            atexit.register(at_the_very_end)
            atexit.unregister(session.close_all)
            atexit.register(session.close_all)
            """
        )
        assert result.out == "fine\n"
        assert result.err == ""
