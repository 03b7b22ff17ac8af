"""Truth by experiment beside what the report said: one draw, and all of them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from scoring import quantile, share_in_words

from .plan import Plan
from .trials import QUIET, Trials

#: Of the plain step: above, the input costs something; below, it does not; between, either verdict is right.
BOUND, HEALTHY = 0.12, 0.05
#: An operator is right if taking it away gains this share of the best gain.
NEARLY = 0.7
#: Below this share of the step, or of what an input without cost gains, no operator alone is what limits.
MIN_GAIN, MIN_PART = 0.05, 0.2
CLOSE = 0.10
#: Fewer predictions than this cannot show that their intervals are too wide.
MANY = 34
#: Equal runs that differ by more had another machine under them: one explains nothing about the other.
UNSTEADY = 0.2
#: Advice that is slower by more than this, beyond the spread of the plain runs, did harm.
SLOWER = 0.03


@dataclass
class Score:
    trials: Trials
    plan: Plan

    @classmethod
    def of(cls, trials: Trials) -> Score:
        return cls(trials, Plan.from_dict(trials.plan))

    @property
    def undisturbed(self) -> bool:
        return self.trials.foreign < QUIET

    @property
    def steady(self) -> bool:
        """Nothing that was measured says that the recorded run and those of the truth had another machine."""
        return self.trials.spread < UNSTEADY and abs(self.drift) < UNSTEADY

    # --- truth ---

    @property
    def share(self) -> float:
        """Of the plain step, what an input without cost would save."""
        return max(0.0, 1 - self.trials.ceiling_s / self.trials.plain_s)

    @property
    def kind(self) -> str:
        """Empty where either verdict is right, or equal runs differ too much to tell."""
        if self.share > max(BOUND, HEALTHY + self.trials.spread):
            return "input_bound"
        return "not_input_bound" if self.share < HEALTHY else ""

    @property
    def gains(self) -> dict[str, float]:
        """Share of the plain step that taking an operator away saves, the largest first."""
        found = {name: 1 - step_s / self.trials.plain_s for name, step_s in self.trials.without_s.items()}
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    @property
    def operators(self) -> list[str]:
        """The right answers; empty if no operator alone is one."""
        best = next(iter(self.gains.values()))
        if self.kind != "input_bound" or best < max(MIN_GAIN, MIN_PART * self.share):
            return []
        return [name for name, gain in self.gains.items() if gain >= NEARLY * best]

    # --- what was said ---

    @property
    def diagnosis(self) -> dict[str, Any]:
        found: dict[str, Any] = self.trials.report["diagnosis"]
        return found

    @property
    def said_kind(self) -> str:
        kind = str(self.diagnosis["kind"])
        return "input_bound" if kind == "intermittent" else kind

    @property
    def kind_right(self) -> bool | None:
        return self.said_kind == self.kind if self.kind else None

    @property
    def operator_right(self) -> bool | None:
        """None where the truth is no single operator, or the kind was missed already."""
        if not self.operators or self.said_kind != "input_bound":
            return None
        return self.diagnosis["operator"] in self.operators

    @property
    def headroom_error(self) -> float | None:
        """The step that the report expects of an input without cost, against the ceiling; None: unsaid."""
        figures = [each["figures"] for each in self.diagnosis["evidence"] if each["rule"] == "gate"]
        if not figures or "most_speedup" not in figures[0]:
            return None
        expected_s: float = self.trials.report["profile"]["sink"]["step_s"] / figures[0]["most_speedup"]
        return expected_s / self.trials.ceiling_s - 1

    @property
    def drift(self) -> float:
        """How much slower than the plain steps the recorded ones were: the machine, or the recording."""
        return float(self.trials.report["profile"]["sink"]["step_s"]) / self.trials.plain_s - 1

    @property
    def share_error(self) -> float:
        return float(self.diagnosis["share_of_step"] or 0) - self.share

    @property
    def predictions(self) -> list[tuple[str, float, float | None, float | None, float]]:
        """Value, predicted, low, high, measured."""
        return [
            (value, told["step_s"], told["low"], told["high"], self.trials.curve_s[value])
            for value, told in self.trials.what_if.items()
            if told["step_s"] is not None and value in self.trials.curve_s
        ]

    @property
    def repeated(self) -> list[bool]:
        """Whether one run tells within 10 % what the next one takes; no prediction can do more."""
        return [
            abs(one_s / next_s - 1) <= CLOSE
            for times in self.trials.repeats_s
            for one_s, next_s in pairwise(times)
        ]

    @property
    def advice_harmful(self) -> bool | None:
        after_s = self.trials.advised_s
        if after_s is None:
            return None
        return after_s > self.trials.plain_s * (1 + SLOWER + self.trials.spread)


def in_words(one: Score) -> str:
    """One line: the truth, what was said, and the predictions."""

    def mark(right: bool | None) -> str:
        return {True: " ", False: "X", None: "-"}[right]

    trials, said = one.trials, one.diagnosis
    truth = {"input_bound": "bound", "not_input_bound": "healthy", "": "either"}[one.kind]
    right = "|".join(one.operators) or "-"
    gains = " ".join(f"{name} {100 * gain:.0f}" for name, gain in one.gains.items())
    spoken = " ".join(filter(None, [said["kind"], said["operator"], said["cause"]]))
    curve = " ".join(
        f"{value}:{100 * (predicted / measured - 1):+.0f}%{_outside(low, high, measured)}"
        for value, predicted, low, high, measured in one.predictions
    )
    harm = {True: " HARM", False: "", None: ""}[one.advice_harmful]
    advised = f" [{trials.advised}: {1e3 * (trials.advised_s or 0):.2f} ms{harm}]" if trials.advised else ""
    expected = one.headroom_error
    against = "" if expected is None else f", expected {100 * expected:+.0f} % of the ceiling"
    disturbed = "" if one.undisturbed else f" (others {100 * trials.foreign:.0f} %, thrown away)"
    lines = [
        f"{one.plan.seed:>6} {one.plan.in_words()}",
        f"       truth {truth} {100 * one.share:.0f} % {right}; step {1e3 * trials.plain_s:.2f} ms, ceiling "
        f"{1e3 * trials.ceiling_s:.2f}; gains % {gains}",
        f"     {mark(one.kind_right)}{mark(one.operator_right)}said  {spoken} ({said['confidence']:.2f}), "
        f"share {100 * (said['share_of_step'] or 0):.0f} %{against}; {one.plan.main} {curve}{advised}; "
        f"recorded {100 * one.drift:+.0f} %{disturbed}",
    ]
    return "\n".join(lines)


def _outside(low: float | None, high: float | None, measured: float) -> str:
    if low is None or high is None:
        return ""
    return "" if low <= measured <= high else "!"


def print_scores(scores: list[Score], thrown_away: int) -> bool:
    """The bars over the undisturbed draws; true if they hold. thrown_away: draws without a score."""
    quiet = [one for one in scores if one.undisturbed]
    kept = [one for one in quiet if one.steady]
    lost = len(scores) - len(quiet) + thrown_away
    print(
        f"\n{len(kept)} draws scored, {lost} left out because others took the CPU, {len(quiet) - len(kept)} "
        f"because equal runs differed by {100 * UNSTEADY:.0f} % or more"
    )
    kinds = [one.kind_right for one in kept if one.kind_right is not None]
    names = [one.operator_right for one in kept if one.operator_right is not None]
    errors = [abs(said / measured - 1) for one in kept for _, said, _, _, measured in one.predictions]
    inside = [
        not _outside(low, high, measured)
        for one in kept
        for _, _, low, high, measured in one.predictions
        if low is not None
    ]
    harm = [one.advice_harmful for one in kept if one.advice_harmful is not None]
    floors = [abs(one.headroom_error) <= 0.05 for one in kept if one.headroom_error is not None]
    rows = [
        ("kind", sum(kinds), len(kinds), 0.98, 1.0),
        ("operator", sum(names), len(names), 0.97, 1.0),
        ("predicted within 10 %", sum(error <= CLOSE for error in errors), len(errors), 0.9, 1.0),
        ("measured inside the interval", sum(inside), len(inside), 0.8, 0.97),
        ("advice that is not slower", len(harm) - sum(harm), len(harm), 1.0, 1.0),
        ("expected within 5 % of the ceiling", sum(floors), len(floors), 0.9, 1.0),
    ]
    holds = bool(kept)
    for what, right, of, least, most in rows:
        if of:
            met = right >= least * of and (of < MANY or right <= most * of)
            holds = holds and met
            bar = f">= {100 * least:.0f} %" + (f", <= {100 * most:.0f} %" if most < 1 else "")
            print(f"  {what:<36}{share_in_words(right, of):>26}  {bar:<18} {'ok' if met else 'MISSED'}")
    if errors:
        print(
            f"  predictions: size median {100 * quantile(errors, 0.5):.1f} %, p90 "
            f"{100 * quantile(errors, 0.9):.1f} % (bar 10 %)"
        )
    if repeated := [same for one in kept for same in one.repeated]:
        print(f"  a run repeats the one before within 10 %: {share_in_words(sum(repeated), len(repeated))}")
    ratios = [
        abs(said / measured / (1 + one.drift) - 1)
        for one in kept
        for _, said, _, _, measured in one.predictions
    ]
    if ratios:
        drifts = [abs(one.drift) for one in kept]
        print(
            f"  the recorded step was off the plain one by {100 * quantile(drifts, 0.5):.1f} % (median), p90 "
            f"{100 * quantile(drifts, 0.9):.1f} %; predicted gains (ratios of steps) within 10 %: "
            f"{share_in_words(sum(error <= CLOSE for error in ratios), len(ratios))}"
        )
    shares = [abs(one.share_error) for one in kept]
    if shares:
        print(f"  share of step: off by {100 * quantile(shares, 0.5):.1f} points (median)")
    return holds
