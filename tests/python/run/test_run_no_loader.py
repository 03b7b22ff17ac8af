"""Scripts without a loader under ``headrace run``: the function that makes the batches is found."""

import re
from pathlib import Path
from typing import Any

import pytest

import headrace as hr

PLAIN = """
    import pickle, sys, time
    class Data:
        def read(self, row):
            time.sleep(0.002)
            return row
        def next_batch(self, size):
            return [self.read(row) for row in range(size)]
    def train_step(batch):
        time.sleep(0.003)
        return sum(batch)
    def main():
        data, losses, began = Data(), [], time.monotonic()
        bare = pickle.dumps(Data.next_batch)
        while time.monotonic() - began < 4:
            batch = data.next_batch(4)
            loss = train_step(batch)
            losses.append(loss)
        print(set(losses), pickle.dumps(Data.next_batch) == bare, isinstance(Data.next_batch, type(main)))
    main()
"""

NANO = """
    import time, torch
    torch.set_num_threads(1)
    data = torch.arange(10000) % 50
    model = torch.nn.Sequential(torch.nn.Embedding(50, 16), torch.nn.Linear(16, 50))
    optimizer = torch.optim.AdamW(model.parameters())
    def get_batch(split):
        time.sleep(0.03)
        rows = torch.randint(len(data) - 65, (4,))
        x = torch.stack([data[row : row + 64] for row in rows])
        return x, x + 1
    @torch.no_grad()
    def estimate_loss():
        for _ in range(2):
            X, Y = get_batch("val")
            model(X)
    def step(X, Y):
        loss = torch.nn.functional.cross_entropy(model(X).view(-1, 50), Y.view(-1) % 50)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    X, Y = get_batch("train")
    began, steps = time.monotonic(), 0
    while time.monotonic() - began < 6:
        if steps % 50 == 0:
            estimate_loss()
        step(X, Y)
        X, Y = get_batch("train")
        steps += 1
    print("steps", steps)
"""


def test_the_function_that_makes_batches_is_recorded(scripts: Any, tmp_path: Path) -> None:
    result = scripts.run("--out", "run", scripts.write(PLAIN))
    assert (result.status, result.out) == (0, b"{6} True True\n"), result.err
    report = hr.Report.load(tmp_path / "run")
    assert re.fullmatch(r"next_batch at script.py:\d+", report.loader)
    assert (report.diagnosis.kind, report.diagnosis.operator) == ("input_bound", "next_batch")
    sink = report.profile.sink
    assert sink.steps > 40
    assert 0.6 < sink.wait_share < 0.85
    [op] = report.profile.operators
    assert [function.name.split()[0] for function in op.functions] in (["Data.read"], ["read"])
    assert op.functions[0].share > 0.8


def test_beside_torchs_model_and_its_evaluation(scripts: Any, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    result = scripts.run("--out", "run", scripts.write(NANO))
    assert result.status == 0, result.err
    report = hr.Report.load(tmp_path / "run")
    assert report.diagnosis.operator == "get_batch"
    # The evaluation's calls are no steps.
    assert report.profile.sink.steps < int(result.out.split()[1])
    assert report.profile.sink.wait_share > 0.2


def test_a_loop_that_is_not_starved_gets_no_alarm(scripts: Any, tmp_path: Path) -> None:
    name = scripts.write("""
        import time
        def get_batch():
            time.sleep(0.0002)
            return [1]
        def train_step(batch):
            time.sleep(0.02)
        began = time.monotonic()
        while time.monotonic() - began < 5:
            train_step(get_batch())
    """)
    result = scripts.run("--out", "run", name)
    assert result.status == 0
    if "nothing was recorded" not in result.said:  # too few looks found it
        # A busy machine may leave too little to judge.
        assert hr.Report.load(tmp_path / "run").diagnosis.kind in ("not_input_bound", "undetermined")


@pytest.mark.parametrize(
    "body",
    [
        "result = load()\nwhile going():\n    compute(result)",
        "while going():\n    score = compute(3)\n    print(score, file=sys.stderr)",
        "while going():\n    sum(range(1000))",
        "for _ in range(3):\n    rows = []\n    time.sleep(0.9)",
    ],
    ids=["loaded once", "a consumer only", "no function", "sleeps"],
)
def test_where_no_function_makes_batches_nothing_is_recorded(scripts: Any, body: str) -> None:
    script = """
import sys, time
began = time.monotonic()
def going():
    return time.monotonic() - began < 3
def load():
    time.sleep(0.5)
    return 7
def compute(row):
    time.sleep(0.004)
    return row
"""
    result = scripts.run(scripts.write(script + body))
    assert result.status == 0
    assert "nothing was recorded" in result.said, result.said


def test_an_exception_is_the_bare_one(scripts: Any) -> None:
    name = scripts.write("""
        import time
        began = time.monotonic()
        def get_batch():
            time.sleep(0.01)
            if time.monotonic() - began > 3:
                raise ValueError("the disk is gone")
            return [1]
        def train_step(batch):
            time.sleep(0.002)
        while True:
            batch = get_batch()
            train_step(batch)
    """)
    bare, recorded = scripts.bare(name), scripts.run(name)
    assert recorded.status == bare.status == 1
    assert recorded.script_err == bare.err
    assert "get_batch at script.py" in recorded.said


def test_a_function_of_a_function_is_named_and_left_alone(scripts: Any) -> None:
    name = scripts.write("""
        import time
        def main():
            def get_batch():
                time.sleep(0.01)
                return [1]
            began = time.monotonic()
            while time.monotonic() - began < 4:
                batch = get_batch()
                print(len(batch), end="")
                time.sleep(0.005)
        main()
    """)
    result = scripts.run(name)
    assert result.status == 0
    assert re.search(r"get_batch takes [5-8]\d% \(\+-\d+%\) of the training loop", result.err), result.err


def test_a_script_with_a_wrapped_loop_is_left_to_it(scripts: Any, tmp_path: Path) -> None:
    name = scripts.write("""
        import time
        import headrace as hr
        def get_batch():
            time.sleep(0.01)
            return [1]
        def train_step(batch):
            time.sleep(0.002)
        began = time.monotonic()
        def rows():
            while time.monotonic() - began < 3:
                yield 1
        for row in hr.wrap(rows()):
            batch = get_batch()
            train_step(batch)
    """)
    result = scripts.run("--out", "run", name)
    assert result.status == 0
    assert hr.Report.load(tmp_path / "run").loaders == ["rows"]
