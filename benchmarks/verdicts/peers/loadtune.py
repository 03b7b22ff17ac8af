"""loadtune 0.3.0: profiles a workload whose DataLoader it builds itself, then tries other settings.

Used through its Python API: `Workload`, `profile` with the draw's own settings as the baseline (its `tune`
and its command line start from none or from `num_workers` alone), its `HeuristicBrain` for what to try and
what to say, 50 steps a trial as in its README, its `best_trial`. Trials of `torch.compile` and AMP are left
out, because the training step of a draw is no model. It shuffles always and sets neither `sampler` nor
`in_order`; draws that are about these cannot be asked.

Read as kind: "input-bound" (20 % wait or more) is input-bound, "compute-bound" is not; "mildly contended" is
input-bound where its own trial of more workers or a deeper prefetch was faster by more than its noise of 2 %.
Operator: it has none. Cause: "CPU already saturated" is cpu_saturated; else what its best trial, if that was
faster by more than the noise, is the cure of: more workers too_few_workers (no_overlap from none), none
handoff, fewer cpu_saturated, a deeper prefetch variance; else too_few_workers. Its advice is its best trial
where that beats the baseline; it is measured by the same loop as Headrace's.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from line import Line
from loader import Loader

from peers.answer import Answer
from peers.cures import more_workers

NAME = "loadtune"
NOTIONS = ("kind", "cause")
WARMUP = 10
STEPS_A_TRIAL = 50
MAX_TRIALS = 6
INPUT_BOUND, HEALTHY, NOISE = 0.20, 0.05, 0.02


def unable(drawn: Line | Loader) -> str:
    if isinstance(drawn, Line):
        return "tunes DataLoaders only"
    if drawn.kind == "stream":
        return "shuffles always, so no IterableDataset"
    if drawn.sampler is not None or not drawn.in_order:
        return "sets no sampler and no in_order"
    if any(part.vary["how"] == "in_turn" for part in drawn.parts):
        return "shuffles always, so the phases of the draw are lost"
    if drawn.steps <= WARMUP:
        return "needs ten steps to warm up"
    return ""


def command(python: str, folder: Path) -> list[str]:
    return [python, "-m", "peers.loadtune", str(folder / "drawn.json"), str(folder / "found.json")]


def answer(drawn: Line | Loader, found: dict[str, Any]) -> Answer:
    assert isinstance(drawn, Loader)
    share, narrative = found["data_wait_frac"], found["narrative"]
    best, gain = found["best"], found["gain"]
    said = Answer(words=narrative, advice=best if gain > 1 else {})
    cured = cured_by(drawn, best) if gain > 1 + NOISE else ""
    proven = cured in ("too_few_workers", "no_overlap", "variance")
    if share <= HEALTHY or (share < INPUT_BOUND and not proven):
        said.kind, said.cause = "not_input_bound", ""
    else:
        said.kind = "input_bound"
        said.cause = "cpu_saturated" if "already saturated" in narrative else cured or more_workers(drawn)
    return said


def cured_by(loader: Loader, best: dict[str, Any]) -> str:
    """The cause that its best trial is the cure of."""
    if best["num_workers"] > loader.num_workers:
        return more_workers(loader)
    if best["num_workers"] == 0:
        return "handoff"
    return "cpu_saturated" if best["num_workers"] < loader.num_workers else "variance"


def workload_of(loader: Loader) -> Any:
    import torch
    from loader_parts import collate_of, dataset_of
    from loadtune import Workload  # type: ignore[import-not-found,unused-ignore]

    from peers.loop import Step

    def step(model: Any, optimizer: Any, _batch: Any, _device: Any) -> Any:
        optimizer.zero_grad(set_to_none=True)
        loss = model()
        loss.backward()
        optimizer.step()
        return loss

    return Workload(
        name="draw",
        make_dataset=lambda: dataset_of(loader, loader.steps * loader.batch_size),
        make_model=lambda: Step(loader),
        train_step=step,
        make_optimizer=lambda model: torch.optim.SGD(model.parameters(), lr=0.1),
        default_batch_size=loader.batch_size,
        collate_fn=collate_of(loader),
    )


def knobs_of(loader: Loader) -> Any:
    from loadtune.knobs import Knobs  # type: ignore[import-not-found,unused-ignore]

    if loader.num_workers == 0:
        return Knobs()
    # Its rule for jitter asks whether the prefetch is torch's default, which it writes as None.
    prefetch = None if loader.prefetch_factor == 2 else loader.prefetch_factor
    return Knobs(
        num_workers=loader.num_workers,
        prefetch_factor=prefetch,
        persistent_workers=loader.persistent_workers,
    )


def settings(knobs: Any, loader: Loader) -> dict[str, Any]:
    """What differs from the draw, by the loader's own names."""
    wanted = {"num_workers": knobs.num_workers}
    if knobs.prefetch_factor is not None and knobs.prefetch_factor != loader.prefetch_factor:
        wanted["prefetch_factor"] = knobs.prefetch_factor
    if knobs.num_workers > 0:
        wanted["persistent_workers"] = knobs.persistent_workers
    return wanted


def main() -> None:
    import torch
    from loadtune import profile  # type: ignore[import-not-found,unused-ignore]
    from loadtune.experiment import best_trial  # type: ignore[import-not-found,unused-ignore]
    from loadtune.heuristic import HeuristicBrain  # type: ignore[import-not-found,unused-ignore]
    from machine import Strangers

    from peers.files import read_draw, write_found
    from peers.loop import prepared

    loader = read_draw(sys.argv[1])
    assert isinstance(loader, Loader)
    prepared(loader)
    if loader.start_method != "fork":
        torch.multiprocessing.set_start_method(loader.start_method)
    workload, strangers = workload_of(loader), Strangers()
    steps = max(STEPS_A_TRIAL, loader.steps * loader.epochs - WARMUP)
    baseline = profile(workload, knobs_of(loader), steps=steps, warmup=WARMUP)
    brain = HeuristicBrain()
    trials = [
        trial
        for trial in brain.propose(baseline, max_trials=MAX_TRIALS)
        if not (trial.knobs.compile or trial.knobs.amp)
    ]
    for trial in trials:
        trial.result = profile(workload, trial.knobs, steps=STEPS_A_TRIAL, warmup=WARMUP).to_dict()
    best = best_trial(trials)
    found = {
        "data_wait_frac": baseline.data_wait_frac,
        "narrative": brain.explain(baseline, trials),
        "best": settings(best.knobs, loader) if best else {},
        "gain": best.throughput / baseline.throughput if best else 1.0,
        "foreign": strangers.share(),
    }
    write_found(sys.argv[2], found)


if __name__ == "__main__":
    main()
