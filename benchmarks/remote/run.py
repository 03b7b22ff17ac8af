"""Verdicts on loops over a loopback store that behaves in known ways, and the truth by experiment.

    python benchmarks/remote/run.py --draws 20 --seed 1 [--kind throttled] [--out FILE]

Each draw records a loop, and runs it again without a recording: with the advised number of readers, and with
twice the readers. Prints a line a draw, and the score.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
#: A prediction counts as right within this share of the measured step.
NEAR = 0.1
#: Predictions count where other programs used so much of the cores at most.
MOST_OTHERS = 0.1

TRENDS = ("first_byte_by_load", "transfer_by_load", "answer_by_pause")
CLIENT_NAMES = ("urllib", "urllib3", "requests", "httpx", "fsspec")


@dataclass
class Draw:
    """A store, a loop over it, and what a verdict has to say."""

    kind: str
    server: dict[str, float]
    loop: dict[str, Any]
    cause: str | None
    words: str  #: in the headline
    more_gain: bool  #: readers may be advised
    values: dict[str, Any] = field(default_factory=dict)


def draw(rng: random.Random, kind: str) -> Draw:
    loop: dict[str, Any] = {
        "client": rng.choice(CLIENT_NAMES),
        "loader": rng.choice(["dataloader", "dataloader", "pipeline"]),
        "workers": rng.randint(2, 4),
        "batch_size": rng.choice([2, 4, 8]),
        "object_bytes": rng.randint(2_000, 30_000),
        "step_s": rng.uniform(0.005, 0.02),
        "decode_s": rng.uniform(0.0002, 0.0015),
        "seconds": 5.0,
    }
    latency = rng.uniform(0.03, 0.08)
    if kind == "latency":
        return Draw(
            kind,
            {"latency_s": latency, "jitter": rng.uniform(0, 0.3)},
            loop,
            "remote_storage",
            "latency",
            True,
        )
    if kind == "throttled":
        how = rng.choice(["every", "burst", "rate"])
        server: dict[str, float] = {"latency_s": latency / 4}
        if how == "every":
            server |= {"refuse_every": rng.choice([3, 4, 6])}
        elif how == "burst":
            server |= {"burst_every_s": 1.0, "burst_s": rng.uniform(0.25, 0.5)}
        else:
            server |= {"requests_per_s": rng.uniform(20, 40)}
        return Draw(kind, server, loop, "remote_storage", "refuses", False)
    if kind == "link":
        loop["object_bytes"] = rng.randint(60_000, 200_000)
        rate = loop["object_bytes"] * rng.uniform(15, 30)
        return Draw(
            kind, {"latency_s": latency / 20, "bytes_per_s": rate}, loop, "remote_storage", "link", False
        )
    if kind == "connections":  # look-alike of link: each connection has its own rate
        loop["object_bytes"] = rng.randint(60_000, 200_000)
        rate = loop["object_bytes"] / rng.uniform(0.04, 0.1)
        server = {"latency_s": latency / 20, "connection_bytes_per_s": rate}
        return Draw(kind, server, loop, "remote_storage", "connections", True)
    if kind == "service":
        slots = rng.randint(1, loop["workers"] - 1)
        server = {"latency_s": 0.002, "computes_s": rng.uniform(0.02, 0.05), "slots": slots}
        return Draw(kind, server, loop, "remote_storage", "busy", False)
    if kind == "cold":
        loop |= {"hot": 8, "objects": 1_000_000, "seconds": 8.0}
        server = {"latency_s": latency / 2, "cold_s": rng.uniform(0.1, 0.2)}
        return Draw(kind, server, loop, "remote_storage", "latency", True)
    loop |= {"step_s": rng.uniform(0.15, 0.25), "batch_size": 2}  # healthy
    return Draw("healthy", {"latency_s": rng.uniform(0.005, 0.02)}, loop, None, "", False)


KINDS = ("latency", "throttled", "link", "connections", "service", "cold", "healthy")


@contextlib.contextmanager
def serving(behaviour: dict[str, float]) -> Iterator[int]:
    command = [sys.executable, str(HERE / "server.py"), json.dumps(behaviour)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert server.stdin is not None
        try:
            yield int(server.stdout.readline())
        finally:
            server.stdin.close()


def run_loop(one: Draw, **changed: Any) -> dict[str, Any]:
    with serving(one.server) as port:
        values = {**one.loop, "port": port, **changed}
        command = [sys.executable, str(HERE / "loop.py"), json.dumps(values)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        if done.returncode != 0:
            raise RuntimeError(done.stderr[-2000:])
        return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def judged(one: Draw) -> dict[str, Any]:
    """What the verdict says, and what experiments say."""
    with tempfile.TemporaryDirectory() as run:
        recorded = run_loop(one, run=run)
    diagnosis = recorded["report"]["diagnosis"]
    rows = diagnosis["advice"]
    more = [row for row in rows if row["parameter"] in ("num_workers", "read.workers")]
    more = [row for row in more if row["to"] > one.loop["workers"]]
    result: dict[str, Any] = {
        "cause": diagnosis["cause"],
        "headline": diagnosis["summary"],
        "confidence": diagnosis["confidence"],
        "advised": more[0]["to"] if more else None,
        "step_s": recorded["step_s"],
        "others_cpu": recorded["report"]["profile"]["host"]["foreign_cpu_share"],
        "evidence": [each["figures"] for each in diagnosis["evidence"] if each["rule"] == "cause"],
    }
    remote = [op["remote"] for op in recorded["report"]["profile"]["operators"] if op["remote"]]
    result["trends"] = {key: remote[0][key] for key in TRENDS} if remote else {}
    result["cause_right"] = diagnosis["cause"] == one.cause and one.words in (diagnosis["summary"] or "")
    # A prediction that gains where nothing can be gained is as bad as more load on a throttled service.
    promised = [row for row in more if one.kind == "throttled" or row["predicted_step_s"] is not None]
    result["harmless"] = one.more_gain or not promised
    if more and more[0]["predicted_step_s"] is not None:
        then = run_loop(one, workers=more[0]["to"])["step_s"]
        result |= {"predicted_s": more[0]["predicted_step_s"], "measured_s": then}
        result["off"] = result["predicted_s"] / then - 1
    twice = run_loop(one, workers=2 * one.loop["workers"])["step_s"]
    result["twice_gains"] = recorded["step_s"] / twice
    return result


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", choices=KINDS)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    results = []
    for number in range(asked.draws):
        rng = random.Random(1000 * asked.seed + number)
        one = draw(rng, asked.kind or KINDS[number % len(KINDS)])
        result = {"kind": one.kind, "server": one.server, "loop": one.loop, **judged(one)}
        results.append(result)
        off = f"{result['off']:+.1%}" if "off" in result else "-"
        print(
            f"{number:3} {one.kind:12} {one.loop['client']:8} {one.loop['loader']:10} x{one.loop['workers']}"
            f" {'ok' if result['cause_right'] else 'WRONG':5} {result['cause']!s:15} advised"
            f" {result['advised']!s:5} off {off:7} twice {result['twice_gains']:.2f}x"
            f" {'' if result['harmless'] else 'HARM '}{'' if result['cause_right'] else result['headline']}",
            flush=True,
        )
        if asked.out:
            asked.out.write_text(json.dumps(results, indent=1))
    right = sum(each["cause_right"] for each in results)
    offs = [
        abs(each["off"]) for each in results if "off" in each and (each["others_cpu"] or 0) <= MOST_OTHERS
    ]
    print(f"cause right {right} of {len(results)}; harmless {sum(each['harmless'] for each in results)}")
    quiet = f"{sum(off <= NEAR for off in offs)} of {len(offs)}"
    print(f"predictions within {NEAR:.0%}, others below {MOST_OTHERS:.0%} of the cores: {quiet}")


if __name__ == "__main__":
    main()
