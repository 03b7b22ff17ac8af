"""`headrace.MemorySnapshot` beside Python's unpickler, restricted to plain values: CPU time and memory.

    python benchmarks/memory/compare.py [--events 1050000] [--rounds 3] [--keep snapshot.pickle]

Writes a snapshot as `torch.cuda.memory._dump_snapshot` does, with stacks that many events share. Each
contender runs in a process of its own, in turns. Headrace loads it and makes all seven tables; the unpickler
loads it and finds the peak with one loop. Both must find the same peak. CPU time is user and system time from
the import on; memory is the largest resident set of the whole process.
"""

from __future__ import annotations

import argparse
import json
import pickle
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

MEASURE = """
import json, pickle, resource, sys

def used():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime

def done(before, peak):
    with open("/proc/self/status") as status:  # ru_maxrss begins with the parent's
        largest = next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) * 1024
    print(json.dumps({"cpu_s": used() - before, "resident_bytes": largest, "peak": peak}))
"""

HEADRACE = """
import headrace as hr
from headrace.traces.memory import MemorySnapshot
before = used()
snapshot = MemorySnapshot.load(sys.argv[1])
tables = [snapshot.peak(), snapshot.holders(), snapshot.fragmentation(), snapshot.oom(), snapshot.growth(),
          snapshot.over_time(), snapshot.actions()]
done(before, next(tables[0].rows())["peak_recorded_bytes"])
"""

UNPICKLER = """
class Plain(pickle.Unpickler):
    def find_class(self, module, name):
        raise pickle.UnpicklingError(name)

before = used()
with open(sys.argv[1], "rb") as file:
    snapshot = Plain(file).load()
level = peak = 0
for event in snapshot["device_traces"][0]:
    if event["action"] == "alloc":
        level += event["size"]
        peak = max(peak, level)
    elif event["action"] == "free_completed":
        level -= event["size"]
done(before, peak)
"""

CONTENDERS = {"headrace": HEADRACE, "unpickler": UNPICKLER}
START_US = 1_790_000_000_000_000
#: Counts of a public snapshot of a training run.
STACKS, FRAMES, DEPTH = 12_665, 668, 30


def events_of(count: int, chance: random.Random) -> list[dict[str, Any]]:
    """Allocations and frees around 3,000 live blocks."""
    frames = [
        {"filename": f"/env/torch/nn/{i}.py" if i % 3 else f"/job/{i}.py", "line": i, "name": f"function_{i}"}
        for i in range(FRAMES)
    ]
    stacks = [[chance.choice(frames) for _ in range(DEPTH)] for _ in range(STACKS)]
    events: list[dict[str, Any]] = []
    live: list[tuple[int, int]] = []
    free: list[int] = []
    address = 0x7F00_0000_0000

    def add(action: str, at: int, size: int) -> None:
        time_us = START_US + 7 * len(events)
        event = {"action": action, "addr": at, "size": size, "stream": 0, "time_us": time_us}
        stack = stacks[len(events) * 7919 % STACKS]
        events.append({**event, "compile_context": "N/A", "user_metadata": "", "frames": stack})

    while len(events) < count:
        if len(live) < 3000 or chance.random() < 0.45:
            if not free:
                address += 1 << 20
                free.append(address)
            block = (free.pop(), chance.randint(512, 1 << 20))
            live.append(block)
            add("alloc", *block)
        else:
            block = live.pop(chance.randrange(len(live)))
            add("free_requested", *block)
            add("free_completed", *block)
            free.append(block[0])
    return events


def write(path: Path, count: int) -> None:
    snapshot = {
        "segments": [],
        "device_traces": [events_of(count, random.Random(1))],
        "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": ""},
        "external_annotations": [],
    }
    with path.open("wb") as file:
        pickle.dump(snapshot, file)


def run(code: str, path: Path) -> dict[str, float]:
    command = [sys.executable, "-c", MEASURE + code, str(path)]
    found: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options.add_argument("--events", type=int, default=1_050_000)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--keep", type=Path, help="write the snapshot here and keep it")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = chosen.keep or Path(folder) / "snapshot.pickle"
        write(path, chosen.events)
        print(f"{chosen.events} events, {path.stat().st_size / 1e6:.1f} MB")
        rounds: dict[str, list[dict[str, float]]] = {name: [] for name in CONTENDERS}
        for _ in range(chosen.rounds):
            for name, code in CONTENDERS.items():
                rounds[name].append(run(code, path))
    assert len({found["peak"] for each in rounds.values() for found in each}) == 1, "not the same peak"
    for name, each in rounds.items():
        cpu = sorted(found["cpu_s"] for found in each)
        largest = max(found["resident_bytes"] for found in each)
        middle = statistics.median(cpu)
        print(f"{name:<10} {middle:6.3f} CPU-s ({cpu[0]:.3f} to {cpu[-1]:.3f}), {largest / 1e6:5.0f} MB")


if __name__ == "__main__":
    main()
