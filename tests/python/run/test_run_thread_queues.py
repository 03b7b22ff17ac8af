"""Threads with queues under ``headrace run``: found in their stacks, recorded as a pipeline."""

from pathlib import Path
from typing import Any

import headrace as hr


def test_exceptions_of_queues_are_the_bare_ones(scripts: Any) -> None:
    name = scripts.write("""
        import queue, threading, time
        batches = queue.Queue(2)
        def make():
            for n in range(60):
                time.sleep(0.03)
                batches.put(n)
        threading.Thread(target=make).start()
        empty = total = 0
        while total < 60:
            try:
                batches.get(timeout=0.01)
                total += 1
            except queue.Empty:
                empty += 1
        try:
            batches.get_nowait()
        except queue.Empty as error:
            assert error.args == ()
        print(total, empty > 30)
        batches.get(timeout=-1)
    """)
    bare, recorded = scripts.bare(name), scripts.run(name)
    assert recorded.status == bare.status == 1
    assert (recorded.out, recorded.script_err) == (bare.out, bare.err)
    assert "ValueError: 'timeout' must be a non-negative number" in bare.err


def test_a_wrapped_loop_over_a_queue_is_one_loader(scripts: Any, tmp_path: Path) -> None:
    name = scripts.write("""
        import queue, threading, time
        import headrace as hr
        batches = queue.Queue(2)
        def make():
            for n in range(80):
                time.sleep(0.01)
                batches.put(n)
            time.sleep(1)
            for n in range(80):
                time.sleep(0.01)
                batches.put(n)
            batches.put(None)
        threading.Thread(target=make).start()
        time.sleep(1.5)
        for batch in hr.wrap(iter(batches.get, None), name="train"):
            time.sleep(0.001)
    """)
    result = scripts.run("--out", "run", name)
    assert result.status == 0, result.err
    assert hr.Report.load(tmp_path / "run").loaders == ["train"]
