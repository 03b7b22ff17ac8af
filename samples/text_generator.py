"""Batches of text from a generator: lines are tokenised, padded, and gone through twice.

python samples/text_generator.py [TEXT_FILE] [--run RUN_FOLDER] [--workers 2]

Without a file it makes a text of its own. Two workers of the generator each read their part of the lines.
"""

from __future__ import annotations

import argparse
import random
import re
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

import headrace as hr

VOCABULARY = 5000
PADDING = 0


class Batch(NamedTuple):
    tokens: np.ndarray  #: int64, (batch, longest line), padded with PADDING
    lengths: np.ndarray  #: int64, (batch,)


def make_text(path: Path, lines: int) -> None:
    words = ("a", "heron", "stands", "still", "in", "slow", "water", "until", "fish", "come", "near")
    rng = random.Random(0)
    with path.open("w", encoding="utf-8") as out:
        for _ in range(lines):
            out.write(" ".join(rng.choices(words, k=rng.randint(0, 40))) + "\n")


def tokenised_lines(path: Path, worker: int, workers: int) -> Iterator[np.ndarray]:
    """The lines of one worker, as token numbers. Called at the beginning of every pass."""
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            if number % workers == worker:
                yield np.array([token_number(word) for word in re.findall(r"\w+|[^\w\s]", line.lower())])


def token_number(word: str) -> int:
    """A hash instead of a dictionary: the same in every process."""
    return 1 + zlib.crc32(word.encode()) % (VOCABULARY - 1)


def padded(lines: list[np.ndarray]) -> Batch:
    lengths = np.array([len(line) for line in lines])
    tokens = np.full((len(lines), lengths.max()), PADDING, dtype=np.int64)
    for row, line in zip(tokens, lines, strict=True):
        row[: len(line)] = line
    return Batch(tokens, lengths)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("text", type=Path, nargs="?", help="default: one that is made")
    parser.add_argument("--lines", type=int, default=4000, help="of a text that is made")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--run", type=Path, help="folder of the recording; default below headrace-runs")
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as temporary:
        text = options.text or Path(temporary) / "text.txt"
        if options.text is None:
            make_text(text, options.lines)
        batches = (
            hr.pipeline.generator(partial(tokenised_lines, text), workers=options.workers, name="tokenise")
            .filter(len, name="not_empty")
            .shuffle(500, seed=0)
            .batch(options.batch, collate=padded)
            .prefetch(8)
        )
        batches = hr.wrap(batches, name="text", run=options.run)

        counts: Counter[int] = Counter()
        for epoch in range(2):
            lines = padding = 0
            for batch in batches:
                lines += len(batch.lengths)
                padding += int((batch.tokens == PADDING).sum())
                counts.update(batch.tokens[batch.tokens != PADDING].tolist())
            print(f"pass {epoch}: {lines} lines, {padding} places of padding")
        print(f"{len(counts)} kinds of tokens, {counts.total()} in all")
        print(batches.report())


if __name__ == "__main__":
    main()
