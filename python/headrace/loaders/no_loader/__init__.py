"""Scripts without a loader under ``headrace run``: what the loop takes its batches from is found.

A thread samples the main thread's stack now and then (`stack_samples`). Thread queues and futures that the
loop waits for are recorded. A function that makes the batches (`training_loop`) is named with its share of
the loop's time and the line that records it.
"""

from __future__ import annotations

from headrace.loaders.no_loader.watch import watch

__all__ = ["watch"]
