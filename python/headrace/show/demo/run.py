"""Runs the demo's pipeline twice, before and after the advice, and tells the story."""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import click

import headrace as hr
from headrace.results.data import Advice
from headrace.show.cli import _shared
from headrace.show.demo.images import make_images


@dataclass(frozen=True)
class Subject:
    """One pipeline of the demo, which can be run with any number of workers."""

    told: str  # what it does, before "and feed"
    workers: str  # "decode worker": what there are too few of
    parameter: str  # of the advice that is applied
    batch: int  # images
    step_s: float  # what the simulated accelerator takes for a batch
    seconds: float  # of each of the two runs, where the user does not say
    #: A wrapped loader over these files, with so many workers, for so many seconds, recorded into a folder.
    start: Callable[[list[Path], int, float, Path], Any]


def run_demo(subject: Subject, images: int, seconds: float | None) -> None:
    """The whole demonstration; writes to the terminal and below ``headrace-runs/``."""
    seconds = subject.seconds if seconds is None else seconds
    folder = Path("headrace-runs") / f"demo-{datetime.now():%Y%m%d-%H%M%S}"
    click.echo(f"{_bold('Headrace demo')}: {subject.told}, and feed a")
    click.echo(
        f"simulated accelerator that takes {subject.step_s * 1e3:.0f} ms for a batch of {subject.batch}.\n"
    )
    with _shared.progress() as show:
        made = itertools.count(1)
        making = f"make {images} JPEG files (once): "
        paths = make_images(images, lambda: show and show(f"{making}{next(made)}"))
    before = _measure(subject, f"run 1: 1 {subject.workers}", folder / "before", paths, 1, seconds)
    click.echo(f"\n{str(before).rstrip()}")
    advice = _workers_advice(subject, before)
    if advice is None:
        if before.diagnosis.kind == "undetermined":
            click.echo("\nNo verdict, so nothing is changed; a longer run gives one: --seconds 30")
        elif before.diagnosis.kind == "input_bound":
            click.echo(
                "\nNothing is changed: no change was found that is sure to gain; the verdict says why."
            )
        else:
            click.echo(f"\nNothing to change: on this machine one {subject.workers} is enough.")
        _say_where(folder, before, None)
        return
    workers = int(advice.to or "1")
    click.echo(f"\n{_bold('Applying the advice')}: {advice.parameter} {advice.from_} -> {advice.to}\n")
    label = f"run 2: {subject.workers}, {workers} of them"
    after = _measure(subject, label, folder / "after", paths, workers, seconds)
    _compare(subject, before, after, advice)
    _say_where(folder, before, after)


def _bold(text: str) -> str:
    return click.style(text, bold=True)


def _measure(
    subject: Subject, label: str, run: Path, paths: list[Path], workers: int, seconds: float
) -> hr.Report:
    """One run of the pipeline for ``seconds``; its report."""
    with _shared.progress() as show:
        loader = subject.start(paths, workers, seconds, run)
        began = time.monotonic()
        for _batch in loader:
            time.sleep(subject.step_s)
            if show:
                show(f"{label}, {min(seconds, time.monotonic() - began):.0f} of {seconds:.0f} s")
        report: hr.Report = loader.report()
    click.echo(label)
    return report


def _workers_advice(subject: Subject, report: hr.Report) -> Advice | None:
    for advice in report.diagnosis.advice:
        if advice.parameter == subject.parameter and advice.to is not None:
            return advice
    return None


def _compare(subject: Subject, before: hr.Report, after: hr.Report, advice: Advice) -> None:
    """Predicted beside measured."""
    was, now = before.profile.sink, after.profile.sink
    click.echo(f"\n{_bold('PREDICTED AND MEASURED')}")
    click.echo(f"  step before       {was.step_s * 1e3:7.1f} ms   (waited {was.wait_share:.0%} of the time)")
    if advice.predicted_step_s is not None and advice.low is not None and advice.high is not None:
        interval = f"[{advice.low * 1e3:.0f}, {advice.high * 1e3:.0f}]"
        click.echo(f"  step predicted    {advice.predicted_step_s * 1e3:7.1f} ms   {interval}")
    click.echo(f"  step measured     {now.step_s * 1e3:7.1f} ms   (waited {now.wait_share:.0%} of the time)")
    click.echo(
        f"  gained            {was.step_s / max(now.step_s, 1e-9):7.2f} x    "
        f"({subject.batch / now.step_s:.0f} images a second)"
    )
    for line in _disturbed(before, after, advice):
        click.echo(f"  {line}")
    verdict = after.diagnosis
    click.echo(f"  now the limit is  {verdict.operator or 'the training step'}: {verdict.summary}")


def _disturbed(before: hr.Report, after: hr.Report, advice: Advice) -> list[str]:
    """The sentence for a busy machine, where the prediction missed the measured step."""
    noticeable = 0.1
    others = [report.profile.host.foreign_cpu_share or 0.0 for report in (before, after)]
    low, high, measured = advice.low, advice.high, after.profile.sink.step_s
    missed = low is None or high is None or not low <= measured <= high
    if not missed or max(others) < noticeable:
        return []
    return [
        f"the machine was busy: other programs used {others[0]:.0%} of the cores in run 1 "
        f"and {others[1]:.0%} in run 2,",
        "which is why predicted and measured differ; on an idle machine they agree better",
    ]


def _say_where(folder: Path, before: hr.Report, after: hr.Report | None) -> None:
    for name, report in (("before", before), ("after", after)):
        if report is None:
            continue
        (folder / name).mkdir(parents=True, exist_ok=True)
        report.save(folder / name / "report.json")
        (folder / name / "report.txt").write_text(report.to_text(), encoding="utf-8")
    # A reader wants the page with the fault and the advice's promise first.
    before.to_html(folder / "report.html")
    if after is not None:
        after.to_html(folder / "after" / "report.html")
    timeline = hr.timeline.merge(folder / "before", out=folder / "timeline.json.gz")
    files = " and ".join(
        f"{folder}/{name}/report.txt" for name in (("before", "after") if after else ("before",))
    )
    click.echo(f"\nThe reports lie in {files}.")
    click.echo(f"The first one as a page, for any browser: {folder}/report.html")
    click.echo(f"Its timeline, for ui.perfetto.dev: {timeline.path}")
    command = sys.argv[0] if Path(sys.argv[0]).name == "headrace" else "python -m headrace"
    click.echo(f"Read one again with: {command} report {folder}/before")
