"""``headrace tune``: an unchanged script runs with other parameters, and ends after the steps of a trial."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

LOADER = """
    import atexit, sys, time
    from torch.utils.data import DataLoader, Dataset

    class Slow(Dataset):
        def __len__(self):
            return 4000
        def __getitem__(self, index):
            time.sleep(0.006)
            return index
"""

PIPELINE = """
    import time
    import headrace as hr

    def slow(item):
        time.sleep(0.01)
        return item

    pipe = hr.source(range(4000)).map(slow, name="slow").batch(1)
    for batch in pipe:
        time.sleep(0.003)
"""


def test_a_pipeline(tune: Callable[..., Any], tmp_path: Path) -> None:
    outcome = tune(PIPELINE, "--out", str(tmp_path / "tuned.json"))
    assert outcome.status == 0, outcome.err
    said = outcome.out.decode()
    changed = re.search(r'change   .*: pipe.set_workers\("slow", (\d+)\)', said)
    assert changed, said
    assert int(changed[1]) > 1
    assert "TUNED" in said
    assert "slow.workers 1 -> " in said
    assert "winner, again" in said
    assert "\x1b" not in outcome.err + said  # no progress in a pipe
    found = json.loads((tmp_path / "tuned.json").read_text())["tuning"]
    assert found["of"] == "script.py"
    assert found["changed"] == {"slow.workers": int(changed[1])}


def test_a_dataloader_in_a_copy_of_the_folder(tune: Callable[..., Any], scripts: Any) -> None:
    pytest.importorskip("torch")
    outcome = tune(
        LOADER
        + """
    open("ran.txt", "a").write(" ".join(sys.argv[1:]))
    loader = DataLoader(Slow(), batch_size=4)
    for batch in loader:
        time.sleep(0.004)
    open("finished.txt", "w").write("never in a trial")
    """,
        arguments=("--help", "x"),
    )
    assert outcome.status == 0, outcome.err
    said = outcome.out.decode()
    found = re.search(r"change   script.py:\d+: DataLoader\(\.\.\., num_workers=(\d+)", said)
    assert found, said
    assert int(found[1]) > 0
    assert "a copy" in outcome.err
    assert sorted(path.name for path in scripts.folder.iterdir()) == ["script.py"]
    assert [path.name for path in scripts.folder.parent.iterdir() if "tune" in path.name] == []


def test_a_named_loader_beside_another_in_place(tune: Callable[..., Any], scripts: Any) -> None:
    pytest.importorskip("torch")
    script = (
        LOADER
        + """
    import headrace as hr
    check = DataLoader(list(range(8)), batch_size=4)
    list(check)
    loader = hr.wrap(DataLoader(Slow(), batch_size=4, num_workers=1, prefetch_factor=3), name="train")
    try:
        for batch in loader:
            time.sleep(0.004)
    finally:
        print(loader.num_workers, check.num_workers, file=open("log.txt", "a"))
    """
    )
    for _ in range(2):  # a trial that another program disturbs hides the gain
        outcome = tune(script, "--in-place")
        if "num_workers=" in outcome.out.decode():
            break
    assert outcome.status == 0, outcome.err
    assert "num_workers=" in outcome.out.decode()
    # `finally` of every trial has run, in the folder itself; only the loader that is waited for was changed.
    lines = (scripts.folder / "log.txt").read_text().splitlines()
    workers = [line.split() for line in lines]
    assert workers[0] == ["1", "0"]
    assert len({one for one, _ in workers}) > 1
    assert {other for _, other in workers} == {"0"}


def test_a_loop_that_does_not_wait(tune: Callable[..., Any]) -> None:
    outcome = tune(
        """
        import time
        import headrace as hr
        for batch in hr.source(range(4000)).map(lambda item: item, name="light").batch(1):
            time.sleep(0.01)
        """
    )
    assert outcome.status == 0, outcome.err
    assert "change   nothing" in outcome.out.decode()
