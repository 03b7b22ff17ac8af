"""One thread reads all records, and nothing in the pipeline lets another one help."""

import sys
import time

import headrace as hr

READERS = 2 if "fixed" in sys.argv else 1


def records(worker, workers):
    for number in range(worker, 6000, workers):
        time.sleep(0.002)  # a database answers
        yield number


def parse(record):
    time.sleep(0.001)
    return record


if __name__ == "__main__":
    pipe = hr.pipeline.generator(records, workers=READERS).map(parse, workers=2).batch(10)
    for _batch in hr.wrap(pipe, name="train"):
        time.sleep(0.010)  # the GPU trains
