"""Parameters of loaders that are set while the program trains.

A loader says at the beginning of each loop what can be set of it. A pilot sets it (`headrace.autopilot`);
without one, nothing happens.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from headrace import _core
from headrace.common.messages import warn_once
from headrace.common.plain import typed_error_line

#: In the environment of scripts below `headrace run --autopilot`: what it may do beside, with commas between.
AUTOPILOT = "HEADRACE_AUTOPILOT"

Setters = dict[str, Callable[[Any], None]]


@dataclass
class Settable:
    """One loader whose loop is about to begin, on the thread that calls."""

    handle: _core.LoaderHandle
    #: By parameter, under its name in the model.
    setters: Setters
    #: Why a parameter must stay as it is, by the facts of a recording (`Profile.settings`); "": it need not.
    #: By any thread, later too. allowed: what the user allows, of "random", "sampler".
    refused: Callable[[str, dict[str, str], frozenset[str]], str] = field(default=lambda *_: "")
    #: What is the same for all loops over it, also where it is made anew; None: its name.
    key: object = None
    #: Batches of a loop; None: unknown.
    length: int | None = None
    #: Makes another record for the steps from now on, and returns it; None: they stay in one.
    renew: Callable[[], _core.LoaderHandle] | None = None
    #: Also while the loop runs, by any thread.
    live: bool = False
    #: Its threads draw from the random numbers of this process.
    draws_here: bool = False


class Pilot:
    """What sets parameters."""

    def wants(self, handle: _core.LoaderHandle) -> bool:
        """Whether this loader is its concern."""
        return False

    def begins(self, loader: Settable) -> None:
        """A loop begins: set what is to be set."""

    def failed(self, handle: _core.LoaderHandle, why: str) -> None:
        """The loop did not run with what was set, and goes on as it was before."""


_pilot: Pilot | None = None


#: Called once there is a pilot: what lets loaders say that a loop begins.
_preparations: list[Callable[[], None]] = []


def fly(pilot: Pilot | None) -> None:
    """From now on this one is asked."""
    global _pilot
    _pilot = pilot
    if pilot is not None:
        for prepare in _preparations:
            prepare()


def pilot_of_process() -> Pilot | None:
    return _pilot


def when_flown(prepare: Callable[[], None]) -> None:
    """prepare: called now if there is a pilot, and when there is another one. Idempotent."""
    if prepare not in _preparations:
        _preparations.append(prepare)
    if _pilot is not None:
        prepare()


def is_piloted(handle: _core.LoaderHandle) -> bool:
    return _pilot is not None and _pilot.wants(handle)


def begins(handle: _core.LoaderHandle, settable: Callable[[], Settable]) -> None:
    """A loop over ``handle`` begins. settable: asked only where a pilot wants it. Never raises."""
    pilot = _pilot
    if pilot is None or not pilot.wants(handle):
        return
    try:
        pilot.begins(settable())
    except Exception as error:  # the loop must still run
        warn_once(f"autopilot: {handle.name} is left as it is ({typed_error_line(error)})")


def failed(handle: _core.LoaderHandle, why: str) -> None:
    if _pilot is not None:
        _pilot.failed(handle, why)


def _forked() -> None:
    """A child, such as a worker, sets nothing."""
    global _pilot
    _pilot = None


os.register_at_fork(after_in_child=_forked)


def allowed_in_environment() -> frozenset[str] | None:
    """None: this program is not below `headrace run --autopilot`."""
    text = os.environ.get(AUTOPILOT)
    return None if text is None else frozenset(each for each in text.split(",") if each)
