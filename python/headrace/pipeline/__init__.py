"""Pipelines of Headrace's own: native threads and queues, Python (or C) bodies, everything recorded.

pipe = hr.pipeline.source(files).shuffle(1000, seed=0).map(decode, workers=4).batch(32).prefetch(4)
for batch in pipe: ...
print(pipe.report())
"""

from headrace.errors import OperatorError
from headrace.pipeline._bodies import NativeBody, native_body
from headrace.pipeline._pipeline import Pipeline, generator, source
from headrace.record.to_device import to_device
from headrace.transport import HostDevice, open_device

__all__ = [
    "HostDevice",
    "NativeBody",
    "OperatorError",
    "Pipeline",
    "generator",
    "native_body",
    "open_device",
    "source",
    "to_device",
]
