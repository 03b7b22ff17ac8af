"""How many planted faults `hr.watch` finds, and how often it alarms on healthy trainings.

    python benchmarks/watch/run.py [--seed 0] [--draws 1] [--only NAME]

Each case is a small training, drawn from a seed. Found: a finding of the expected kind at the expected place.
A false alarm: a fault in a healthy training. Notes are counted apart: they say what may be meant so.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

from cases import FAMILIES
from training import Case

import headrace as hr
from headrace.results.figures import Finding
from headrace.watch.findings import findings_of


class Outcome(NamedTuple):
    family: str
    name: str
    expected: tuple[str, str | None] | None
    findings: list[Finding]

    def verdict(self) -> str:
        if self.expected is None:
            return "false alarm" if any(one.severity == "fault" for one in self.findings) else "silent"
        kind, where = self.expected
        return (
            "found"
            if any(one.kind == kind and where in (None, one.where) for one in self.findings)
            else "missed"
        )


def play(case: Case) -> list[Finding]:
    with tempfile.TemporaryDirectory() as folder, hr.session(run=folder) as session:
        case.script()
        native = session._native
        assert native is not None
        return findings_of(native).all()


def show(outcome: Outcome) -> None:
    told = "; ".join(
        f"{one.kind} at {one.where}" + " (note)" * (one.severity != "fault") for one in outcome.findings
    )
    print(f"{outcome.verdict():12} {outcome.family:20} {outcome.name:36} {told or '-'}", flush=True)
    if outcome.verdict() in ("missed", "false alarm"):
        print(f"{'':12} expected: {outcome.expected}")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--draws", type=int, default=1, help="how often each case is drawn")
    parser.add_argument("--only", default="", help="part of a name of a family or a case")
    options = parser.parse_args()
    logging.getLogger("headrace").setLevel(logging.ERROR)
    outcomes = []
    for family, cases in FAMILIES.items():
        for make in cases:
            for draw in range(options.draws):
                if options.only in f"{family} {make.__name__}":
                    case = make(1000 * options.seed + draw)
                    outcomes.append(Outcome(family, make.__name__, case.expected, play(case)))
                    show(outcomes[-1])
    verdicts = [one.verdict() for one in outcomes]
    noted = sum(one.expected is None and bool(one.findings) and one.verdict() == "silent" for one in outcomes)
    faulty, healthy = (sum((one.expected is None) is kind for one in outcomes) for kind in (False, True))
    print(f"found {verdicts.count('found')} of {faulty}, missed {verdicts.count('missed')}")
    print(f"false alarms on {verdicts.count('false alarm')} of {healthy} healthy trainings, notes on {noted}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
