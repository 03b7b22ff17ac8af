"""Pipelines of Headrace's own: native threads and queues, Python (or C) bodies, everything recorded.

pipe = hr.source(files).shuffle(1000, seed=0).map(decode, workers=4).batch(32).prefetch(4)
for batch in pipe: ...
print(pipe.report())
"""

from headrace.errors import OperatorError
from headrace.pipeline._bodies import NativeBody, native_body
from headrace.pipeline._pipeline import Pipeline, generator, source

__all__ = ["NativeBody", "OperatorError", "Pipeline", "generator", "native_body", "source"]
