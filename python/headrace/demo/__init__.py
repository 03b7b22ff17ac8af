"""The built-in demonstration: a pipeline with too few decode workers, its verdict and the advice, applied."""

from headrace.demo.run import run_demo

__all__ = ["run_demo"]
