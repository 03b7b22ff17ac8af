"""What recording a plain `queue.Queue` costs: CPU time of one thread for each item, a put and a get.

python benchmarks/loaders/bench_plain_queue.py [--items 20000] [--rounds 15]
"""

import argparse
import json
import queue
import statistics
import tempfile
import time
from typing import Any

import headrace as hr
from headrace.loaders.no_loader.thread_queues import HookedQueue, ThreadQueues


def recorded() -> Any:
    """As `headrace run` records it, once the training loop takes from another queue."""
    queues = ThreadQueues()
    queues.started.append(HookedQueue(queue.Queue(), "batches", queues))
    found: Any = queue.Queue()
    HookedQueue(found, "items", queues)
    return found


def cpu_per_item(items: Any, count: int) -> float:
    began = time.thread_time()
    for item in range(count):
        items.put(item)
        items.get()
    return (time.thread_time() - began) / count


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--items", type=int, default=20000)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    with hr.session(tempfile.mkdtemp()):
        contenders = {"bare": queue.Queue(), "recorded": recorded()}
        times: dict[str, list[float]] = {name: [] for name in contenders}
        for _ in range(options.rounds):  # in turn, so that a change of the machine's speed meets both
            for name, items in contenders.items():
                times[name].append(cpu_per_item(items, options.items))
    bare, with_hooks = (1e6 * statistics.median(each) for each in times.values())
    print(f"bare {bare:.2f} us  recorded {with_hooks:.2f} us  {with_hooks - bare:.2f} us an item")
    print(
        json.dumps({"items": options.items, "us": {name: [1e6 * t for t in times[name]] for name in times}})
    )


if __name__ == "__main__":
    main()
