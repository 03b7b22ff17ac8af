"""Two threads tokenize in Python; the interpreter lock lets one of them run at a time."""

import sys
import time

import headrace as hr

EXECUTOR = "process" if "fixed" in sys.argv else "thread"


def tokenize(number):
    words = [(number * 31 + i) % 997 for i in range(4000)]
    counts = {}
    for word in words:
        counts[word] = counts.get(word, 0) + 1
    return max(counts.values())


if __name__ == "__main__":
    pipe = hr.pipeline.source(range(6000)).map(tokenize, workers=2, executor=EXECUTOR).batch(16)
    for _batch in hr.wrap(pipe, name="train"):
        time.sleep(0.005)  # the GPU trains
