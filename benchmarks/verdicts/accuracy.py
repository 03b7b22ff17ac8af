"""How many verdicts are right, per class and in total; false alarms; verdicts beside other programs."""

from __future__ import annotations

from record import Record
from scoring import share_in_words

#: Below, a verdict beside other programs counts as one that doubts itself.
SURE = 0.7


def print_accuracy(records: list[Record]) -> None:
    print(f"\n{'class':<28}{'kind':>22}{'operator':>22}{'cause':>22}   (share, Wilson 95 %)")

    def row(label: str, of: list[Record]) -> None:
        counts = (
            sum(one.kind_right for one in of),
            sum(one.operator_right for one in of),
            sum(one.cause_right for one in of),
        )
        print(f"{label:<28}" + "".join(f"{share_in_words(count, len(of)):>22}" for count in counts))

    for framework in dict.fromkeys(one.framework for one in records):
        within = [one for one in records if one.framework == framework]
        for name in dict.fromkeys(one.name for one in within):
            row(name, [one for one in within if one.name == name])
        row(f"all: {framework}", within)
    row("all", records)
    right = sum(one.right for one in records)
    print(f"kind, operator and cause together: {share_in_words(right, len(records))}")


def false_alarms(records: list[Record]) -> tuple[int, int]:
    """Alarms, and the runs that must be free of them."""
    quiet = [one for one in records if one.alarm_free and not one.error]
    return sum(one.alarm for one in quiet), len(quiet)


def print_alarms(records: list[Record]) -> None:
    alarms, quiet = false_alarms(records)
    print(
        "\nfalse alarms on healthy, slow-start, one-stall and too short runs: "
        f"{share_in_words(alarms, quiet)}"
    )


def print_beside_others(records: list[Record]) -> None:
    """Draws with neighbours that burn CPU: to abstain, or to doubt, is as good as to be right."""
    apart = [one for one in records if one.neighbours and not one.error]
    if not apart:
        return
    abstained = [one for one in apart if one.said.kind == "undetermined"]
    judged = [one for one in apart if one.said.kind != "undetermined"]
    right = [one for one in judged if one.right]
    wrong = [one for one in judged if not one.right]
    unsure = [one for one in wrong if one.said.confidence < SURE]
    loads = sorted(one.foreign for one in apart)
    print(
        f"\nbeside other programs ({len(apart)} draws, strangers used {100 * loads[0]:.0f} to "
        f"{100 * loads[-1]:.0f} % of the cores), scored apart:\n"
        f"  right {len(right)}, abstained {len(abstained)}, wrong with a confidence under {SURE:g} "
        f"{len(unsure)}, wrong and sure {len(wrong) - len(unsure)}\n"
        f"  the verdict names their CPU time: "
        f"{share_in_words(sum(one.said.foreign_in_evidence for one in apart), len(apart))}; "
        f"predicts a gain all the same: {sum(one.said.predicted_s is not None for one in apart)}"
    )
