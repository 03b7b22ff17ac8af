"""``headrace run --ceiling``: the loop goes on with cached batches, and has as many steps as ever."""

import re
from pathlib import Path
from typing import Any

import pytest

import headrace as hr

SLEEPS = """
    import sys, time
    import headrace as hr

    def batches(count):
        for number in range(count):
            time.sleep(0.012)
            yield [number]

    class Sized:
        def __iter__(self):
            return batches(240)
        def __len__(self):
            return 240
"""


def measured(scripts: Any, source: str, *options: str) -> Any:
    outcome = scripts.run(*options, scripts.write(source))
    assert outcome.status == 0, outcome.err
    return outcome


def ceiling_ms(said: str) -> float:
    found = re.search(r"CEILING .* a step over cached batches takes ([0-9.]+) (ms|us)", said)
    assert found, said
    return float(found[1]) * (1 if found[2] == "ms" else 1e-3)


def test_a_sized_loop_has_as_many_steps(scripts: Any) -> None:
    outcome = measured(
        scripts,
        SLEEPS
        + """
    seen = []
    for batch in hr.wrap(Sized(), name="train"):
        time.sleep(0.004)
        seen.append(batch[0])
    print(len(seen), seen[:100] == list(range(100)), len(set(seen)))
    """,
        "--ceiling",
    )
    steps, real_first, different = outcome.out.split()
    assert (int(steps), real_first) == (240, b"True")
    assert 100 <= int(different) < 230
    assert 4 <= ceiling_ms(outcome.said) < 12
    assert "gains" in outcome.said
    assert "INPUT-BOUND" in outcome.said
    # It is a figure of the recording.
    run = re.search(r"recorded in (\S+)", outcome.said)
    assert run, outcome.said
    report = hr.Report.load(Path(scripts.folder) / run[1])
    assert report.profile.sink.ceiling_step_s == pytest.approx(ceiling_ms(outcome.said) / 1e3, rel=0.001)
    assert "measured over batches in memory, a step takes" in " ".join(report.to_text().split())
    assert "Measured over batches in memory" in report.to_html()


def test_a_loop_of_unknown_length_gets_more_steps(scripts: Any) -> None:
    outcome = measured(
        scripts,
        SLEEPS
        + """
    seen = []
    for batch in hr.wrap(batches(60), name="train"):
        time.sleep(0.002)
        seen.append(batch[0])
    print(len(seen), seen[:60] == list(range(60)), max(seen))
    """,
        "--ceiling",
    )
    steps, real_first, last = outcome.out.split()
    assert int(steps) > 60
    assert (real_first, last) == (b"True", b"59")
    assert ceiling_ms(outcome.said) < 12


def test_too_few_steps_are_all_real(scripts: Any) -> None:
    outcome = measured(
        scripts,
        SLEEPS
        + """
    print([batch[0] for batch in hr.wrap(list(batches(20)), name="train")] == list(range(20)))
    """,
        "--ceiling",
    )
    assert outcome.out == b"True\n"
    assert "CEILING   not measured" in outcome.said


def test_without_the_option_nothing_is_cached(scripts: Any) -> None:
    outcome = measured(
        scripts,
        SLEEPS
        + """
    print([batch[0] for batch in hr.wrap(Sized(), name="train")] == list(range(240)))
    """,
    )
    assert outcome.out == b"True\n"
    assert "CEILING" not in outcome.said


def test_a_pipeline(scripts: Any) -> None:
    outcome = measured(
        scripts,
        SLEEPS
        + """
    def slow(number):
        time.sleep(0.012)
        return number

    pipe = hr.source(range(240)).map(slow, name="slow").batch(1)
    for epoch in range(2):
        seen = []
        for batch in pipe:
            time.sleep(0.002)
            seen.append(batch[0])
        print(len(seen), len(set(seen)))
    report = pipe.report()
    print(report.profile.epochs, report.profile.sink.steps)
    """,
        "--ceiling",
    )
    first, second, recorded = (line.split() for line in outcome.out.splitlines())
    assert int(first[0]) == 240
    assert int(first[1]) < 230
    assert second == [b"240", b"240"]
    assert recorded == [b"2", b"340"]  # 100 of the first epoch, all of the second
    assert ceiling_ms(outcome.said) < 12


def test_a_pipeline_in_the_workers_of_a_dataloader(scripts: Any) -> None:
    pytest.importorskip("torch")
    outcome = measured(
        scripts,
        """
    import time
    import headrace as hr
    from torch.utils.data import DataLoader

    def slow(number):
        time.sleep(0.004)
        return number

    pipe = hr.source(range(200)).map(slow, name="slow")
    seen = []
    for batch in DataLoader(pipe, batch_size=2, num_workers=1):
        time.sleep(0.004)
        seen += batch.tolist()
    print(seen[:200] == list(range(200)), len(seen) > 200)
    """,
        "--ceiling",
    )
    assert outcome.out == b"True True\n"
    assert 4 <= ceiling_ms(outcome.said) < 9


@pytest.mark.parametrize(
    "options", ["num_workers=0", "num_workers=2", "num_workers=1, persistent_workers=True"]
)
def test_a_dataloader(scripts: Any, options: str) -> None:
    pytest.importorskip("torch")
    outcome = measured(
        scripts,
        f"""
    import time
    from torch.utils.data import DataLoader, Dataset

    class Slow(Dataset):
        def __len__(self):
            return 480
        def __getitem__(self, index):
            time.sleep(0.006)
            return index

    loader = DataLoader(Slow(), batch_size=2, {options})
    for epoch in range(2):
        seen = []
        for batch in loader:
            time.sleep(0.004)
            seen += batch.tolist()
        print(len(seen), seen[:200] == list(range(200)), len(set(seen)))
    """,
        "--ceiling",
    )
    first, second = (line.split() for line in outcome.out.splitlines())
    assert first[:2] == [b"480", b"True"]
    assert int(first[2]) < 460
    assert second == [b"480", b"True", b"480"]
    assert 4 <= ceiling_ms(outcome.said) < 9


def test_a_loop_may_change_its_batches(scripts: Any) -> None:
    pytest.importorskip("torch")
    outcome = measured(
        scripts,
        """
    import time, torch
    from torch.utils.data import DataLoader

    conv, trained = torch.nn.Conv2d(1, 1, 3), 0
    for x in DataLoader(torch.zeros(1200, 8, 8), batch_size=4):
        x.unsqueeze_(1)
        conv(x)
        trained += 1
        time.sleep(.002)
    print("trained", trained)
    """,
        "--ceiling",
    )
    assert outcome.out == b"trained 300\n"
    assert ceiling_ms(outcome.said) >= 2


def test_a_loop_whose_batches_cannot_be_copied_is_left_alone(scripts: Any) -> None:
    outcome = measured(
        scripts,
        SLEEPS
        + """
    import threading

    def with_locks():
        for number, batch in zip(range(100), batches(100)):
            yield [number, threading.Lock()]

    print([batch[0] for batch in hr.wrap(with_locks(), name="train")] == list(range(100)))
    """,
        "--ceiling",
    )
    assert outcome.out == b"True\n"
    assert (
        outcome.err.count("the ceiling of 'train' is not measured: a batch of type list cannot be copied")
        == 1
    )
    assert "CEILING   not measured" in outcome.said
