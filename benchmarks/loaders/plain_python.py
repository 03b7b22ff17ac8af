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

_QUEUE = """
import queue, threading
raw, decoded, batches = queue.Queue(8), queue.Queue(8), queue.Queue(8)
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

SCRIPTS = {"queue": _QUEUE}


def recorded_script(case: Case, run: str) -> hr.Report | None:
    """The report of ``headrace run`` on the drawn script, which takes some seconds; None: no loop found."""
    batch_s = case.batch_size * case.seconds if case.kind == "batch" else 0.0
    per_item_s = {"batch": case.seconds, "step": case.step_s / case.batch_size}.get(
        case.kind, case.seconds / (2 if case.kind == "cpu" else 1)
    )
    # Where threads compete for the interpreter lock, it takes longer until the loop is found.
    items = int((12.0 if case.kind == "lock" else 4.0) / per_item_s) // case.batch_size * case.batch_size
    values = {
        "kind": case.kind,
        "seconds": case.seconds,
        "source_s": case.source_s,
        "batch_s": batch_s,
        "step_s": case.step_s,
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
