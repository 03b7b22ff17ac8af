"""One trial of ``headrace tune``, in the script's process: other parameters, and an end after some steps."""

from __future__ import annotations

import atexit
import functools
import inspect
import json
import os
import time
from collections.abc import Callable, Iterable
from functools import cache
from typing import TYPE_CHECKING, Any

from headrace import _core
from headrace.common.handlers import let_through
from headrace.common.loader_names import unnumbered
from headrace.record.hooks import TRIAL

if TYPE_CHECKING:
    from headrace.record.loop_phases import RealBatches

#: Fewer steps are no measurement.
MIN_STEPS = 8
#: Parameters of a DataLoader that can be injected when it is made.
OF_DATALOADER = ("num_workers", "prefetch_factor", "in_order", "pin_memory")
#: Arguments that a DataLoader without workers must not get.
_NEEDS_WORKERS = {
    "prefetch_factor": None,
    "persistent_workers": False,
    "multiprocessing_context": None,
    "timeout": 0,
}


class TrialOver(SystemExit):
    """Ends the script after the trial's steps, as `sys.exit()` would: `finally` and `atexit` run."""


class Trial:
    """The settings to try, and the measurements so far."""

    def __init__(self, order: dict[str, Any]) -> None:
        """order: ``{"changes", "loader", "made_as", "steps", "ends_at", "result", "rank"}``; loader: "" for
        any; ends_at: of the clock that all processes share.
        """
        self.changes: dict[str, Any] = order["changes"]
        self._loader: str = order["loader"]
        self.made_as: str = order["made_as"]  #: of the loader that is tuned
        self._steps: int = order["steps"]
        self._ends_at: float = order["ends_at"]
        self._result: str = order["result"]
        self._rank: int = order["rank"]
        self._times: dict[str, list[float]] = {}
        self._names_when_made: dict[str, str] = {}
        self._settable: dict[str, list[str]] = {}
        self._over = False
        atexit.register(self._save)

    def concerns(self, name: str) -> bool:
        """True for the loader that is tuned; at the start, when it is not chosen yet, for all."""
        return not self._loader or same_name(name, self._loader)

    def offers(self, name: str, parameters: Iterable[str]) -> None:
        """The parameters that can be set of the loader that has, or had when it was made, this name."""
        self._settable[unnumbered(name)] = list(parameters)

    def begins(self, name: str, made_as: str) -> None:
        """A loop over this loader begins."""
        self._names_when_made[name] = made_as

    def stepped(self, name: str, seconds: float) -> None:
        """One more step. Raises TrialOver after the last."""
        times = self._times.setdefault(name, [])
        times.append(seconds)
        late = len(times) >= MIN_STEPS and time.monotonic() > self._ends_at
        if len(times) >= self._steps or late:
            self._save()
            raise TrialOver(0)

    def _save(self) -> None:
        """Saves the result of the loader with the most steps. Only once, and not in forked children."""
        if self._over or not self._times or os.getpid() != _pid:
            return
        self._over = True
        name = max(self._times, key=lambda each: len(self._times[each]))
        names = (unnumbered(name), unnumbered(self._names_when_made[name]))
        if _core.default_rank() == self._rank:
            with open(f"{self._result}.part", "w", encoding="utf-8") as file:  # noqa: PTH123
                found = {
                    "loader": name,
                    "made_as": self._names_when_made[name],
                    "settable": next((self._settable[each] for each in names if each in self._settable), []),
                    "times": self._times[name],
                }
                json.dump(found, file)
            os.rename(f"{self._result}.part", self._result)  # noqa: PTH104


class TrialPhase:
    """Counts the steps of one loop; the first one of an epoch starts its workers and does not count."""

    def __init__(self, trial: Trial, name: str) -> None:
        self._trial = trial
        self._name = name
        self._last: float | None = None

    def next(self, real: RealBatches) -> Any:
        batch = real.take()
        now = _core.now_s()
        if self._last is not None:
            self._trial.stepped(self._name, now - self._last)
        self._last = now
        return batch


_pid = os.getpid()


@cache
def trial() -> Trial | None:
    """The trial that this process is part of; None if its order cannot be read."""
    try:
        return Trial(json.loads(os.environ[TRIAL]))
    except (KeyError, ValueError, TypeError):
        return None


def trial_phase(name: str, made_as: str) -> TrialPhase | None:
    current = trial()
    if current is None or not current.concerns(name):
        return None
    current.begins(name, made_as)
    return TrialPhase(current, name)


def same_name(first: str, second: str) -> bool:
    """Whether two names are one loader's; a number distinguishes loaders that exist at the same time."""
    return unnumbered(first) == unnumbered(second)


# --- parameters ---


def set_parameters(setters: Callable[[], dict[str, Callable[[Any], None]]], name: str) -> None:
    """Sets the trial's parameters in a loader that is about to run. setters: by parameter; called only if the
    trial changes this loader."""
    current = trial()
    if current is None or not current.concerns(name):
        return
    try:
        known = setters()
    except Exception as error:
        let_through(error)
        return  # the recording says that the loader is not as expected
    if known:
        current.offers(name, known)
    for parameter in current.changes.keys() & known.keys():
        known[parameter](current.changes[parameter])


def inject_parameters(owner: Any, name_of: Any) -> None:
    """Make loaders of class ``owner`` with the trial's parameters. name_of: of a loader and its dataset."""
    current = trial()
    if current is None:
        return
    original = owner.__init__
    signature = inspect.signature(getattr(original, "__wrapped__", original))

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        try:
            given = signature.bind(self, *args, **kwargs)
            name = name_of(self, given.arguments.get("dataset"))
            current.offers(name, OF_DATALOADER)
            if current.changes and same_name(name, current.made_as):
                changes = {each: value for each, value in current.changes.items() if each in OF_DATALOADER}
                given.arguments.update(changes)
                if not given.arguments.get("num_workers"):
                    given.arguments.update(_NEEDS_WORKERS)
                args, kwargs = given.args[1:], given.kwargs
        except TypeError:
            pass  # the loader itself says what is wrong with its arguments
        original(self, *args, **kwargs)

    owner.__init__ = __init__
