"""Loops over an ``asyncio.Queue`` under ``headrace run``: found in their tasks, recorded by their gets."""

from pathlib import Path
from typing import Any

import pytest

import headrace as hr

SCRIPT = """
    import asyncio, time
    from concurrent.futures import ThreadPoolExecutor
    read_s, decode_s, decoders, waits_s, train_s = {values}
    def read(number):
        time.sleep(read_s)
        return number
    def decode(number):
        time.sleep(decode_s)
        return 2 * number
    def train(batch):
        time.sleep(train_s)
    async def produce(batches):
        loop, pool = asyncio.get_running_loop(), ThreadPoolExecutor(decoders)
        async def one(number):
            return await loop.run_in_executor(pool, decode, await asyncio.to_thread(read, number))
        ahead = []
        for number in range(250):
            await asyncio.sleep(waits_s)
            ahead.append(asyncio.create_task(one(number)))
            if len(ahead) == 6:
                await batches.put(await ahead.pop(0))
        for task in ahead:
            await batches.put(await task)
        await batches.put(None)
    async def main():
        batches, got = asyncio.Queue(4), []
        task = asyncio.create_task(produce(batches))
        while (batch := await batches.get()) is not None:
            got.append(batch)
            await asyncio.to_thread(train, batch)
        await task
        print(got == [2 * number for number in range(250)], asyncio.iscoroutinefunction(batches.get))
    asyncio.run(main())
"""

CASES = {
    "a slow function, one thread": ((0.0, 0.012, 1, 0.0, 0.001), "input_bound", "decode"),
    "a slow function, two threads": ((0.0, 0.024, 2, 0.0, 0.001), "input_bound", "decode"),
    "a coroutine that waits": ((0.0, 0.0, 1, 0.012, 0.001), "input_bound", "produce"),
    "a slow step": ((0.0, 0.001, 1, 0.0, 0.012), "not_input_bound", None),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_verdict(scripts: Any, tmp_path: Path, case: Any) -> None:
    values, kind, operator = case
    result = scripts.run("--out", "run", scripts.write(SCRIPT.format(values=values)))
    assert (result.status, result.out) == (0, b"True True\n"), result.err
    assert result.script_err == ""
    report = hr.Report.load(tmp_path / "run")
    assert report.loader.startswith("batches at script.py:")
    assert report.profile.epochs == 1
    assert report.profile.sink.steps > 100
    operators = {op.name: op.workers for op in report.profile.operators}
    assert operators["decode"] == values[2]
    assert "train" not in operators
    said = report.diagnosis
    assert (said.kind, said.operator) == (kind, operator)
    if operator == "decode":
        assert said.advice[0].parameter == "max_workers"


def test_timeouts_and_cancelled_gets_stay_as_they_are(scripts: Any, tmp_path: Path) -> None:
    name = scripts.write("""
        import asyncio
        async def produce(batches):
            for number in range(150):
                await asyncio.sleep(0.01)
                await batches.put(number)
        async def main():
            batches, total, late = asyncio.Queue(), 0, 0
            task = asyncio.create_task(produce(batches))
            while total < 150:
                try:
                    assert await asyncio.wait_for(batches.get(), 0.004) == total
                    total += 1
                except asyncio.TimeoutError:
                    late += 1
            try:
                batches.get_nowait()
            except asyncio.QueueEmpty as error:
                print(total, late > 50, error.args, batches.qsize())
        asyncio.run(main())
    """)
    bare, result = scripts.bare(name), scripts.run("--out", "run", name)
    assert (result.status, result.out) == (0, bare.out), result.err
    assert result.script_err == bare.err == ""
    sink = hr.Report.load(tmp_path / "run").profile.sink
    assert 50 < sink.steps <= 150
    assert sink.starved_share > 0.5
