"""Threads with queues under ``headrace run``: found in their stacks, recorded as a pipeline."""

from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from stored_reports import StoredReports

PIPELINE = """
    import queue, sys, threading, time
    read_s, decode_s, train_s, decoders, kind = {values}
    raw, batches = getattr(queue, kind)(8), queue.Queue(4)
    def read():
        for n in range({items}):
            time.sleep(read_s)
            raw.put(n)
        for _ in range(decoders):
            raw.put(1 << 30)
    def decode():
        while (n := raw.get()) != 1 << 30:
            time.sleep(decode_s)
            batches.put(n * 2, timeout=60)
            raw.task_done()
        batches.put(None)
    threads = [threading.Thread(target=each) for each in (read, *[decode] * decoders)]
    for each in threads:
        each.start()
    seen, ends = [], 0
    while ends < decoders:
        batch = batches.get()
        if batch is None:
            ends += 1
            continue
        seen.append(batch)
        time.sleep(train_s)
    for each in threads:
        each.join()
    print(len(seen), sorted(seen) == [2 * n for n in range({items})], seen == sorted(seen) or decoders > 1)
    print(type(raw).__name__, isinstance(batches, queue.Queue), batches.qsize(), batches.empty())
"""

CASES = {
    "slow source": ((0.012, 0.001, 0.002, 1, "Queue"), "input_bound", "read"),
    "one decoder": ((0.001, 0.015, 0.002, 1, "Queue"), "input_bound", "decode"),
    "two decoders": ((0.001, 0.025, 0.002, 2, "PriorityQueue"), "input_bound", "decode"),
    "slow consumer": ((0.001, 0.002, 0.012, 1, "Queue"), "not_input_bound", None),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_graph_and_the_verdict(scripts: Any, tmp_path: Path, case: Any, stored: StoredReports) -> None:
    values, kind, operator = case

    def play() -> hr.Report:
        name = scripts.write(PIPELINE.format(values=values, items=300))
        bare, result = scripts.bare(name), scripts.run("--out", "run", name)
        assert (result.status, result.out) == (0, bare.out), result.err
        assert result.script_err == ""
        return hr.Report.load(tmp_path / "run")

    report = stored(play)
    assert report.loader.startswith("batches at script.py:")
    profile = report.profile
    assert {op.name: op.workers for op in profile.operators} == {"read": 1, "decode": values[3]}
    assert {q.name: (q.capacity, q.to_sink) for q in profile.queues} == {
        "raw": (8, False),
        "batches": (4, True),
    }
    assert (report.diagnosis.kind, report.diagnosis.operator) == (kind, operator)


def of_run(scripts: Any, tmp_path: Path, name: str) -> hr.Report:
    result = scripts.run("--out", "run", name)
    assert result.status == 0, result.err
    return hr.Report.load(tmp_path / "run")


def test_a_get_in_a_comprehension_is_of_the_function_around_it(
    scripts: Any, tmp_path: Path, stored: StoredReports
) -> None:
    name = scripts.write("""
        import queue, threading, time
        items, batches = queue.Queue(8), queue.Queue(8)
        def read():
            for n in range(1200):
                items.put(n)
        def collate():
            for _ in range(300):
                batch = [items.get() for _ in range(4)]
                time.sleep(0.01)
                batches.put(batch)
            batches.put(None)
        for function in (read, collate):
            threading.Thread(target=function).start()
        while batches.get() is not None:
            pass
    """)
    report = stored(lambda: of_run(scripts, tmp_path, name))
    assert report.diagnosis.operator == "collate"


@pytest.mark.parametrize("other", ["variance.get()", "variance.get(timeout=1)", "variance.get_nowait()"])
def test_the_loops_queue_is_the_one_at_which_it_waits(
    scripts: Any, tmp_path: Path, other: str, stored: StoredReports
) -> None:
    name = scripts.write(f"""
        import queue, threading, time
        variance, batches = queue.Queue(2), queue.Queue(2)
        def make():
            for n in range(200):
                time.sleep(0.01)
                batches.put(n)
            batches.put(None)
        def measure():
            while True:
                variance.put(0.5)
        for function in (measure, make):
            threading.Thread(target=function, daemon=True).start()
        time.sleep(0.1)
        while True:
            {other}
            if batches.get() is None:
                break
            time.sleep(0.002)
    """)
    report = stored(lambda: of_run(scripts, tmp_path, name))
    assert report.loader.startswith("batches at script.py:")
    assert (report.diagnosis.kind, report.diagnosis.operator) == ("input_bound", "make")
