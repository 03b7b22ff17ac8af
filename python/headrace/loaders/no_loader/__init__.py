"""Scripts without a loader under ``headrace run``: what the loop takes its batches from is found.

A thread samples the main thread's stack now and then (`stack_samples`). Thread queues and futures that the
loop waits for are recorded. A function that makes the batches (`training_loop`) is named with its share of
the loop's time and the line that records it.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import threading
from collections.abc import Iterator

from headrace.common.launcher import speaks_for_job
from headrace.loaders.no_loader.futures import WaitedFutures
from headrace.loaders.no_loader.stack_samples import StackSampler
from headrace.loaders.no_loader.thread_queues import ThreadQueues
from headrace.loaders.no_loader.training_loop import find
from headrace.record import session
from headrace.record.hooks import FOUND, phased_loops
from headrace.record.session import enabled

#: Samples between two searches.
_SEARCHED = 25
#: Samples between two at all threads; so many at the threads that are behind a queue.
_ALL_THREADS = 3
_QUEUE_SAMPLES = 500


def watch() -> Iterator[float]:
    """Sample the main thread until another loader records. For `sampling_thread.run_steps`.

    What makes the batches goes into the file of `FOUND`, so that it is known however the script ends.
    """
    found_in = os.environ.get(FOUND, "") if speaks_for_job() else ""
    main = threading.main_thread().ident
    if not enabled() or phased_loops() or main is None or multiprocessing.parent_process() is not None:
        return
    sampler = StackSampler(main)
    queues = ThreadQueues()
    futures = WaitedFutures()
    searched = 0
    while not session.loaders_opened:
        yield sampler.pause_s()
        stack = sampler.sample()
        futures.observe(stack)
        if searched % _ALL_THREADS == 0 and threading.active_count() > 1:
            queues.observe(sampler.everywhere())
        stack.clear()
        searched += 1
        if searched % (_SEARCHED if searched < 8 * _SEARCHED else 4 * _SEARCHED) == 0:
            candidate = find(sampler.samples)
            if candidate is not None and found_in:
                with contextlib.suppress(OSError), open(found_in, "w", encoding="utf-8") as file:  # noqa: PTH123
                    file.write(str(candidate))
    if queues.has_sink():
        for _ in range(_QUEUE_SAMPLES):  # those further away from the loop
            yield sampler.pause_s()
            queues.observe(sampler.everywhere())
