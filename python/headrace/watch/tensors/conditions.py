"""The conditions that `hr.watch` judges, and their parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.errors import UsageError

#: On by default. None: no limit.
DEFAULTS: dict[str, dict[str, Any]] = {
    "nonfinite_loss": {},
    "nonfinite_gradient": {},
    "nonfinite_module": {},
    # ratio: to the largest value of the first 10 updates; steps: in a row.
    "explosion": {"ratio": 1e3, "steps": 2},
    # ratio: root mean square of the first third of the weights' gradients to that of the last third.
    "gradient_vanishing": {"ratio": 1e-5, "steps": 10},
    # steps: updates without a gradient, and updates with a gradient of zeros only.
    "no_gradient": {"steps": 10, "zero_steps": 20},
    "detached": {"steps": 10},
    "gradients_not_cleared": {"steps": 3},
    "weight_not_updated": {"steps": 10},
    # ratio: mean of |change| to mean of |weight| in one update; elements: how many of a tensor, None: all.
    # gain_above: of the mean |change| times the root of the fan-in; small weights may grow below it.
    "weight_change_too_large": {"ratio": 1.0, "gain_above": 0.5, "every_steps": 100, "elements": 65536},
    # gain: root mean square of a weight times the root of its fan-in.
    "bad_initialisation": {
        "gain_above": 30.0,
        "gain_below": 1e-2,
        "zero_percent": 100.0,
        "max_above": None,
        "min_below": None,
    },
    # share: of a layer's units whose gradient is exactly 0 in `samples` looks in a row.
    "dead_units": {"share": 0.5, "every_steps": 20, "samples": 4},
    # share: how far below the entropy of the labels a loss has to be.
    "loss_flat": {"steps": 300, "share": 0.01},
    # skips: in a row, after the scale was right once; scale: the smallest one.
    "scaler_skips": {"skips": 10, "scale": 1.0},
}

#: Off unless named: on healthy trainings they fire as well, or they need a statistic of each tensor.
ON_REQUEST: dict[str, dict[str, Any]] = {
    # ratio as above; rtol and atol: every element changed by no more than atol + rtol * |weight|.
    "weight_change_too_small": {
        "ratio": 1e-8,
        "rtol": None,
        "atol": 0.0,
        "every_steps": 100,
        "elements": 65536,
    },
}


def chosen(given: object) -> dict[str, dict[str, Any]]:
    """Parameters of each condition that is on. given: what the user named; False turns one off."""
    conditions = {name: dict(parameters) for name, parameters in DEFAULTS.items()}
    if given is None:
        return conditions
    if not isinstance(given, Mapping):
        raise UsageError(f"conditions is a dict of conditions and their parameters, not {given!r}")
    known = {**DEFAULTS, **ON_REQUEST}
    for name, parameters in given.items():
        if name not in known:
            raise UsageError(f"conditions has no {name!r}; there are {', '.join(sorted(known))}")
        if parameters is False:
            conditions.pop(name, None)
            continue
        if parameters is not True and not isinstance(parameters, Mapping):
            raise UsageError(
                f"conditions[{name!r}] is True, False or a dict of parameters, not {parameters!r}"
            )
        named = {} if parameters is True else dict(parameters)
        unknown = [one for one in named if one not in known[name]]
        if unknown:
            of = ", ".join(known[name]) or "none"
            raise UsageError(f"conditions[{name!r}] has no parameter {unknown[0]!r}; there are: {of}")
        conditions[name] = {**known[name], **named}
    return conditions
