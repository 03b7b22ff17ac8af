"""The built-in demonstration: a pipeline with too few decode workers, its verdict, the advice applied and measured."""

from headrace.demo.run import run_demo

__all__ = ["run_demo"]
