"""Loops of reinforcement learning: weight sync, and the ages of samples."""

from pathlib import Path

from recorded_loops import run_script
from stored_reports import StoredReports

WEIGHTS = """
import queue, threading, time

samples = queue.Queue(4)

def generate():
    time.sleep(0.004)
    return [1.0]

def reward(sample):
    time.sleep(0.001)
    return sum(sample)

def rollout():
    while True:
        samples.put(reward(generate()))

def sync_weights():
    time.sleep(0.3)

threading.Thread(target=rollout, daemon=True).start()
for step in range(240):
    samples.get()
    time.sleep(0.02)
    if step % 12 == 11:
        sync_weights()
"""


def test_a_weight_sync_every_few_steps_is_a_pause(tmp_path: Path, stored: StoredReports) -> None:
    report = stored(lambda: run_script(tmp_path, WEIGHTS)[1])
    assert report.diagnosis.kind == "not_input_bound", str(report)
    assert report.diagnosis.cause == "pauses", str(report)
    assert "sync_weights" in report.diagnosis.summary
    assert any(part.part == "weight_sync" for part in report.budget), str(report)
    [samples] = report.profile.queues
    assert samples.item_age.p50_s > report.profile.sink.step_s
