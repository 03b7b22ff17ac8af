"""Which function of a loop makes its batches: from its source, and from samples of a stack."""

import linecache
from types import CodeType
from typing import Any

import pytest

from headrace.loaders.no_loader.batch_functions import is_called_in_a_loop, makes_batches
from headrace.loaders.no_loader.stack_samples import Function, StackSample
from headrace.loaders.no_loader.training_loop import find


def code_of(source: str) -> CodeType:
    """A module's code, whose source can be read as that of a file."""
    name = f"/home/user/{abs(hash(source))}.py"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    return compile(source, name, "exec")


LOOPS = {
    "nano": "while True:\n  logits = model(x)\n  x, y = get_batch('train')\n  loss.backward()",
    "nested": "for x in range(3):\n  train_step(get_batch())",
    "method": "for e in r:\n  for s in r:\n    self.batch = d.get_batch(s)\n    model(self.batch)",
    "cast": "while True:\n  x = get_batch().to(device)\n  step(x)",
    "given": "data = load()\nfor s in r:\n  x = get_batch(data)\n  step(x)",
    "keys": "while 1:\n  key, sub = math.frexp(3)\n  x = get_batch(sub)\n  step(x)",
    "named": "while 1:\n  x = get_batch()\n  time.sleep(1)",
    "once more": "if a:\n  while 1:\n    with c:\n      x = get_batch()\n      step(x)",
}


@pytest.mark.parametrize("source", LOOPS.values(), ids=LOOPS)
def test_its_result_is_taken_and_it_takes_none(source: str) -> None:
    import math

    assert makes_batches(code_of(source), "get_batch", {"math": math}) is True


OTHERS = {
    "takes a batch": "while 1:\n  x = get_batch()\n  y = step(x)\n  log(y)",
    "alone": "while 1:\n  step()",
    "not there": "while 1:\n  x = get_batch()",
    "by keyword": "while 1:\n  x = get_batch()\n  y = step(rows=x)\n  log(y)",
}


@pytest.mark.parametrize("source", OTHERS.values(), ids=OTHERS)
def test_a_function_that_takes_a_batch_makes_none(source: str) -> None:
    assert makes_batches(code_of(source), "step", {}) is False


def test_a_taker_may_have_to_be_the_users() -> None:
    loop = code_of("while 1:\n  score = play()\n  print(score)")
    assert makes_batches(loop, "play", {}) is True
    assert makes_batches(loop, "play", {}, takers=set()) is False
    assert makes_batches(loop, "play", {}, takers={"print"}) is True


def test_what_cannot_be_read_is_unknown() -> None:
    assert makes_batches(compile("x = 1", "/nowhere/x.py", "exec"), "get_batch", {}) is None


def test_calls_in_loops() -> None:
    code = code_of("main()\nfor i in range(3):\n  make()")
    assert is_called_in_a_loop(code, "make")
    assert not is_called_in_a_loop(code, "main")


def functions(source: str) -> dict[str, Function]:
    code = code_of(source)
    inner = [each for each in code.co_consts if isinstance(each, CodeType)]
    return {each.co_name: Function(each, {}) for each in [code, *inner]}


def samples_of(codes: dict[str, Function], *turns: str, times: int) -> list[StackSample]:
    """One sample of each path of names, again and again; a call is another frame each time."""
    samples = []
    for number in range(times):
        for turn in turns:
            path = ["<module>", *turn.split()]
            frames = [1, *(10 + number * 10 + depth for depth in range(len(path) - 1))]
            samples.append(StackSample(tuple(frames), tuple(codes[name] for name in path)))
    return samples


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
    forward = compile("def _call_impl(): ...", "/site-packages/torch/nn/modules/module.py", "exec")
    codes["_call_impl"] = next(Function(one, {}) for one in forward.co_consts if isinstance(one, CodeType))
    samples = samples_of(codes, "train_step get_batch", "train_step _call_impl", times=30)
    found: Any = find(samples)
    assert (found.function, found.caller) == (codes["get_batch"], codes["train_step"])
    assert found.share == 0.5
    # Without a function that makes batches the step is no candidate.
    assert find(samples_of(codes, "train_step _call_impl", times=60)) is None
