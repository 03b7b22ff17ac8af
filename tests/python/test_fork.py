"""A fork of a recorded program: the recorder's threads end before it and go on after it."""

import platform
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.run.environment import recording_environment

PROGRAM = """
import ctypes, json, os, sys, threading, time, warnings

def threads():
    with open("/proc/self/stat") as file:
        return int(file.read().rpartition(")")[2].split()[17])

def named():
    names = []
    for task in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{task}/comm") as file:
                names.append(file.read().strip())
        except OSError:
            pass  # it has just ended
    return names

def fork(child=lambda: None):
    pid = os.fork()
    if pid == 0:
        child()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0

def wait_until(condition):
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end, named()
        time.sleep(0.005)

warnings.simplefilter("error")
"""

#: Counts where CPython does, behind Python's hooks before a fork and ahead of those after it: the C library
#: calls it in fork(). Other threads may not run meanwhile.
COUNTING = (
    PROGRAM
    + """
counts = []
count = ctypes.CFUNCTYPE(None)(lambda: counts.append(threads()))
ctypes.CDLL(None)["__register_atfork"](count, count, None, None)
"""
)

LOOP = """
for step in hr.wrap(range(60), name="train"):
    time.sleep(0.002)
    fork()
wait_until(lambda: "headrace" in named())
print("null")
"""


pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="counts by a function of glibc")


@pytest.fixture
def forks(execute: Callable[..., Any]) -> Callable[..., Any]:
    """``forks(source)`` runs a program that counts threads; what it wrote to stderr is an error."""

    def run(source: str, before: str = COUNTING) -> Any:
        text = before + "import headrace as hr\n" + textwrap.dedent(source)
        result = execute(text, HEADRACE_DIR="run")
        assert result.err == ""
        return result.json

    return run


def test_a_program_of_one_thread_has_one_while_it_forks(forks: Callable[..., Any], tmp_path: Path) -> None:
    assert forks(LOOP + "print(json.dumps(counts))") == [1] * 120
    report = hr.Report.load(tmp_path / "run")
    assert report.profile.sink.steps == 60


def test_in_a_process_of_headrace_run(execute: Callable[..., Any]) -> None:
    """The thread that looks for the function that makes the batches: from the interpreter's start on."""
    result = execute(
        COUNTING
        + textwrap.dedent(
            """
            def get_batch():
                time.sleep(0.006)
            for step in range(150):
                get_batch()
                time.sleep(0.003)
                fork()
            print(json.dumps(counts))
            """
        ),
        **recording_environment({}, "run"),
    )
    # It may have found the function, and nothing else is said.
    assert all(line.startswith("headrace: get_batch") for line in result.err.splitlines()), result.err
    assert result.json == [1] * 300


def test_of_multiprocessing(forks: Callable[..., Any], tmp_path: Path) -> None:
    counts = forks(
        """
        import multiprocessing
        context = multiprocessing.get_context("fork")
        decode = hr.operator(lambda item: item)
        for step in hr.wrap(range(20), name="train"):
            process = context.Process(target=decode, args=(step,))
            process.start()
            process.join()
            assert process.exitcode == 0
        print(json.dumps(counts))
        """
    )
    assert counts == [1] * 40
    assert hr.Report.load(tmp_path / "run").profile.sink.steps == 20


def test_with_queues_whose_levels_are_sampled(forks: Callable[..., Any]) -> None:
    """Their thread ends, too. The pipeline's own threads stay."""
    seen = forks(
        """
        warnings.simplefilter("ignore")
        passed = iter(hr.source(range(10**9)).filter(lambda number: number % 10**5 == 0).batch(1))
        for step in hr.wrap(range(5), name="train"):
            wait_until(lambda: next(passed) and "headrace-levels" in named())
            fork()
        print(json.dumps(seen))
        """,
        PROGRAM + "seen = []\nos.register_at_fork(before=lambda: seen.append(named()))\n",
    )
    assert len(seen) == 5
    assert not any("headrace-levels" in names for names in seen)


def test_of_several_threads_at_once(forks: Callable[..., Any], tmp_path: Path) -> None:
    """The recorder's thread goes on after the last one."""
    forks(
        """
        warnings.simplefilter("ignore")
        def many():
            for _ in range(50):
                fork()
        for step in hr.wrap(range(5), name="train"):
            workers = [threading.Thread(target=many) for _ in range(4)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
        wait_until(lambda: "headrace" in named())
        print("null")
        """,
        PROGRAM,
    )
    assert hr.Report.load(tmp_path / "run").profile.sink.steps == 5


def test_inside_the_hook_of_another_fork(forks: Callable[..., Any]) -> None:
    counts = forks(
        """
        inner = [0]
        def nested():
            if inner[0] < 1:
                inner[0] += 1
                fork()
        os.register_at_fork(before=nested)
        for step in hr.wrap(range(5), name="train"):
            inner[0] = 0
            fork()
        wait_until(lambda: "headrace" in named())
        print(json.dumps(counts))
        """
    )
    assert counts == [1] * 20


def test_in_a_forked_child_that_records_a_run_of_its_own(forks: Callable[..., Any]) -> None:
    assert (
        forks(
            """
        def child():
            counts.clear()
            with hr.session(run="of_the_child"):
                for step in hr.wrap(range(5), name="own"):
                    fork()
                wait_until(lambda: "headrace" in named())
            assert counts == [1] * 10, counts
        for step in hr.wrap(range(3), name="train"):
            fork(child)
        print(json.dumps(counts))
        """
        )
        == [1] * 6
    )


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="newer versions do not fork then")
def test_at_the_end_of_the_interpreter(forks: Callable[..., Any]) -> None:
    said = forks(
        """
        import atexit
        class Late:
            def __del__(self, fork=fork, write=os.write):
                fork()
                write(1, b"[1]\\n")
        _first_to_go = Late()
        atexit.register(fork)
        for step in hr.wrap(range(5), name="train"):
            pass
        atexit.register(fork)
        """,
        PROGRAM,
    )
    assert said == [1]


def test_while_sessions_begin_and_end(forks: Callable[..., Any]) -> None:
    assert (
        forks(
            """
            warnings.simplefilter("ignore")
            def sessions():
                for number in range(40):
                    with hr.session(run=f"run{number}"):
                        list(hr.wrap(range(3)))
            thread = threading.Thread(target=sessions)
            thread.start()
            while thread.is_alive():
                fork()
            print("null")
            """,
            PROGRAM,
        )
        is None
    )


def test_a_sampling_thread_goes_on_where_it_was(forks: Callable[..., Any]) -> None:
    counts, steps, ran = forks(
        """
        from headrace.common.sampling_thread import run_steps
        done = []
        def steps():
            for number in range(200):
                done.append((number, threading.get_ident()))
                yield 0.001
        run_steps(steps())
        while len(done) < 200:
            fork()
        wait_until(lambda: threads() == 1)
        fork()
        print(json.dumps([counts, [number for number, _ in done], len(done)]))
        """
    )
    assert set(counts) == {1}
    assert steps == list(range(ran)) == list(range(200))


#: A program that is warned where CPython counts the threads that are started after the fork (gh-137109).
COUNTED_LATE = """
import os, threading, time, warnings
warnings.simplefilter("always")
thread = threading.Thread(target=time.sleep, args=(0.2,))
os.register_at_fork(after_in_parent=thread.start)
if os.fork() == 0:
    os._exit(0)
"""


@pytest.mark.skipif(sys.version_info < (3, 12), reason="older versions do not warn")
def test_no_warning(execute: Callable[..., Any]) -> None:
    if "multi-threaded" in execute(COUNTED_LATE).err:
        pytest.skip("this release counts threads after the hooks that follow a fork")
    result = execute(
        PROGRAM.replace("error", "always")
        + "import headrace as hr\n"
        + LOOP.replace("fork()", "fork(); os.waitpid(os.forkpty()[0] or os._exit(0), 0)"),
        HEADRACE_DIR="run",
    )
    assert result.err == ""


@pytest.mark.skipif(sys.version_info < (3, 12), reason="older versions do not warn")
def test_a_program_with_threads_of_its_own_is_warned(execute: Callable[..., Any]) -> None:
    result = execute(
        PROGRAM.replace("error", "always")
        + "import headrace as hr\n"
        + "threading.Thread(target=time.sleep, args=(1,)).start()\n"
        + LOOP,
        HEADRACE_DIR="run",
    )
    assert "multi-threaded" in result.err
