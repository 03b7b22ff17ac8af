"""The work of the loop's thread, from its stack outside of steps and waits."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from types import CodeType
from typing import NamedTuple

from headrace import _core
from headrace.common.users_files import is_the_users

#: Words in names of the user's functions, by what their time is for. The first that fits is meant.
_WORDS = {
    "checkpoints": {"checkpoint", "checkpoints", "ckpt", "save", "saves", "saving", "dump"},
    "evaluation": {"eval", "evaluate", "evaluation", "evaluator", "val", "valid", "validate", "validation"}
    | {"predict", "prediction", "infer", "inference"},
    "logging": {"log", "logs", "logging", "logger", "plot", "report", "print", "visualize"},
}
#: Whole names, also in libraries.
_NAMES = dict.fromkeys(
    ("test", "test_step", "test_epoch", "evaluate", "evaluation_loop", "evaluation_step", "validation_step"),
    "evaluation",
) | dict.fromkeys(("save_checkpoint", "_save_checkpoint", "save_pretrained", "save_model"), "checkpoints")
_FILES = {
    "/torch/serialization.py": "checkpoints",
    "/torch/distributed/checkpoint/": "checkpoints",
    "/safetensors/": "checkpoints",
    "/orbax/": "checkpoints",
    "/tensorboard/": "logging",
    "/wandb/": "logging",
    "/mlflow/": "logging",
    "/matplotlib/": "logging",
    "/logging/__init__.py": "logging",
}
#: Names with a word of each: weights go to what generates (``sync_weights``, ``update_policy_weights_``).
_SENDS = {"sync", "update", "broadcast", "push", "publish", "transfer", "send", "load"}
_WEIGHTS = {"weights"}
_TRAINING = {"train", "training", "trainer", "fit"}
_TRAINS = ("/torch/optim/", "/torch/autograd/__init__.py", "/torch/_tensor.py")
#: Files in which a loop begins and ends: their time is the loader's, which is known exactly.
_LOADERS = ("/torch/utils/data/dataloader.py", "/headrace/loaders/", "/headrace/record/")
#: Frames that are looked at, from the outermost one on; of another thread, from the innermost one on.
_DEPTH = 100
_INNER_DEPTH = 24


class Call(NamedTuple):
    """A frame, when it was looked at."""

    code: CodeType
    line: int
    package: str

    @property
    def file(self) -> str:
        return self.code.co_filename.replace("\\", "/")

    @property
    def is_the_users(self) -> bool:
        return self.package != "headrace" and is_the_users(self.code.co_filename)

    @property
    def place(self) -> str:
        return f"{self.file.rpartition('/')[2]}:{self.line}"


class Place(NamedTuple):
    """The purpose of the time ("": not known), and "evaluate (train.py:88)", with the line of the call."""

    part: str
    function: str


#: The place of a step that waits for a collection.
COLLECTOR = Place("", "Python's garbage collector (gc.freeze() before the loop)")


def calls_of(thread: int) -> list[Call]:
    """A thread's stack, the outermost call first."""
    return [Call(*call) for call in reversed(_core.calls_of_thread(thread))][:_DEPTH]


def place_of(calls: Sequence[Call], of_trunk: set[CodeType]) -> Place | None:
    """The place that the outermost calls of ``of_trunk``, which calls the loops, have called.

    None: a loader begins or ends its epoch.
    """
    trunk = next((index for index, call in enumerate(calls) if call.code not in of_trunk), len(calls))
    inner = calls[trunk:]
    if inner and inner[0].code.co_name in ("__next__", "__iter__"):
        return None
    if any(part in call.file for call in inner[:4] for part in _LOADERS):
        return None
    line = calls[trunk - 1].place if trunk else ""
    if not inner:
        return Place("", line)
    if any(call.file.startswith("<frozen importlib") for call in inner):
        return Place("", f"imports ({line})" if line else "imports")
    named = next((call for call in inner if call.is_the_users), inner[0])
    name = named.code.co_name
    if not line and name == "<module>":
        return Place(part_of(inner), named.place)
    return Place(part_of(inner), f"{name} ({line})" if line else name)


def caller_of(calls: Sequence[Call]) -> str:
    """The function whose loop it is: "evaluate (train.py:88)"."""
    if len(calls) < 2 or calls[-1].code.co_name == "<module>":
        return calls[-1].place if calls else ""
    return f"{calls[-1].code.co_name} ({calls[-2].place})"


def part_of(calls: Iterable[Call]) -> str:
    """The purpose of the functions, by the first name that shows it."""
    for call in calls:
        name = call.code.co_name
        found = _by_name(name) if call.is_the_users else _of_library(call)
        if found:
            return found
    return ""


def evaluates(calls: Sequence[Call]) -> int | None:
    """Number of the outermost call that evaluates, by its name; None: none does, or a nearer one trains."""
    found = None
    for index, call in enumerate(calls):
        name, module = call.code.co_name, call.file.rpartition("/")[2].partition(".")[0]
        if _words(name) & _TRAINING:
            found = None
        elif found is None and "evaluation" in (_by_name(name), _by_name(module)):
            found = index
    return found


def loop_in(calls: list[Call], code: CodeType | None) -> list[Call]:
    """The calls of a stack down to the loop. code: of the function that has it, if it is known."""
    for index in range(len(calls) - 1, -1, -1):
        if calls[index].code is code:
            return calls[: index + 1]
    for index, call in enumerate(calls):
        if call.code.co_name in ("__next__", "__iter__") or any(part in call.file for part in _LOADERS):
            return calls[:index]
    last = next((i for i in range(len(calls) - 1, -1, -1) if calls[i].is_the_users), len(calls) - 1)
    return calls[: last + 1]


def trains(calls: Iterable[Call]) -> bool:
    """Whether it is inside of backward or of an optimizer's step."""
    return any(
        call.code.co_name in ("backward", "step") and any(part in call.file for part in _TRAINS)
        for call in calls
    )


def other_thread_saves(but: int) -> bool:
    """Whether another thread than ``but`` writes a checkpoint."""
    for thread, calls in _core.calls_of_threads(_INNER_DEPTH).items():
        if thread != but and part_of(Call(*call) for call in reversed(calls)) == "checkpoints":
            return True
    return False


def _words(name: str) -> set[str]:
    return set(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().split("_"))


def _by_name(name: str) -> str:
    words = _words(name)
    if words & _SENDS and words & _WEIGHTS:
        return "weight_sync"
    return next((part for part, those in _WORDS.items() if words & those), _NAMES.get(name, ""))


def _of_library(call: Call) -> str:
    name = call.code.co_name
    by_file = (part for folder, part in _FILES.items() if folder in call.file)
    return _NAMES.get(name) or ("weight_sync" if _by_name(name) == "weight_sync" else next(by_file, ""))
