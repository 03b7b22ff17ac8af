"""Scripts without a loader under ``headrace run``: the function that makes the batches is found and recorded.

A thread samples the main thread's stack now and then (`stack_samples`). The samples show the training loop
and the function in it that makes batches (`training_loop`, `batch_functions`). From then on each of its calls
is recorded as a GetNext (`recorded_function`).
"""

from __future__ import annotations

from headrace.loaders.no_loader.watch import watch

__all__ = ["watch"]
