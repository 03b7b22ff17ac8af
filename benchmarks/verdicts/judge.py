"""Judges what is stored with the rules of the day: the corpus, and the draws whose truth was measured.

    make verdicts
    make verdicts ABLATE=1

Prints the scores of each set, and which answers differ from those of the last time, which are kept in
``build/verdicts/answers.json``. With ABLATE, each threshold is set to nothing, a half, double and a million
times what it is, and those are listed that no case needs.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from calibration import print_calibration
from experiment.score import MIN_PART, Score, in_words, print_scores
from experiment.store import HALVES, judged, stored
from scoring import share_in_words

import headrace as hr

ROOT = Path(__file__).resolve().parents[2]
SIMULATED = ROOT / "build" / "verdicts" / "simulated"
SIMULATED_CASES = 500
CASES = ROOT / "build" / "verdicts" / "cases"
ANSWERS = ROOT / "build" / "verdicts" / "answers.json"

MAX_SHOWN = 12

#: Kind, operator and cause, as said.
Answer = tuple[str, str, str]


def answer_of(diagnosis: dict[str, Any]) -> Answer:
    return str(diagnosis["kind"]), diagnosis["operator"] or "", diagnosis["cause"] or ""


def operators_of(case: dict[str, Any]) -> list[str]:
    """Any of them is right; "*" is any operator at all; none: not judged."""
    one = case.get("operator", "")
    return case.get("operators", [one] if one else [])  # type: ignore[no-any-return]


def judge_cases(folder: Path, title: str) -> Iterator[tuple[str, Answer]]:
    """Profiles of declared classes; prints how many are right."""
    kinds = operators = causes = with_operator = with_cause = count = 0
    wrong = []
    for path in sorted(folder.glob("*.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        report = hr.Report.from_profile_json(json.dumps(document["profile"]))
        said = answer_of(report.to_dict()["diagnosis"])
        count += 1
        right = [said[0] in document["kinds"]]
        kinds += right[0]
        if accepted := operators_of(document):
            with_operator += 1
            right.append(said[1] in accepted or ("*" in accepted and bool(said[1])))
            operators += right[-1]
        if document["cause"]:
            with_cause += 1
            right.append(said[2] == document["cause"])
            causes += right[-1]
        if not all(right):
            expected = [*document["kinds"], *accepted, document["cause"]]
            wrong.append(f"  {path.stem}: {' '.join(filter(None, said))}, expected {' '.join(expected)}")
        yield path.stem, said
    if not count:
        return
    print(f"\n{title}: {count} profiles of declared classes")
    print(f"  {'kind':<36}{share_in_words(kinds, count):>26}")
    print(f"  {'operator':<36}{share_in_words(operators, with_operator):>26}")
    print(f"  {'cause':<36}{share_in_words(causes, with_cause):>26}")
    print("\n".join(wrong[:MAX_SHOWN]))


class QueueScore:
    """How often the queues alone name an operator that is right."""

    def __init__(self) -> None:
        self._count = self._right = self._silent = 0

    def add(self, diagnosis: dict[str, Any], accepted: list[str]) -> None:
        said = (diagnosis["queue_rule"] or {}).get("operator")
        self._count += 1
        self._right += said in accepted
        self._silent += said is None

    def print(self) -> None:
        if self._count:
            wrong = self._count - self._right - self._silent
            says = f"{share_in_words(self._right, self._count)}; silent {self._silent}, wrong {wrong}"
            print(f"  {'operator, by queues alone':<36}{says:>26}")


def judge_draws(folder: Path, half: str) -> Iterator[tuple[str, Answer]]:
    scores = []
    for path in stored(folder / half):
        score = Score.of(judged(path))
        scores.append(score)
        yield f"{half}/{path.name.partition('.')[0]}", answer_of(score.diagnosis)
    if not scores:
        return
    print(f"\nstored draws of real work, {half} half")
    if half == HALVES[0]:  # nobody looks at those that no rule may be made from
        for score in scores:
            if score.undisturbed and score.steady and False in (score.kind_right, score.operator_right):
                print(in_words(score))
    print_scores(scores, 0)
    queues = QueueScore()
    for one in scores:
        if one.undisturbed and one.steady and one.operators:
            queues.add(one.diagnosis, one.operators)
    queues.print()
    verdicts = [
        (float(one.diagnosis["confidence"]), one.kind_right and one.operator_right is not False)
        for one in scores
        if one.undisturbed and one.steady and one.kind_right is not None
    ]
    print_calibration(verdicts, f"{half} half")


def judge_samples(folder: Path) -> Iterator[tuple[str, Answer]]:
    """Draws of which kind and the gain of each operator's removal are known (the conformance data)."""
    kinds: list[bool] = []
    operators: list[bool] = []
    queues = QueueScore()
    for path in stored(folder):
        document = json.loads(gzip.decompress(path.read_bytes()))
        truth = document["truth"]
        report = hr.Report.from_profile_json(json.dumps(document["report"]["profile"]))
        diagnosis = report.to_dict()["diagnosis"]
        said = answer_of(diagnosis)
        bound = said[0] in ("input_bound", "intermittent")
        if truth["kind"]:
            kinds.append(bound == (truth["kind"] == "input_bound"))
        if bound and sample_names_operator(truth):
            queues.add(diagnosis, truth["right_operators"])
            operators.append(said[1] in truth["right_operators"])
        yield f"samples/{path.name.partition('.')[0]}", said
    if kinds:
        print(f"\nsample draws of real work: {folder}")
        print(f"  {'kind':<36}{share_in_words(sum(kinds), len(kinds)):>26}")
        print(f"  {'operator':<36}{share_in_words(sum(operators), len(operators)):>26}")
        queues.print()


def simulated(program: Path) -> Path:
    """Cases of all simulated classes; always the same."""
    shutil.rmtree(SIMULATED, ignore_errors=True)
    subprocess.run([program, "write", str(SIMULATED), str(SIMULATED_CASES), "1"], check=True)
    return SIMULATED


def write_cases(draws: Path, samples: Path) -> None:
    """The draws from which rules may be made, as cases with a kind and operators."""
    shutil.rmtree(CASES, ignore_errors=True)
    CASES.mkdir(parents=True)

    def write(name: str, kind: str, operators: list[str], profile: dict[str, Any]) -> None:
        kinds = {"": [], "input_bound": ["input_bound", "intermittent"]}.get(kind, [kind])
        case = {"kinds": kinds, "operators": operators, "cause": "", "profile": profile}
        (CASES / f"{name}.json").write_text(json.dumps(case), encoding="utf-8")

    for path in stored(draws / HALVES[0]):
        score = Score.of(judged(path))
        if score.undisturbed and score.steady:
            name = path.name.partition(".")[0]
            write(name, score.kind, score.operators, score.trials.report["profile"])
    for path in stored(samples):
        document = json.loads(gzip.decompress(path.read_bytes()))
        truth = document["truth"]
        write(
            path.name.partition(".")[0],
            truth["kind"] or "",
            truth["right_operators"] if sample_names_operator(truth) else [],
            document["report"]["profile"],
        )


def sample_names_operator(truth: dict[str, Any]) -> bool:
    """Else no operator alone is what limits: handing the batches over is."""
    best = max(truth["removal_gains"].values(), default=0.0)
    return bool(truth["right_operators"]) and best >= MIN_PART * truth["lost_share"]


def print_changes(answers: dict[str, Answer]) -> None:
    """Against the last time; then keeps these."""
    if ANSWERS.exists():
        before = json.loads(ANSWERS.read_text(encoding="utf-8"))
        changed = [name for name in answers if name in before and list(answers[name]) != before[name]]
        print(f"\n{len(changed)} of {len(answers)} answers differ from the last time")
        for name in changed:
            print(
                f"  {name}: {' '.join(filter(None, before[name]))} -> {' '.join(filter(None, answers[name]))}"
            )
    ANSWERS.parent.mkdir(parents=True, exist_ok=True)
    ANSWERS.write_text(json.dumps(answers, indent=0) + "\n", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--draws", type=Path, default=ROOT / "tests" / "verdicts" / "draws")
    parser.add_argument("--corpus", type=Path, default=ROOT / "tests" / "verdicts" / "corpus")
    parser.add_argument("--cases", type=Path, help="the program that writes simulated cases")
    parser.add_argument("--ablate", action="store_true", help="also say which thresholds no case needs")
    options = parser.parse_args()
    answers = dict(judge_cases(options.corpus, "corpus, recorded"))
    if options.cases is not None:
        answers |= judge_cases(simulated(options.cases), "simulated")
    for half in HALVES:
        answers |= judge_draws(options.draws, half)
    samples = Path(os.environ.get("HEADRACE_CONFORMANCE_DATA", ROOT.parent / "shared" / "data")) / "draws"
    answers |= judge_samples(samples)
    print_changes(answers)
    if options.ablate:
        write_cases(options.draws, samples)
        folders = [options.corpus, SIMULATED, CASES]
        return subprocess.run([options.cases, "ablate", *map(str, folders)], check=False).returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
