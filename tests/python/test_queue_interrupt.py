"""Ctrl-C ends a main thread that waits in a queue, at once and with KeyboardInterrupt."""

import signal
from collections.abc import Callable
from typing import Any

import pytest

WAITING = ("get", "get with a timeout", "put", "put with a timeout", "join", "wrapped")


@pytest.mark.parametrize("waiting", WAITING)
def test_ctrl_c(start: Callable[..., Any], waiting: str) -> None:
    program = start(
        """
        import sys, threading
        import headrace as hr

        with hr.session(run="interrupted"):
            q, full = hr.Queue(1), hr.Queue(1)
            full.put(0)
            calls = {
                "get": q.get,
                "get with a timeout": lambda: q.get(timeout=60),
                "put": lambda: full.put(1),
                "put with a timeout": lambda: full.put(1, timeout=60),
                "join": full.join,
                "wrapped": lambda: next(iter(hr.wrap(iter(q.get, None)))),
            }
            threading.Timer(0.05, lambda: print("waits", flush=True)).start()
            try:
                calls[sys.argv[1]]()
            except KeyboardInterrupt:
                print("interrupted", q.qsize(), full.qsize())
        """,
        waiting,
    )
    program.says("waits")
    program.process.send_signal(signal.SIGINT)
    result = program.result(timeout=20)
    assert (result.status, result.err) == (0, "")
    assert result.out == "interrupted 0 1\n"


def test_a_handler_that_raises_nothing_goes_on_waiting(start: Callable[..., Any]) -> None:
    program = start(
        """
        import signal, sys, threading
        import headrace as hr

        q = hr.Queue(1)
        signal.signal(signal.SIGUSR1, lambda *_: print("handled", flush=True))
        threading.Timer(0.05, lambda: print("waits", flush=True)).start()

        def bring():
            sys.stdin.readline()
            q.put("item")

        threading.Thread(target=bring).start()
        with hr.session(run="interrupted"):
            print(q.get(timeout=60))
        """
    )
    program.says("waits")
    program.process.send_signal(signal.SIGUSR1)
    program.says("handled")
    program.process.stdin.write("\n")
    program.process.stdin.flush()
    result = program.result(timeout=20)
    assert (result.status, result.out.strip(), result.err) == (0, "item", "")


@pytest.mark.parametrize("call", ["q.get", "q.get(timeout)", "q.put", "q.join"])
def test_a_signal_just_before_the_thread_sleeps(start: Callable[..., Any], call: str) -> None:
    # interrupt_main() marks it as arrived and interrupts nothing, as a signal does that arrives too early.
    result = start(
        """
        import _thread, sys, threading
        import headrace as hr

        with hr.session(run="interrupted"):
            q, full = hr.Queue(1), hr.Queue(1)
            full.put(0)
            calls = {
                "q.get": q.get,
                "q.get(timeout)": lambda: q.get(timeout=100),
                "q.put": lambda: full.put(1),
                "q.join": full.join,
            }
            threading.Timer(0.05, _thread.interrupt_main).start()
            try:
                calls[sys.argv[1]]()
            except KeyboardInterrupt:
                print("interrupted", q.qsize(), full.qsize())
        """,
        call,
    ).result(timeout=30)
    assert (result.status, result.out, result.err) == (0, "interrupted 0 1\n", "")
