"""Rules, and the table of all of them: each is a function over rows of statistics.

To add one, write a function like those of `field_rules`, `sample_rules` or `tensors.rules`, and a test;
options and the tables in the docs (`make figures`) follow from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from headrace.errors import UsageError


class Hit(NamedTuple):
    """A rule holds at a place."""

    where: str
    #: One sentence with the evidence, without a period; "": what was found before turned out to be none.
    says: str
    #: Steps in which it holds, among the rows that are kept; empty: it holds for the loop, and the newest
    #: sentence replaces the one before.
    steps: Iterable[int] = ()
    #: False: a note, which may be meant so.
    fault: bool = True
    #: The first step, where `steps` is empty.
    first: int | None = None
    samples: Iterable[int] = ()
    figures: Mapping[str, float] = {}
    #: "": that of the rule.
    cure: str = ""
    #: Whether the log names it, when it is new.
    logged: bool = True
    #: `steps` are all of them, and the newest sentence replaces the one of the first.
    newest: bool = False
    #: It belongs to the run, and is shown with each of its loaders.
    of_run: bool = False


class Rule(NamedTuple):
    """One kind of finding. Its parameters are the keyword-only arguments of `holds`, each with its case."""

    kind: str
    #: The arguments of `holds`: "fields", "epochs" or "loop" of batches, "tensors" of a training.
    needs: str
    holds: Callable[..., Iterable[Hit]]
    cure: str

    @property
    def parameters(self) -> dict[str, Any]:
        return dict(self.holds.__kwdefaults__ or {})


#: By kind, in the order in which they are judged.
RULES: dict[str, Rule] = {}


def rule(needs: str, cure: str) -> Callable[[Callable[..., Iterable[Hit]]], Callable[..., Iterable[Hit]]]:
    """The function below is a rule; its name is the kind."""

    def add(holds: Callable[..., Iterable[Hit]]) -> Callable[..., Iterable[Hit]]:
        kind = holds.__name__
        RULES[kind] = Rule(kind, needs, holds, cure)
        return holds

    return add


def rules_for(*needs: str) -> list[Rule]:
    return [one for one in RULES.values() if one.needs in needs]


def chosen(given: object) -> dict[str, dict[str, Any]]:
    """Parameters of each rule for tensors that is on. given: what the user named; False turns one off."""
    known = {one.kind: one.parameters for one in rules_for("tensors")}
    if given is None:
        return known
    if not isinstance(given, Mapping):
        raise UsageError(f"conditions is a dict of conditions and their parameters, not {given!r}")
    on = dict(known)
    for name, parameters in given.items():
        if name not in known:
            raise UsageError(f"conditions has no {name!r}; there are {', '.join(sorted(known))}")
        if parameters is False:
            del on[name]
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
        for one, value in named.items():
            if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
                raise UsageError(f"conditions[{name!r}][{one!r}] is a number from 0 on, not {value!r}")
        on[name] = {**known[name], **named}
    return on
