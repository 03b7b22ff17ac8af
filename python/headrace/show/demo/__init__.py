"""The built-in demonstration: a pipeline with too few workers, its verdict and the advice, applied.

pipeline    native threads and queues
dataloader  PyTorch's DataLoader; needs torch
"""

from headrace.show.demo.run import run_demo

__all__ = ["run_demo"]
