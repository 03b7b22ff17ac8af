"""Serves /metrics of a run folder that other containers record into: `python metrics.py RUN PORT`."""

import signal
import sys

import headrace as hr

# The first process of a container ignores signals that it does not handle.
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, lambda *_: sys.exit(0))
hr.export.prometheus(int(sys.argv[2]), run=sys.argv[1], host="0.0.0.0")
signal.pause()
