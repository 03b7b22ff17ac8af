"""Runs the demo's pipeline twice, before and after the advice, and tells the story."""

from __future__ import annotations

import sys
import time
from datetime import datetime
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

import headrace as hr
from headrace.results.data import Advice
from headrace.show.demo.images import make_images
from headrace.show.demo.subject import Subject


def run_demo(subject: Subject, images: int, seconds: float | None) -> None:
    """The whole demonstration; writes to the terminal and below ``headrace-runs/``."""
    seconds = subject.seconds if seconds is None else seconds
    console = Console(stderr=False, highlight=False, soft_wrap=True)
    folder = Path("headrace-runs") / f"demo-{datetime.now():%Y%m%d-%H%M%S}"
    console.print(f"[bold]Headrace demo[/]: {subject.told}, and feed a")
    console.print(
        f"simulated accelerator that takes {subject.step_s * 1e3:.0f} ms for a batch of {subject.batch}.\n"
    )
    with _progress(console) as progress:
        making = progress.add_task(f"make {images} JPEG files (once)", total=images)
        paths = make_images(images, lambda: progress.advance(making))
    before = _measure(console, subject, f"run 1: 1 {subject.workers}", folder / "before", paths, 1, seconds)
    _print_report(console, before)
    advice = _workers_advice(subject, before)
    if advice is None:
        if before.diagnosis.kind == "undetermined":
            console.print("\nNo verdict, so nothing is changed; a longer run gives one: --seconds 30")
        elif before.diagnosis.kind == "input_bound":
            console.print(
                "\nNothing is changed: no change was found that is sure to gain; the verdict says why."
            )
        else:
            console.print(f"\nNothing to change: on this machine one {subject.workers} is enough.")
        _say_where(console, folder, before, None)
        return
    workers = int(advice.to or "1")
    console.print(f"\n[bold]Applying the advice[/]: {advice.parameter} {advice.from_} -> {advice.to}\n")
    label = f"run 2: {subject.workers}, {workers} of them"
    after = _measure(console, subject, label, folder / "after", paths, workers, seconds)
    _compare(console, subject, before, after, advice)
    _say_where(console, folder, before, after)


def _progress(console: Console) -> Progress:
    columns = (TextColumn("{task.description:<32}"), BarColumn(), TimeElapsedColumn())
    return Progress(*columns, console=console, disable=not console.is_terminal)


def _measure(
    console: Console,
    subject: Subject,
    label: str,
    run: Path,
    paths: list[Path],
    workers: int,
    seconds: float,
) -> hr.Report:
    """One run of the pipeline for ``seconds``; its report."""
    with _progress(console) as progress:
        task = progress.add_task(label, total=seconds)
        loader = subject.start(paths, workers, seconds, run)
        began = time.monotonic()
        for _batch in loader:
            time.sleep(subject.step_s)
            progress.update(task, completed=min(seconds, time.monotonic() - began))
        report: hr.Report = loader.report()
    if not console.is_terminal:
        console.print(label)
    return report


def _print_report(console: Console, report: hr.Report) -> None:
    width = min(console.width if console.is_terminal else 100, 110)
    sys.stdout.write("\n" + report.to_text(width=width, color=console.is_terminal).rstrip() + "\n")
    sys.stdout.flush()


def _workers_advice(subject: Subject, report: hr.Report) -> Advice | None:
    for advice in report.diagnosis.advice:
        if advice.parameter == subject.parameter and advice.to is not None:
            return advice
    return None


def _compare(console: Console, subject: Subject, before: hr.Report, after: hr.Report, advice: Advice) -> None:
    """Predicted beside measured."""
    was, now = before.profile.sink, after.profile.sink
    console.print("\n[bold]PREDICTED AND MEASURED[/]")
    console.print(
        f"  step before       {was.step_s * 1e3:7.1f} ms   (waited {was.wait_share:.0%} of the time)"
    )
    if advice.predicted_step_s is not None and advice.low is not None and advice.high is not None:
        interval = f"[{advice.low * 1e3:.0f}, {advice.high * 1e3:.0f}]"
        console.print(
            f"  step predicted    {advice.predicted_step_s * 1e3:7.1f} ms   {interval}", markup=False
        )
    console.print(
        f"  step measured     {now.step_s * 1e3:7.1f} ms   (waited {now.wait_share:.0%} of the time)"
    )
    console.print(
        f"  gained            {was.step_s / max(now.step_s, 1e-9):7.2f} x    "
        f"({subject.batch / now.step_s:.0f} images a second)"
    )
    for line in _disturbed(before, after, advice):
        console.print(f"  {line}", markup=False)
    verdict = after.diagnosis
    console.print(f"  now the limit is  {verdict.operator or 'the training step'}: {verdict.summary}")


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


def _say_where(console: Console, folder: Path, before: hr.Report, after: hr.Report | None) -> None:
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
    console.print(f"\nThe reports lie in {files}.")
    console.print(f"The first one as a page, for any browser: {folder}/report.html")
    console.print(f"Its timeline, for ui.perfetto.dev: {timeline.path}")
    command = sys.argv[0] if Path(sys.argv[0]).name == "headrace" else "python -m headrace"
    console.print(f"Read one again with: {command} report {folder}/before")
