"""The steps of the thread that finds what makes the batches of a script without a loader."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Iterator
from pathlib import Path

from headrace.common.launcher import speaks_for_job
from headrace.common.messages import say
from headrace.loaders.no_loader.futures import WaitedFutures
from headrace.loaders.no_loader.stack_samples import Function, StackSampler
from headrace.loaders.no_loader.thread_queues import ThreadQueues
from headrace.loaders.no_loader.training_loop import Candidate, find
from headrace.record import session
from headrace.record.hooks import phased_loops
from headrace.record.session import enabled

#: Samples between two searches.
_SEARCHED = 25
#: Samples between two at all threads; so many at the threads that are behind a queue.
_ALL_THREADS = 3
_QUEUE_SAMPLES = 500
#: Share of a loop's time that its batches may take, as in a verdict.
_HEALTHY = 0.05


def watch() -> Iterator[float]:
    """Sample the main thread until another loader records. For `sampling_thread.run_steps`."""
    main = threading.main_thread().ident
    if not enabled() or phased_loops() or main is None or multiprocessing.parent_process() is not None:
        return
    sampler = StackSampler(main)
    queues = ThreadQueues()
    futures = WaitedFutures()
    said: set[Function] = set()
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
            if candidate is not None and candidate.function not in said and speaks_for_job():
                said.add(candidate.function)
                (_say_iterated if candidate.is_generator else _say_called)(candidate)
    if queues.has_sink():
        for _ in range(_QUEUE_SAMPLES):  # those further away from the loop
            yield sampler.pause_s()
            queues.observe(sampler.everywhere())


def _say_iterated(candidate: Candidate) -> None:
    code = candidate.function.code
    loop = candidate.caller.code
    where = Path(loop.co_filename).name if loop.co_name == "<module>" else loop.co_name
    say(
        f"the loop in {where} spends about {candidate.share:.0%} of its time in the generator {code.co_name} "
        f"({Path(code.co_filename).name}:{code.co_firstlineno}); if that makes the batches, wrap it: "
        f"for batch in hr.wrap({code.co_name}(...))"
    )


def _say_called(candidate: Candidate) -> None:
    """Its calls are not recorded: a function in its place would be another object, also for pickles."""
    code = candidate.function.code
    share = f"{candidate.share:.0%} (+-{candidate.error:.0%})"
    where = f"{code.co_name} ({Path(code.co_filename).name}:{code.co_firstlineno})"
    if candidate.share + candidate.error < _HEALTHY:
        say(f"the loop is not input-bound: {where}, which makes its batches, takes {share} of its time")
        return
    say(
        f"{where} makes the batches and takes {share} of the training loop's time; "
        f"to record it: {code.co_name} = hr.wrap({code.co_name}) before the loop"
    )
