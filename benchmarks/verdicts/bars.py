"""What must hold of all scored draws, and whether it does."""

from __future__ import annotations

from accuracy import false_alarms
from gains import gains_of, measured_noise, undisturbed
from record import Record


def print_bars(records: list[Record]) -> bool:
    """Prints each; true when all hold. A bar of which there are no draws does not count."""
    noise = measured_noise(records)
    gains = gains_of([one for one in records if undisturbed(one)], noise)
    all_gains = gains_of(records, noise)
    alarms, quiet = false_alarms(records)
    rows = [
        ("kind", sum(one.kind_right for one in records), len(records), 0.97),
        ("operator", sum(one.operator_right for one in records), len(records), 0.97),
        ("cause", sum(one.cause_right for one in records), len(records), 0.95),
        ("no alarm where there is nothing to do", quiet - alarms, quiet, 1.0),
        ("predicted within 15 %, undisturbed", gains.close, gains.tried, 0.9),
        ("measured inside the interval, undisturbed", gains.inside, gains.tried, 0.8),
        ("advice that did no harm", all_gains.tried - all_gains.harmful, all_gains.tried, 1.0),
    ]
    print("\nbars")
    holds = bool(records)
    for what, right, of, least in rows:
        if of == 0:
            continue
        met = right >= least * of
        holds = holds and met
        print(f"  {what:<44}{right:>5} of {of:<5} >= {100 * least:.0f} %  {'ok' if met else 'MISSED'}")
    return holds
