"""Which function of a loop makes its batches: from samples of a stack."""

from types import CodeType
from typing import Any

import pytest

from headrace.loaders.no_loader.stack_samples import Function, StackSample
from headrace.loaders.no_loader.training_loop import find


def functions(source: str) -> dict[str, Function]:
    code = compile(source, "/home/user/train.py", "exec")
    inner = [each for each in code.co_consts if isinstance(each, CodeType)]
    return {each.co_name: Function(each) for each in [code, *inner]}


def samples_of(codes: dict[str, Function], *turns: str, times: int) -> list[StackSample]:
    """One sample of each path of names, again and again; a call is another frame each time."""
    samples = []
    for number in range(times):
        for turn in turns:
            path = ["<module>", *turn.split()]
            frames = [1, *(10 + number * 10 + depth for depth in range(len(path) - 1))]
            samples.append(StackSample(tuple(frames), tuple(codes[name] for name in path)))
    return samples


def library(name: str, file: str) -> Function:
    code = compile(f"def {name}(): ...", f"/site-packages/{file}", "exec")
    return next(Function(one) for one in code.co_consts if isinstance(one, CodeType))


SCRIPT = """
def read(): ...
def get_batch():
    for row in range(3):
        x = read()
        rows.append(x)
    return rows
def train(batch): ...
while True:
    batch = get_batch()
    train(batch)
"""


def test_the_candidate_and_its_share() -> None:
    codes = functions(SCRIPT)
    turns = ("get_batch read", "get_batch", "get_batch read", "train")
    found: Any = find(samples_of(codes, *turns, times=50))
    assert (found.function, found.caller) == (codes["get_batch"], codes["<module>"])
    assert found.share == pytest.approx(0.75)
    assert 0.05 < found.error < 0.07


def test_a_loop_that_seldom_makes_batches_is_not_input_bound() -> None:
    codes = functions(SCRIPT)
    codes["backward"] = library("backward", "torch/_tensor.py")
    start_up = [StackSample((1,), (codes["<module>"],))] * 200
    steps = samples_of(codes, "train backward", times=300)
    found: Any = find([*start_up, *steps, *samples_of(codes, "get_batch", "train backward", times=1)])
    assert str(found) == (
        "NOT INPUT-BOUND: under 2 % of 303 looks at the training loop were in code that makes batches "
        "(in get_batch (train.py:3))"
    )
    # Without one look that met it: all of them are in the training itself.
    assert "under 2 % of 301 looks" in str(find([*start_up, *steps]))
    assert "outside of forward, backward and update" in str(find(steps))
    # Lines of the loop itself may make batches.
    assert find([*samples_of(codes, "", "train backward", times=200)]) is None


def test_too_few_samples_find_nothing() -> None:
    codes = functions(SCRIPT)
    assert find(samples_of(codes, "get_batch", "train", times=30)) is None
    assert find([]) is None


def test_a_function_that_was_called_once_is_none() -> None:
    codes = functions(SCRIPT)
    once = [StackSample((1, 5), (codes["<module>"], codes["get_batch"]))] * 150
    assert find([*once, *samples_of(codes, "train", times=100)]) is None


def test_a_long_loop_inside_the_function_is_not_the_training_loop() -> None:
    codes = functions(SCRIPT)
    inside = [
        StackSample((1, 5, 100 + i), tuple(codes[n] for n in ("<module>", "get_batch", "read")))
        for i in range(300)
    ]
    assert find(inside) is None


def test_forward_and_backward_in_a_function_that_gets_its_batch_too() -> None:
    codes = functions(
        """
def get_batch(): ...
def train_step():
    x = get_batch()
    model(x)
while True:
    train_step()
"""
    )
    codes["_call_impl"] = library("_call_impl", "torch/nn/modules/module.py")
    samples = samples_of(codes, "train_step get_batch", "train_step _call_impl", times=30)
    found: Any = find(samples)
    assert (found.function, found.caller) == (codes["get_batch"], codes["train_step"])
    assert found.share == 0.5
    # Without a function that makes batches the step is no candidate.
    assert find(samples_of(codes, "train_step _call_impl", times=60)) is None
