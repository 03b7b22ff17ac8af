"""`hr.trace_steps` and `hr.step`: iteration gap, forward and backward, and tail of a live loop."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import headrace as hr
from virtual import sleep

torch = pytest.importorskip("torch")
nn = torch.nn

#: Seconds of each part.
WAIT, BEFORE, FORWARD, BACKWARD, UPDATE = 0.003, 0.004, 0.008, 0.009, 0.012
STEPS = 5

pytest_plugins = ["virtual"]
pytestmark = pytest.mark.usefixtures("t", "run")


class SlowBackward(torch.autograd.Function):  # type: ignore[misc, name-defined]
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        sleep(BACKWARD)
        return grad


class Model(nn.Module):  # type: ignore[misc, name-defined]
    """Its first layer's gradient comes last, behind the sleep."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(4, 4)
        self.head = nn.Linear(4, 1)

    def forward(self, x: Any) -> Any:
        sleep(FORWARD)
        return self.head(SlowBackward.apply(self.body(x)))


def batches(count: int = STEPS) -> Iterator[Any]:
    for _ in range(count):
        sleep(WAIT)
        yield torch.ones(2, 4)


def sgd(model: Any) -> Any:
    return torch.optim.SGD(model.parameters(), lr=0.01)


def train(loader: Any, model: Any, optimizer: Any, passes: int = 1) -> None:
    for batch in loader:
        sleep(BEFORE)
        for _ in range(passes):
            model(batch).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        sleep(UPDATE)


def expect_parts(
    steps: Any, forward_backward: float = FORWARD + BACKWARD, gap: float = WAIT + BEFORE, tail: float = UPDATE
) -> None:
    assert steps.source == "hooks"
    for number, step in enumerate((steps.average, *steps.per_step[:-1])):
        before = gap - WAIT if number == 1 else gap  # the first batch is waited for before its step
        found = (step.iteration_gap_s, step.forward_backward_s, step.tail_s, step.total_s)
        wanted = (before, forward_backward, tail, before + forward_backward + tail)
        assert found == pytest.approx(wanted, abs=1e-6)  # kept as floats of 24 bits


# --- what the hooks tell ------------------------------------------------------------------------------------


def test_parts_are_where_the_time_went() -> None:
    model = Model()
    loader = hr.wrap(batches(), name="train")
    optimizer = sgd(model)
    hr.trace_steps(model, optimizer)
    train(loader, model, optimizer)
    report = loader.report()
    expect_parts(report.steps)
    assert (report.steps.steps, report.steps.of_steps) == (STEPS - 1, STEPS - 1)
    assert "host" in report.steps.unknown
    assert report.profile.sink.marked is not None
    assert report.profile.sink.marked.tail_steps == STEPS - 1
    assert "a step: gap " in str(report)
    assert "A step: gap " in report.to_html()


def test_the_loader_alone_knows_less_and_says_so() -> None:
    loader = hr.wrap(batches(3), name="train")
    for _ in loader:
        sleep(0.001)
    steps = loader.report().steps
    assert steps.source == "loader"
    assert steps.average.tail_s is None
    assert "tail" in steps.unknown
    assert loader.report().profile.sink.marked is None
    assert "a step: gap" not in str(loader.report())


def test_a_saved_report_keeps_the_parts(tmp_path: Any) -> None:
    model = Model()
    loader = hr.wrap(batches(3), name="train")
    with hr.trace_steps(model):
        train(loader, model, sgd(model))
    report = loader.report()
    report.save(tmp_path / "report.json")
    assert hr.Report.load(tmp_path / "report.json").steps == report.steps


def test_accumulated_gradients_are_one_step() -> None:
    model = Model()
    loader = hr.wrap(batches(3), name="train")
    optimizer = sgd(model)
    with hr.trace_steps(model, optimizer):
        train(loader, model, optimizer, passes=3)
    expect_parts(loader.report().steps, forward_backward=3 * (FORWARD + BACKWARD))


def test_a_frozen_body_does_not_hide_the_end() -> None:
    class Frozen(Model):
        def forward(self, x: Any) -> Any:
            sleep(FORWARD)
            return self.head(self.body(x)).mul(SlowBackward.apply(self.scale))

    model = Frozen()
    model.scale = nn.Parameter(torch.ones(()))
    model.body.requires_grad_(False)
    loader = hr.wrap(batches(3), name="train")
    optimizer = sgd(model)
    with hr.trace_steps(model, optimizer):
        train(loader, model, optimizer)
    expect_parts(loader.report().steps)


def test_where_no_parameter_is_trained_the_optimizer_tells() -> None:
    model = Model().requires_grad_(False)
    prompt = nn.Parameter(torch.zeros(4))
    optimizer = torch.optim.SGD([prompt], lr=0.01)
    loader = hr.wrap(batches(3), name="train")
    with hr.trace_steps(model, optimizer):
        for batch in loader:
            sleep(BEFORE)
            model(batch + prompt).sum().backward()
            optimizer.step()
            sleep(UPDATE)
    expect_parts(loader.report().steps)


def test_the_end_of_backward_is_not_the_first_gradient() -> None:
    """The traced parameters have their gradients before the sleep; autograd is at work until behind it."""

    class Late(Model):
        def forward(self, x: Any) -> Any:
            sleep(FORWARD)
            return self.head(self.body(SlowBackward.apply(x)))

    model = Late()
    prompt = nn.Parameter(torch.zeros(4))
    loader = hr.wrap(batches(3), name="train")
    with hr.trace_steps(model):
        for batch in loader:
            sleep(BEFORE)
            model(batch + prompt).sum().backward()
            sleep(UPDATE)
    expect_parts(loader.report().steps)


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpointed_parts_run_forward_again_in_backward(reentrant: bool) -> None:
    from torch.utils.checkpoint import checkpoint

    class Checkpointed(Model):
        def forward(self, x: Any) -> Any:
            return checkpoint(super().forward, x.requires_grad_(), use_reentrant=reentrant)

    model = Checkpointed()
    loader = hr.wrap(batches(3), name="train")
    optimizer = sgd(model)
    with hr.trace_steps(model, optimizer):
        train(loader, model, optimizer)
    expect_parts(loader.report().steps, forward_backward=2 * FORWARD + BACKWARD)


def test_inference_has_no_tail() -> None:
    model = Model().eval()
    loader = hr.wrap(batches(), name="predict")
    with hr.trace_steps(model), torch.no_grad():
        for batch in loader:
            sleep(BEFORE)
            model(batch)
    steps = loader.report().steps
    assert steps.source == "hooks"
    assert steps.average.iteration_gap_s == pytest.approx(WAIT + BEFORE)
    assert steps.average.tail_s is None
    assert f"{STEPS - 1} of {STEPS - 1} steps" in steps.unknown


def test_validation_within_training_leaves_its_step_out() -> None:
    model = Model()
    optimizer = sgd(model)
    loader = hr.wrap(batches(), name="train")
    validation = hr.wrap([torch.ones(2, 4)] * 3, name="validation")
    with hr.trace_steps(model, optimizer):
        for number, batch in enumerate(loader):
            if number == 2:
                with torch.no_grad():
                    for held_out in validation:
                        model(held_out)
            sleep(BEFORE)
            model(batch).sum().backward()
            optimizer.step()
            sleep(UPDATE)
    steps = loader.report().steps
    assert (steps.steps, steps.of_steps) == (STEPS - 2, STEPS - 1)
    assert [step.iteration_gap_s is None for step in steps.per_step] == [
        number == 2 for number in range(STEPS)
    ]
    steps.per_step.pop(2)
    expect_parts(steps)
    assert validation.report().steps.source == "hooks"


def test_several_models_and_optimizers_are_one_step() -> None:
    generator, critic = Model(), Model()
    both = [sgd(generator), sgd(critic)]
    loader = hr.wrap(batches(3), name="train")
    with hr.trace_steps([generator, critic], both):
        for batch in loader:
            sleep(BEFORE)
            for model, optimizer in zip((generator, critic), both, strict=True):
                model(batch).sum().backward()
                optimizer.step()
            sleep(UPDATE)
    expect_parts(loader.report().steps, forward_backward=2 * (FORWARD + BACKWARD))


# --- what the hooks leave alone -----------------------------------------------------------------------------


def trained(trace: bool) -> list[Any]:
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(), nn.Linear(8, 1))
    optimizer = torch.optim.AdamW(model.parameters())
    handles = [hr.trace_steps(model, optimizer) for _ in range(2)] if trace else []
    for batch in hr.wrap([torch.randn(2, 4) for _ in range(4)]):
        model(batch).square().sum().backward()
        optimizer.step()
    for handle in handles:
        handle.remove()
    return [parameter.detach().clone() for parameter in model.parameters()]


def test_results_are_the_same_also_when_traced_twice() -> None:
    assert all(torch.equal(a, b) for a, b in zip(trained(True), trained(False), strict=True))


def test_removing_the_hooks_ends_it() -> None:
    model = Model()
    optimizer = sgd(model)
    handle = hr.trace_steps(model, optimizer)
    assert repr(handle) == "<headrace.TracedSteps: 4 hooks>"
    handle.remove()
    handle.remove()
    assert repr(handle) == "<headrace.TracedSteps: 0 hooks>"
    assert not model._forward_pre_hooks
    assert not optimizer._optimizer_step_pre_hooks
    loader = hr.wrap(batches(3), name="train")
    train(loader, model, optimizer)
    assert loader.report().steps.source == "loader"


def test_a_traced_model_is_not_kept_alive() -> None:
    model = Model()
    optimizer = sgd(model)
    handle = hr.trace_steps(model, optimizer)
    gone = weakref.ref(model)
    del model, optimizer
    gc.collect()
    assert gone() is None
    handle.remove()


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_a_copy_of_a_traced_model_is_not_traced(duplicate: Callable[[Any], Any]) -> None:
    model = nn.Linear(4, 1)
    with hr.trace_steps(model):
        other = duplicate(model)
        assert b"headrace" not in pickle.dumps(model)
    assert torch.equal(other(torch.ones(2, 4)), model(torch.ones(2, 4)))
    loader = hr.wrap(batches(3), name="train")
    for batch in loader:
        other(batch).sum().backward()
    assert loader.report().steps.source == "loader"


@pytest.mark.parametrize("how", ["torch.compile", "module.compile"])
def test_a_compiled_model_is_one_graph_still(how: str) -> None:
    class Plain(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 1)

        def forward(self, x: Any) -> Any:
            return self.layer(x).relu()

    model = Plain()
    compiled = model
    if how == "torch.compile":
        compiled = torch.compile(model, backend="eager", fullgraph=True)
    else:
        model.compile(backend="eager", fullgraph=True)
    optimizer = sgd(model)
    handle = hr.trace_steps(compiled, optimizer)
    loader = hr.wrap(batches(), name="train")
    for batch in loader:
        sleep(BEFORE)
        compiled(batch).sum().backward()
        optimizer.step()
        sleep(UPDATE)
    expect_parts(loader.report().steps, forward_backward=0)
    handle.remove()
    after = hr.wrap(batches(3), name="after")
    for batch in after:
        compiled(batch).sum().backward()
    assert after.report().steps.source == "loader"
    gone = weakref.ref(model)
    del model, compiled, optimizer
    torch.compiler.reset()
    gc.collect()
    assert gone() is None


def test_hooks_that_were_there_before_compiling_do_not_split_the_graph() -> None:
    model = nn.Sequential(nn.Linear(4, 1))
    hr.trace_steps(model)
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    loader = hr.wrap(batches(3), name="train")
    for batch in loader:
        assert torch.equal(compiled(batch), model(batch))
    assert loader.report().steps.source == "hooks"  # of the model that is not compiled
    torch.compiler.reset()


def test_switched_off_there_are_no_hooks(execute: Callable[..., Any]) -> None:
    result = execute(
        """
        import json
        import torch
        import headrace as hr
        model = torch.nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with hr.trace_steps(model, optimizer), hr.step():
            model(torch.ones(1, 2)).sum().backward()
        print(json.dumps(len(model._forward_pre_hooks) + len(optimizer._optimizer_step_pre_hooks)))
        """,
        HEADRACE="0",
    )
    assert result.json == 0


def test_what_it_does_not_take() -> None:
    for wrong in (3, None, [], [nn.Linear(1, 1), 3], "model"):
        with pytest.raises(hr.UsageError, match="torch module"):
            hr.trace_steps(wrong)
    with pytest.raises(hr.UsageError, match="torch optimizer"):
        hr.trace_steps(nn.Linear(1, 1), 3)


# --- hr.step ------------------------------------------------------------------------------------------------


def test_a_block_is_forward_and_backward() -> None:
    loader = hr.wrap(batches(), name="train")
    source = iter(loader)
    while True:
        try:
            next(source)
        except StopIteration:
            break
        sleep(BEFORE)
        with hr.step():
            sleep(FORWARD)
        sleep(UPDATE)
    expect_parts(loader.report().steps, forward_backward=FORWARD)


def test_several_loaders_in_turn_have_their_own_waits() -> None:
    labelled = hr.wrap(batches(), name="labelled")
    others = hr.wrap(batches(), name="others")

    @hr.step()
    def work(batch: Any, other: Any) -> None:
        sleep(FORWARD)

    for batch, other in zip(labelled, others, strict=True):
        sleep(BEFORE)
        work(batch, other)
        sleep(UPDATE)
    for loader in (labelled, others):
        expect_parts(loader.report().steps, FORWARD)


def test_trainings_in_two_threads_do_not_tell_each_other() -> None:
    quick, slow = hr.wrap(batches(), name="quick"), hr.wrap(batches(), name="slow")

    def train_with(loader: Any, before: float, forward: float) -> None:
        for _ in loader:
            sleep(before)
            with hr.step():
                sleep(forward)
            sleep(UPDATE)

    threads = [
        threading.Thread(target=train_with, args=(quick, BEFORE, FORWARD)),
        threading.Thread(target=train_with, args=(slow, 6 * BEFORE, FORWARD)),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expect_parts(quick.report().steps, forward_backward=FORWARD)
    expect_parts(slow.report().steps, FORWARD, gap=WAIT + 6 * BEFORE)


def test_what_the_block_raises_goes_through() -> None:
    loader = hr.wrap(batches(3), name="train")
    for _ in loader:
        with pytest.raises(KeyError), hr.step():
            raise KeyError("a")
    steps = loader.report().steps
    assert (steps.source, steps.steps) == ("hooks", 2)


def test_blocks_stand_on_the_timeline(tmp_path: Any) -> None:
    import gzip
    import json

    with hr.session(run=tmp_path / "blocks"):
        for _ in hr.wrap([1, 2, 3], name="train"):
            with hr.step():
                sleep(0.002)
    merged = hr.timeline.merge(tmp_path / "blocks")
    with gzip.open(merged.path) as file:
        events = json.load(file)["traceEvents"]
    rows = [event["tid"] for event in events if event.get("ph") == "X" and event.get("name") == "step"]
    # One row of the loader, from batch to GetNext, and the thread's own one with the blocks.
    assert [rows.count(row) for row in sorted(set(rows))] == [3, 3]


def test_without_a_run_it_does_nothing(execute: Callable[..., Any]) -> None:
    result = execute(
        """
        import json, os
        import headrace as hr
        with hr.step():
            pass
        print(json.dumps(len(os.listdir("/proc/self/task"))))
        """
    )
    assert result.json == 1
