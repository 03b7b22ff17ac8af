"""TraceML 0.5.0 (`traceml-ai`): `traceml run` around a script, the primary diagnosis of its final summary.

Used as its README says for a plain PyTorch loop: `traceml.init(mode="auto")`, `traceml.trace_step(model)`
around each step, started by `traceml run`. Other sources than a DataLoader are wrapped with its
`wrap_dataloader_fetch`. Without a GPU it judges by the CPU's clock, where it knows no copies to a device.

Read as kind: INPUT_BOUND and INPUT_STRAGGLER are input-bound; COMPUTE_BOUND, RESIDUAL_HEAVY and "no clear
bottleneck" are not; too little data is undetermined. Operator: it has none. Cause: "Increase workers,
prefetch, or storage throughput" is too_few_workers, or no_overlap where there is no worker yet. It names no
number, so its advice is not applied.
"""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from typing import Any

from line import Line
from loader import Loader

from peers.answer import Answer
from peers.cures import more_workers

NAME = "TraceML"
NOTIONS = ("kind", "cause")
BOUND = ("INPUT_BOUND", "INPUT_STRAGGLER")
TOO_LITTLE = ("INSUFFICIENT_STEP_TIME_DATA",)
RUN = "draw"


def unable(_drawn: Line | Loader) -> str:
    return ""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def command(python: str, folder: Path) -> list[str]:
    return [
        *(str(Path(python).with_name("traceml")), "run", str(Path(__file__).resolve())),
        *("--mode", "summary", "--logs-dir", str(folder), "--run-name", RUN),
        *("--aggregator-port", str(free_port()), "--master-port", str(free_port())),
        *("--args", str(folder / "drawn.json"), str(folder / "found.json")),
    ]


def answer(drawn: Line | Loader, found: dict[str, Any]) -> Answer:
    diagnosis = found["summary"]["primary_diagnosis"]
    words = f"{diagnosis['status']}: {diagnosis['summary']}"
    if diagnosis["kind"] in TOO_LITTLE:
        return Answer("undetermined", words=words)
    if diagnosis["kind"] in BOUND:
        return Answer("input_bound", cause=more_workers(drawn), words=words)
    return Answer("not_input_bound", cause="", words=words)


def main() -> None:
    import traceml_ai as traceml  # type: ignore[import-not-found,unused-ignore]
    from machine import Strangers

    from peers.files import read_draw, write_found
    from peers.loop import batches, prepared, train

    drawn = read_draw(sys.argv[1])
    prepared(drawn)
    strangers = Strangers()
    traceml.init(mode="auto")
    loader = batches(drawn)
    if isinstance(drawn, Line):
        loader = traceml.wrap_dataloader_fetch(loader)
    train(drawn, loader, traceml.trace_step)
    foreign = strangers.share()
    summary = traceml.final_summary(print_text=False)
    write_found(sys.argv[2], {"summary": summary, "foreign": foreign})


if __name__ == "__main__":
    main()
