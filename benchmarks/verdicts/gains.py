"""What the first advice did when it was applied: prediction errors, intervals, harm beyond the noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from record import Record
from scoring import quantile, share_in_words

CLOSE = 0.15
#: Without a second run of the same draw, a slow-down of so much counts as harm.
NOISE_UNMEASURED = 0.05
#: The bars hold where strangers used less than this in both runs.
QUIET = 0.05


@dataclass
class Noise:
    """How far two runs of the same draw lie apart, as a share: 95 % of such pairs are closer."""

    sleeping: float = NOISE_UNMEASURED
    busy: float = NOISE_UNMEASURED
    pairs: int = 0

    def of(self, one: Record) -> float:
        return self.busy if one.uses_cpu else self.sleeping


def apart(one: Record) -> float:
    assert one.again_s is not None
    return abs(one.again_s / one.step_s - 1)


def measured_noise(records: list[Record]) -> Noise:
    noise = Noise()
    pairs = [one for one in records if one.again_s is not None]
    noise.pairs = len(pairs)
    if sleeping := [apart(one) for one in pairs if not one.uses_cpu]:
        noise.sleeping = quantile(sleeping, 0.95)
    if busy := [apart(one) for one in pairs if one.uses_cpu]:
        noise.busy = quantile(busy, 0.95)
    return noise


def before_s(one: Record) -> float:
    """The unchanged draw's step: of both its runs where there are two."""
    return one.step_s if one.again_s is None else (one.step_s + one.again_s) / 2


def harmful(one: Record, step_s: float, noise: Noise) -> bool:
    """Whether `step_s`, reached with an advice, is slower than the draw was, by more than the noise."""
    return step_s > before_s(one) * (1 + noise.of(one))


@dataclass
class Gains:
    """Of the draws whose first advice was applied and measured."""

    tried: int
    errors: list[float]
    close: int
    inside: int
    harmful: int
    slower: int  # than before at all, whatever the noise


def gains_of(records: list[Record], noise: Noise) -> Gains:
    gains = Gains(0, [], 0, 0, 0, 0)
    for one in records:
        said, measured_s = one.said, one.measured_s
        if measured_s is None or said.predicted_s is None:
            continue
        error = said.predicted_s / measured_s - 1
        gains.tried += 1
        gains.errors.append(error)
        gains.close += abs(error) <= CLOSE
        if said.low_s is not None and said.high_s is not None:
            gains.inside += said.low_s <= measured_s <= said.high_s
        gains.harmful += harmful(one, measured_s, noise)
        gains.slower += measured_s > before_s(one)
    return gains


def undisturbed(one: Record) -> bool:
    return one.foreign < QUIET and one.measured_foreign < QUIET


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def print_gains(records: list[Record]) -> None:
    noise = measured_noise(records)
    tried = [one for one in records if one.measured_s is not None]
    if not tried:
        return
    rows: list[tuple[str, Callable[[Record], bool]]] = [
        ("all scored", lambda _one: True),
        (f"foreign CPU < {100 * QUIET:.0f} % in both runs", undisturbed),
        ("that sleep", lambda one: not one.uses_cpu),
        ("that need the CPU", lambda one: one.uses_cpu),
    ]
    print(
        f"\nfirst advice applied and measured. Noise between two runs of the same draw ({noise.pairs} pairs, "
        f"95 % of them): {percent(noise.sleeping)} where it sleeps, {percent(noise.busy)} where it computes"
    )
    print(
        f"  {'draws':<32}{'tried':>6}{'median':>9}{'size med':>9}{'p90':>9}{'largest':>9}"
        f"{'within 15 %':>22}{'in the interval':>22}{'harmful':>22}{'slower at all':>15}"
    )
    for label, belongs in rows:
        gains = gains_of([one for one in tried if belongs(one)], noise)
        if not gains.tried:
            continue
        sizes = [abs(error) for error in gains.errors]
        errors = (quantile(gains.errors, 0.5), quantile(sizes, 0.5), quantile(sizes, 0.9), max(sizes))
        counts = (gains.close, gains.inside, gains.harmful)
        print(
            f"  {label:<32}{gains.tried:>6}"
            + "".join(f"{percent(error):>9}" for error in errors)
            + "".join(f"{share_in_words(count, gains.tried):>22}" for count in counts)
            + f"{gains.slower:>15}"
        )
    for one in tried:
        if harmful(one, one.measured_s or 0, noise):
            print(
                f"  harmful: {one.name} {one.seed}: {one.applied}, {1e3 * before_s(one):.2f} -> "
                f"{1e3 * (one.measured_s or 0):.2f} ms"
            )
