"""Scripts without a loader under ``headrace run``: what makes the batches is named, futures are found."""

import re
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from mapped_futures import MAPPED

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


INTERRUPTS = """\
        steps += 1
        if time.monotonic() - began > 5:
            os.kill(os.getpid(), signal.SIGINT)
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


def test_nanogpts_loop_is_not_input_bound_also_after_ctrl_c(scripts: Any) -> None:
    pytest.importorskip("torch")
    quick = (
        NANO.replace("        time.sleep(0.03)\n", "")
        .replace("16", "6000")
        .replace("time, torch", "os, signal, time, torch")
    )
    quick = quick.replace("        steps += 1\n", INTERRUPTS)
    result = scripts.run(scripts.write(quick))
    assert result.status == -signal.SIGINT, result.err
    said = (
        r"NOT INPUT-BOUND: under \d % of \d,?\d+ looks at the training loop were in code that makes batches"
    )
    assert re.search(said, result.err), result.err
    assert "the script was killed by SIGINT" in result.said


def test_a_loop_over_a_generator_is_named_with_its_cure(scripts: Any) -> None:
    result = scripts.run(
        scripts.write("""
            import time
            def read():
                for number in range(400):
                    time.sleep(0.004)
                    yield number
            def batches(numbers):
                yield from zip(*[iter(numbers)] * 2)
            def main():
                for batch in batches(read()):
                    time.sleep(0.004)
            main()
        """)
    )
    assert result.status == 0
    text = result.err
    assert re.search(
        r"the loop in main spends about \d+% of its time in the generator batches \(script.py:\d+\)", text
    )
    assert text.count("for batch in hr.wrap(batches(...))") == 1


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


BATCHES = """waiting = [[pool.submit(load, number) for number in range(4)] for _ in range(50)]
        for futures in waiting:
            item = sum([each.result() for each in futures])"""


def test_a_loop_that_hardly_waits_is_healthy(scripts: Any, tmp_path: Path) -> None:
    healthy = MAPPED.replace("sleep(0.02)", "sleep(0.004)").replace("sleep(0.003)", "sleep(0.01)")
    result = scripts.run("--out", "run", scripts.write(healthy))
    assert result.status == 0, result.err
    # Looks hardly ever find it waiting, so it may not be found; what is recorded is not the input's fault.
    if "nothing was recorded" not in result.err:
        assert hr.Report.load(tmp_path / "run").diagnosis.kind != "input_bound"


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="a comprehension has no frame")
def test_results_of_a_comprehension_are_one_batch(scripts: Any, tmp_path: Path) -> None:
    together = MAPPED.replace("for item in pool.map(load, range(300)):", BATCHES)
    result = scripts.run("--out", "run", scripts.write(together))
    assert (result.status, result.out) == (0, b"False\n"), result.err
    assert 10 < hr.Report.load(tmp_path / "run").profile.sink.steps <= 50


def test_futures_that_are_waited_for_elsewhere_are_left_alone(scripts: Any) -> None:
    result = scripts.run(
        scripts.write("""
            import time
            from concurrent.futures import ThreadPoolExecutor
            result = None
            with ThreadPoolExecutor(1) as pool:
                answer = pool.submit(time.sleep, 1).result()
            print(answer)
        """)
    )
    assert (result.status, result.out) == (0, b"None\n")
    assert "nothing was recorded" in result.err
