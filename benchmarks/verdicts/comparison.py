"""Headrace beside the other contenders, on the same draws and by the same rules."""

from __future__ import annotations

from collections.abc import Callable

from gains import Noise, harmful, measured_noise
from peers.answer import Answer
from peers.contenders import NOTIONS
from record import Record
from scoring import share_in_words

OURS = "Headrace"
#: Tools that look at the CPU use of the whole machine take the strangers' for the draw's.
MAX_FOREIGN = 0.4
Said = list[tuple[Record, Answer]]


def ours(one: Record) -> Answer:
    said = one.said
    return Answer(said.kind, said.operator, said.cause, advised_step_s=one.measured_s)


def kind_right(one: Record, answer: Answer) -> bool:
    """Who knows no "some of the time" is right with input-bound, unless healthy were right as well."""
    kinds = set(one.expected.kinds)
    if "intermittent" in kinds and "not_input_bound" not in kinds:
        kinds.add("input_bound")
    return answer.kind in kinds


def operator_right(one: Record, answer: Answer) -> bool:
    expected = one.expected.operator
    return bool(answer.operator) if expected == "*" else answer.operator == expected


def cause_right(one: Record, answer: Answer) -> bool:
    return answer.cause == one.expected.cause


def alarm(one: Record, answer: Answer) -> bool:
    """Of kind alone: a tool that proposes trials for a healthy loader has not raised one by that."""
    return answer.kind in {"input_bound", "intermittent"} - set(one.expected.kinds)


def answers_of(records: list[Record], name: str) -> Said:
    """The draws that `name` judged, and on which no stranger disturbed it."""
    if name == OURS:
        return [(one, ours(one)) for one in records]
    return [
        (one, one.answers[name])
        for one in records
        if name in one.answers
        and not one.answers[name].unable
        and one.answers[name].foreign <= min(one.foreign_limit, MAX_FOREIGN)
    ]


def print_comparison(records: list[Record]) -> None:
    """`records`: those that are scored. Operator and cause are counted where the draw has one.

    To abstain on a few steps is a promise of ours that the others have not given: those draws are left out.
    """
    records = [one for one in records if not one.error and one.expected.kinds != ["undetermined"]]
    seen = {name for one in records for name in one.answers}
    names = [OURS, *(name for name in NOTIONS if name in seen)]
    if len(names) == 1:
        return
    noise = measured_noise(records)
    columns = ("kind", "operator", "cause", "false alarms", "harmful advice")
    for framework in dict.fromkeys(one.framework for one in records):
        within = [one for one in records if one.framework == framework]
        print(f"\n{framework}, {len(within)} draws (share right; of alarms and harm: fewer is better)")
        print(f"  {'contender':<20}{'judged':>8}" + "".join(f"{column:>24}" for column in columns))
        for name in names:
            print(f"  {name:<20}" + row(answers_of(within, name), name, noise))
    print_left_out(records, names)


def row(said: Said, name: str, noise: Noise) -> str:
    notions = NOTIONS.get(name, ("kind", "operator", "cause"))

    def share(notion: str, right: Callable[[Record, Answer], bool], of: Said) -> str:
        if notion not in notions or not of:
            return f"{'n/a':>24}"
        return f"{share_in_words(sum(right(one, answer) for one, answer in of), len(of)):>24}"

    advised = [(one, answer) for one, answer in said if answer.advised_step_s is not None]
    harm = sum(harmful(one, answer.advised_step_s or 0, noise) for one, answer in advised)
    return (
        f"{len(said):>8}"
        + share("kind", kind_right, said)
        + share("operator", operator_right, [each for each in said if each[0].expected.operator])
        + share("cause", cause_right, [each for each in said if each[0].expected.cause])
        + share("kind", alarm, [each for each in said if each[0].alarm_free])
        + (f"{share_in_words(harm, len(advised)):>24}" if advised else f"{'n/a':>24}")
    )


def print_left_out(records: list[Record], names: list[str]) -> None:
    """Why a contender judged fewer draws than there are."""
    for name in names[1:]:
        asked = [one.answers[name] for one in records if name in one.answers]
        reasons = [answer.unable for answer in asked if answer.unable]
        for reason in dict.fromkeys(reasons):
            print(f"  {name} left out {reasons.count(reason)}: {reason}")
        if disturbed := len(asked) - len(reasons) - len(answers_of(records, name)):
            print(f"  {name} left out {disturbed}: strangers took the CPU while it ran")
