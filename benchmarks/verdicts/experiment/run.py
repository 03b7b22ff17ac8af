"""Draws plans, runs their trials, prints truth beside what was said; `run.py --experiment` starts it."""

from __future__ import annotations

import json
import random
import time
from dataclasses import asdict
from pathlib import Path

from machine import cores, processor

from .operators import ALL
from .plan import CUDA_SHAPES, CUDA_SINKS, SHAPES, SINKS, drawn
from .score import Score, in_words, print_scores
from .server import answering
from .store import keep
from .trials import DisturbedError, RunError, trials_of

#: Length of a run that is part of the truth; the recorded one is three times as long.
SECONDS = 1.5
REPEATS = 3


def run_experiment(
    draws: int,
    seed: int | None,
    out: Path | None,
    keeps_disturbed: bool = False,
    on_cuda: bool = False,
    store: Path | None = None,
) -> bool:
    """Prints each of the draws (`draws` of each shape) and the scores; true when the bars hold.

    on_cuda: the step trains on a GPU. keeps_disturbed: a draw beside which others used the cores is shown as
    well, but not scored. store: a folder that keeps each draw, to be judged again (`judge.py`).
    """
    if seed is None:
        seed = random.SystemRandom().randrange(100_000)
    shapes, sinks = (CUDA_SHAPES, CUDA_SINKS) if on_cuda else (SHAPES, SINKS)
    print(f"seed {seed}, {draws} draws of {', '.join(shapes)}; {len(ALL)} operators of real work")
    print("marks before 'said': X wrong, - not scored (kind, operator); ! outside the stated interval\n")
    scores: list[Score] = []
    thrown_away = 0
    with answering() as port:
        for number in range(draws):
            for shape in shapes:
                began = time.monotonic()
                plan = drawn(seed + number, shape, list(ALL), sinks)
                try:
                    scores.append(Score.of(trials_of(plan, port, SECONDS, REPEATS, keeps_disturbed)))
                except DisturbedError as error:
                    thrown_away += 1
                    print(f"{plan.seed:>6} {plan.in_words()}\n       thrown away: {error}", flush=True)
                    continue
                except RunError as error:
                    print(f"{plan.seed:>6} {plan.in_words()}\n       FAILED {error}", flush=True)
                    continue
                print(f"{in_words(scores[-1])} {time.monotonic() - began:.0f} s", flush=True)
                if store is not None:
                    keep(
                        scores[-1].trials,
                        store,
                        {"cores": cores(), "processor": processor(), "cuda": on_cuda},
                    )
                if out is not None:
                    out.write_text(json.dumps([asdict(one.trials) for one in scores]) + "\n")
    return print_scores(scores, thrown_away)
