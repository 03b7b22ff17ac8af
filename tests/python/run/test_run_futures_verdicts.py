"""Loops over futures under ``headrace run``: found while they wait."""

import re
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from mapped_futures import MAPPED
from stored_reports import StoredReports

FAILING_LOAD = """\
    def load(number):
        time.sleep(0.02)
        if number in (7, 200):
            raise ValueError(number)
        return number
"""

WINDOW = (
    """
    import time
    from concurrent.futures import Future, ThreadPoolExecutor
"""
    + FAILING_LOAD
    + """    with ThreadPoolExecutor(2) as pool:
        pending, got, failed = [pool.submit(load, number) for number in range(8)], [], []
        for number in range(8, 300):
            try:
                got.append(pending.pop(0).result())
            except ValueError as error:
                failed.append(error.args)
            pending.append(pool.submit(load, number))
            time.sleep(0.003)
    print(got == [each for each in range(292) if each not in (7, 200)], failed, type(pending[0]) is Future)
"""
)


def of_run(scripts: Any, tmp_path: Path, script: str, prints: bytes) -> hr.Report:
    result = scripts.run("--out", "run", scripts.write(script))
    assert (result.status, result.out) == (0, prints), result.err
    return hr.Report.load(tmp_path / "run")


@pytest.mark.parametrize(
    ("script", "prints"),
    [
        (WINDOW, b"True [(7,), (200,)] True\n"),
        (MAPPED, b"True\n"),
    ],
    ids=["result", "map"],
)
def test_threads_of_an_executor(
    scripts: Any, tmp_path: Path, script: str, prints: bytes, stored: StoredReports
) -> None:
    report = stored(lambda: of_run(scripts, tmp_path, script, prints))
    assert re.fullmatch(r"futures at script.py:\d+", report.loader)
    assert report.profile.epochs == 1
    assert report.profile.sink.steps > 150
    assert report.profile.sink.starved_share > 0.5
    [op] = report.profile.operators
    assert (op.name, op.workers, op.executor) == ("load", 2, "thread")
    said = report.diagnosis
    assert (said.kind, said.operator, said.cause) == ("input_bound", "load", "too_few_workers")
    assert said.advice[0].parameter == "max_workers"
    assert report.what_if(max_workers=4)["step_s"] < report.profile.sink.step_s / 1.5
    [parameter] = op.parameters
    assert parameter.max is None or parameter.max >= 4


NARROW = """
    import collections, time
    from concurrent.futures import ThreadPoolExecutor
    def load(number):
        time.sleep(0.02)
        return number
    def main():
        pool, got = ThreadPoolExecutor(1), []
        pending = collections.deque({pending})
        for number in range(3, 200):
            {take}
            time.sleep(0.003)
        pool.shutdown()
        print(got == list(range(197)))
    main()
"""


@pytest.mark.parametrize(
    ("pending", "take"),
    [
        (
            "pool.submit(load, number) for number in range(3)",
            "got.append(pending.popleft().result()); pending.append(pool.submit(load, number))",
        ),
        (
            "(pool.submit(load, number), number) for number in range(3)",
            "got.append(pending[0][0].result()); pending.popleft(); "
            "pending.append((pool.submit(load, number), number))",
        ),
    ],
    ids=["taken out", "looked at"],
)
def test_no_more_workers_than_futures_under_way(
    scripts: Any, tmp_path: Path, pending: str, take: str, stored: StoredReports
) -> None:
    report = stored(lambda: of_run(scripts, tmp_path, NARROW.format(pending=pending, take=take), b"True\n"))
    [op] = report.profile.operators
    [parameter] = op.parameters
    assert (parameter.parameter, parameter.value, parameter.max) == ("max_workers", 1, 3)
    assert report.diagnosis.advice[0].parameter == "max_workers"
    assert report.what_if(max_workers=3)["step_s"] < report.profile.sink.step_s / 2
    with pytest.raises(hr.UsageError, match="1 to 3"):
        report.what_if(max_workers=4)
