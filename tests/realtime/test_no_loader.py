"""Scripts without a loader under ``headrace run``: the function that makes the batches is named."""

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


def test_the_function_that_makes_batches_is_named_with_its_cure(scripts: Any) -> None:
    result = scripts.run(scripts.write(PLAIN))
    assert (result.status, result.out) == (0, b"{6} True True\n"), result.err
    said = r"next_batch \(script.py:7\) makes the batches and takes [678]\d% \(\+-\d+%\) of the training loop"
    assert re.search(said, result.err), result.err
    assert result.err.count("next_batch = hr.wrap(next_batch)") == 1
    assert "nothing was recorded" in result.said


def test_beside_torchs_model_and_its_evaluation(scripts: Any) -> None:
    pytest.importorskip("torch")
    result = scripts.run(scripts.write(NANO))
    assert result.status == 0, result.err
    assert "get_batch = hr.wrap(get_batch)" in result.err


def test_its_line_records_it(scripts: Any, tmp_path: Path) -> None:
    line = "        import headrace as hr\n        Data.next_batch = hr.wrap(Data.next_batch)\n"
    wrapped = PLAIN.replace("        while time", line + "        while time").replace("pickle.dumps", "bool")
    result = scripts.run("--out", "run", scripts.write(wrapped))
    assert result.status == 0, result.err
    report = hr.Report.load(tmp_path / "run")
    assert (report.diagnosis.kind, report.diagnosis.operator) == ("input_bound", "next_batch")
    assert 0.6 < report.profile.sink.wait_share < 0.85


def test_a_loop_that_is_not_starved_gets_no_alarm(scripts: Any) -> None:
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
    result = scripts.run(name)
    assert result.status == 0
    said = re.search(r"takes (\d+)%", result.err)  # nothing if samples did not meet it
    assert said is None or int(said[1]) < 20
