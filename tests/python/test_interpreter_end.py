"""The interpreter ends while daemon threads of the program are inside Headrace: the exit status stays 0."""

import collections
import concurrent.futures
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def named_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that nobody named says at the end where it lies."""
    monkeypatch.setenv("HEADRACE_DIR", "run")


PREAMBLE = """
import sys, threading, time
import headrace as hr

def start(*targets):
    for target in targets:
        threading.Thread(target=target, daemon=True).start()
    time.sleep(0.15)
"""

PROGRAMS = {
    "bodies that sleep": """
        def iterate():
            for _ in hr.source(range(10**6)).map(lambda x: time.sleep(0.001) or x, workers=3).batch(4):
                pass
        start(iterate)
    """,
    "bodies that run Python code": """
        def iterate():
            for _ in hr.source(range(10**7)).map(lambda x: x + 1, workers=3).filter(bool).batch(4):
                pass
        start(iterate)
    """,
    "pass after pass": """
        pipe = hr.source(range(50)).map(lambda x: x + 1, workers=3).shuffle(8).batch(4)
        def iterate():
            while True:
                for _ in pipe:
                    pass
        start(iterate)
    """,
    "bodies that raise": """
        def odd(x):
            if x % 2:
                raise ValueError(x)
            return x
        def skip():
            for _ in hr.source(range(10**6)).map(odd, workers=3, on_error="skip"):
                pass
        def stop():
            while True:
                try:
                    list(hr.source(range(10**6)).map(odd, workers=3))
                except ValueError:
                    pass
        start(skip, stop)
    """,
    "an iterator that nobody asks": """
        kept = iter(hr.source(range(10**6)).map(lambda x: time.sleep(0.001) or x, workers=3).batch(4))
        next(kept)
    """,
    "reports": """
        pipe = hr.source(range(200)).map(lambda x: x + 1, workers=3).batch(4)
        list(pipe)
        def report():
            while True:
                made = pipe.report()
                made.to_text()
                made._repr_html_()
        start(report, pipe.report, report)
    """,
    "queues and wrapped loops": """
        q = hr.Queue(4)
        def put():
            while True:
                q.put(1)
        def loop():
            for _ in hr.wrap(iter(q.get, None)):
                pass
        def generate():
            while True:
                time.sleep(0.0001)
                yield [1]
        def wrapped():
            for _ in hr.wrap(generate()):
                sum(range(1000))
        joined = hr.Queue(1)
        joined.put(1)
        start(put, loop, wrapped, joined.join, hr.Queue(1).get)
    """,
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_the_exit_status_is_the_programs_own(program: str, tmp_path: Path) -> None:
    code = PREAMBLE + textwrap.dedent(program)

    def once(_: int) -> tuple[int, str]:
        ended = subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60
        )
        return ended.returncode, ended.stderr

    with concurrent.futures.ThreadPoolExecutor(4) as several:
        assert collections.Counter(several.map(once, range(20))) == {(0, ""): 20}


def test_a_thread_that_an_exit_handler_waits_for_comes_to_its_end(tmp_path: Path) -> None:
    code = PREAMBLE + textwrap.dedent("""
        import atexit
        pipe = hr.source(range(10**7)).map(lambda x: x + 1, workers=3)
        thread = threading.Thread(target=lambda: collections.deque(pipe, maxlen=0), daemon=True)
        thread.start()
        time.sleep(0.1)
    """)
    # Handlers run last in, first out: this one after Headrace's own, which ends the pass.
    code = "import atexit, collections\natexit.register(lambda: (thread.join(), print('joined')))\n" + code
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "joined\n", "")


def test_a_thread_is_parked_while_it_raises_a_bodys_error(tmp_path: Path) -> None:
    # The handler runs last: Headrace's own, which ends the passes that run, is over by then.
    code = "import atexit\natexit.register(lambda: (over.set(), raising.wait()))\n" + PREAMBLE
    code += textwrap.dedent("""
        from headrace.pipeline import _errors
        over, raising = threading.Event(), threading.Event()
        def raises_for_ever(*of):
            raising.set()
            while True:
                pass
        _errors.raise_operator_error = raises_for_ever
        def iterate():
            over.wait()
            list(hr.source([0]).map(lambda x: 1 // x))
        threading.Thread(target=iterate, daemon=True).start()
    """)
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert (ended.returncode, ended.stderr) == (0, "")
