"""The steps of the thread that finds the function that makes the batches."""

from __future__ import annotations

import multiprocessing
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from headrace.common.messages import warn_once
from headrace.loaders.no_loader.async_queues import AsyncQueues
from headrace.loaders.no_loader.recorded_function import RecordedFunction, install
from headrace.loaders.no_loader.stack_samples import Function, StackSampler
from headrace.loaders.no_loader.thread_queues import ThreadQueues
from headrace.loaders.no_loader.training_loop import Candidate, find
from headrace.loaders.no_loader.waiting_calls import WaitingCalls
from headrace.record import session
from headrace.record.session import enabled, phased_loops

#: Samples between two searches.
_SEARCHED = 25
#: Samples between two at all threads; so many at the threads that are behind a queue.
_ALL_THREADS = 3
_QUEUE_SAMPLES = 500


def watch() -> Iterator[float]:
    """Sample the main thread until its loop is known; ends once another loader records, or nothing can.

    For `sampling_thread.run_steps`. Changes nothing before it has found a function that makes batches.
    """
    main = threading.main_thread().ident
    if not enabled() or phased_loops() or main is None or multiprocessing.parent_process() is not None:
        return
    sampler = StackSampler(main)
    queues = ThreadQueues()
    calls = WaitingCalls()
    async_queues = AsyncQueues()
    candidate = None
    said: set[Function] = set()
    searched = 0
    while not session.loaders_opened:
        yield sampler.pause_s()
        stack = sampler.sample()
        calls.observe(stack)
        async_queues.observe(stack)
        if searched % _ALL_THREADS == 0 and threading.active_count() > 1:
            queues.observe(sampler.everywhere())
        if candidate is not None and stack:
            seen = sampler.samples[-1].functions
            if candidate.function in seen and candidate.caller in seen:
                found = install(candidate, stack)
                stack.clear()
                if found is None:
                    _say_unrecorded(candidate)
                    return
                yield from _name_its_functions(found, sampler)
                return
        stack.clear()
        searched += 1
        if candidate is None and searched % (_SEARCHED if searched < 8 * _SEARCHED else 4 * _SEARCHED) == 0:
            candidate = find(sampler.samples)
            if candidate is not None and candidate.is_generator:
                if candidate.function not in said:
                    said.add(candidate.function)
                    _say_iterated(candidate)
                candidate = None
    if queues.has_sink():
        for _ in range(_QUEUE_SAMPLES):  # those further away from the loop
            yield sampler.pause_s()
            queues.observe(sampler.everywhere())


def _name_its_functions(found: RecordedFunction, sampler: StackSampler) -> Iterator[float]:
    sampler.samples.clear()
    while not sys.is_finalizing():
        yield sampler.pause_s()
        sampler.sample().clear()
        if sampler.samples:
            found.add_sample(sampler.samples[-1])


def _say_iterated(candidate: Candidate) -> None:
    code = candidate.function.code
    loop = candidate.caller.code
    where = Path(loop.co_filename).name if loop.co_name == "<module>" else loop.co_name
    warn_once(
        f"the loop in {where} spends about {candidate.share:.0%} of its time in the generator {code.co_name} "
        f"({Path(code.co_filename).name}:{code.co_firstlineno}); if that makes the batches, wrap it: "
        f"for batch in hr.wrap({code.co_name}(...))"
    )


def _say_unrecorded(candidate: Candidate) -> None:
    name = candidate.function.name
    warn_once(
        f"{name} takes {candidate.share:.0%} (+-{candidate.error:.0%}) of the training loop and cannot be "
        f"recorded from outside: {name} = hr.wrap({name}) before the loop"
    )
