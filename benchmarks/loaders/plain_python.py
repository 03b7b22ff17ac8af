"""Labelled cases in plain Python, which `headrace run` finds without a change to the script."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from cases import Case

import headrace as hr

_FUNCTIONS = """
import hashlib, time
case = {values}
block = bytes(1 << 20)
def wait(seconds):
    if seconds:
        time.sleep(seconds)
def native(seconds):  # without the interpreter lock
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        hashlib.sha256(block)
def burn(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        sum(range(50))
def idle(item):
    return item
def read(number):
    wait(case["source_s"])
    return number
def {work}(item):
    for _ in range(case["idle"]):
        item = idle(item)
    {{"map": wait, "cpu": native, "lock": burn}}.get(case["kind"], idle)(case["seconds"])
    return item
def {collate}(items):
    wait(case["batch_s"])
    return items
def train(batch):
    time.sleep(case["step_s"])
"""

_SIMPLE_QUEUE = """
import queue, threading
raw, decoded, batches = queue.SimpleQueue(), queue.SimpleQueue(), queue.SimpleQueue()
def source():
    for number in range(case["items"]):
        raw.put(read(number))
    for _ in range(case["workers"]):
        raw.put(None)
def maps():
    while (item := raw.get()) is not None:
        decoded.put({work}(item))
def batch():
    for _ in range(case["items"] // case["batch_size"]):
        batches.put({collate}([decoded.get() for _ in range(case["batch_size"])]))
    batches.put(None)
source.__code__ = source.__code__.replace(co_name="read")
maps.__code__ = maps.__code__.replace(co_name="{work}")
batch.__code__ = batch.__code__.replace(co_name="{collate}")
for function in (source, batch, *[maps] * case["workers"]):
    threading.Thread(target=function, daemon=True).start()
while (got := batches.get()) is not None:
    train(got)
"""

_QUEUE = _SIMPLE_QUEUE.replace("queue.SimpleQueue()", "queue.Queue(8)")

_AS_COMPLETED = """
from concurrent.futures import ThreadPoolExecutor, as_completed
calls = {{"source": read, "batch": {collate}}}.get(case["kind"], {work})
with ThreadPoolExecutor(case["workers"]) as pool:
    for future in as_completed([pool.submit(calls, number) for number in range(case["items"])]):
        future.result()
        train(None)
"""

_WAIT = """
from concurrent import futures
calls = {{"source": read, "batch": {collate}}}.get(case["kind"], {work})
with futures.ThreadPoolExecutor(case["workers"]) as pool:
    numbers = iter(range(case["items"]))
    pending = {{pool.submit(calls, next(numbers)) for _ in range(8)}}
    while pending:
        done, pending = futures.wait(pending, return_when=futures.FIRST_COMPLETED)
        for future in done:
            future.result()
            train(None)
            for number in numbers:
                pending.add(pool.submit(calls, number))
                break
"""

_ASYNCIO = """
import asyncio
from concurrent.futures import ThreadPoolExecutor
async def produce(batches):
    loop = asyncio.get_running_loop()
    readers, workers, collators = [ThreadPoolExecutor(n) for n in (1, case["workers"], 1)]
    async def one(number):
        item = await loop.run_in_executor(readers, read, number)
        return await loop.run_in_executor(workers, {work}, item)
    async def some(first):
        items = await asyncio.gather(*[one(first + n) for n in range(case["batch_size"])])
        return await loop.run_in_executor(collators, {collate}, items)
    ahead = []
    for first in range(0, case["items"], case["batch_size"]):
        ahead.append(asyncio.create_task(some(first)))
        if len(ahead) == 4:
            await batches.put(await ahead.pop(0))
    for task in ahead:
        await batches.put(await task)
    await batches.put(None)
async def main():
    batches = asyncio.Queue(2)
    producer = asyncio.create_task(produce(batches))
    while (batch := await batches.get()) is not None:
        await asyncio.to_thread(train, batch)
    await producer
asyncio.run(main())
"""

SCRIPTS = {
    "queue": _QUEUE,
    "simple queue": _SIMPLE_QUEUE,
    "as_completed": _AS_COMPLETED,
    "wait": _WAIT,
    "asyncio": _ASYNCIO,
}


def recorded_script(case: Case, run: str) -> hr.Report | None:
    """The report of ``headrace run`` on the drawn script, which takes some seconds; None: no loop found."""
    of_items = case.loader in ("as_completed", "wait")
    batch_s = case.batch_size * case.seconds if case.kind == "batch" else 0.0
    of_one = case.step_s if not of_items or case.kind != "step" else 2 * case.seconds + 0.01
    per_item_s = {"batch": case.seconds, "step": of_one / (1 if of_items else case.batch_size)}.get(
        case.kind, case.seconds / (2 if case.kind == "cpu" else 1)
    )
    # Where threads compete for the interpreter lock, it takes longer until the loop is found.
    items = int((12.0 if case.kind == "lock" else 4.0) / per_item_s) // case.batch_size * case.batch_size
    if of_items and case.kind == "batch":
        items //= case.batch_size
    values = {
        "kind": case.kind,
        "seconds": case.seconds,
        "source_s": case.source_s,
        "batch_s": batch_s,
        "step_s": of_one,
        "batch_size": case.batch_size,
        "idle": case.idle,
        "workers": case.workers,
        "items": items,
    }
    names = {"work": case.name, "collate": f"collate_{case.name}", "values": json.dumps(values)}
    script = Path(tempfile.mkdtemp()) / "script.py"
    script.write_text((_FUNCTIONS + SCRIPTS[case.loader]).format(**names))
    command = [sys.executable, "-m", "headrace", "run", "--out", run, str(script)]
    result = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    return hr.Report.load(run) if "nothing was recorded" not in result.stderr else None
