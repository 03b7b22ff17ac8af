"""What is found is in reports, files and commands, and survives what happens to runs."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

import headrace as hr  # noqa: E402

SCRIPT = """
import os, signal, sys
import torch
from torch.utils.data import DataLoader, Dataset

class Data(Dataset):
    def __len__(self):
        return 64
    def __getitem__(self, index):
        x = torch.randn(20, generator=torch.Generator().manual_seed(index))
        if index == 41:
            x[3] = float("nan")
        return x

if __name__ == "__main__":
    loader = DataLoader(Data(), batch_size=8, num_workers=int(sys.argv[1]))
    for x in loader:
        pass
    if len(sys.argv) > 2:
        os.kill(os.getpid(), signal.SIGKILL)
"""


TRAINING = SCRIPT.replace(
    """    for x in loader:
        pass
""",
    """    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(20, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    optimizer = torch.optim.Adam(model.parameters())
    for x in loader:
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
""",
)


def run(folder: Path, *arguments: str, text: str = SCRIPT) -> "subprocess.CompletedProcess[str]":
    script = folder / "train.py"
    script.write_text(text)
    words = ["-m", "headrace", "run", "--watch", "--out", str(folder / "run"), str(script), *arguments]
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=120)


def check(folder: Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "headrace", "check", str(folder / "run"), "--no-faults"]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("workers", ["0", "2"])
def test_an_unchanged_script(tmp_path: Path, workers: str) -> None:
    done = run(tmp_path, workers)
    assert done.returncode == 0
    assert "FINDINGS IN DATA AND TRAINING" in done.stderr
    report = hr.Report.load(tmp_path / "run")
    assert [(one.kind, one.samples) for one in report.findings] == [("nonfinite_batch", [41])]
    assert json.loads(report.to_json())["findings"][0]["kind"] == "nonfinite_batch"
    assert report.to_summary()["findings"][0]["severity"] == "fault"
    assert "dataset index 41" in report.to_html()
    assert check(tmp_path).returncode == 3
    report.save(tmp_path / "saved.json")
    assert hr.Report.load(tmp_path / "saved.json").findings == report.findings


def test_the_loss_of_an_unchanged_script_leads_to_its_sample(tmp_path: Path) -> None:
    done = run(tmp_path, "2", text=TRAINING)
    assert done.returncode == 0
    assert "Warning" not in done.stderr
    found = {one.kind: one for one in hr.Report.load(tmp_path / "run").findings}
    assert set(found) == {"nonfinite_batch", "nonfinite_loss"}
    assert found["nonfinite_loss"].samples == [41]
    assert "loss became NaN at step 5: batch 5, row 1 of batch is not finite: dataset index 41" in (
        found["nonfinite_loss"].says
    )


def test_a_killed_script_keeps_its_findings(tmp_path: Path) -> None:
    assert run(tmp_path, "2", "kill").returncode == -signal.SIGKILL
    assert hr.Report.load(tmp_path / "run").samples("nonfinite_batch") == [41]


def test_a_check_of_a_run_that_nobody_watched(tmp_path: Path) -> None:
    loader = hr.wrap([1, 2, 3], run=tmp_path / "run")
    for _ in loader:
        pass
    done = check(tmp_path)
    assert done.returncode == 1
    assert "--watch" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_healthy_run_passes_its_check(tmp_path: Path) -> None:
    loader = hr.wrap([np.ones((4, 3)) * i for i in range(9)], run=tmp_path / "run", watch=True)
    for _ in loader:
        pass
    loader.report()  # type: ignore[attr-defined]
    assert check(tmp_path).returncode == 0


def test_ranks_that_take_the_same_samples(tmp_path: Path) -> None:
    from loops import Images, Training
    from torch.utils.data import DataLoader

    for rank, shift in ((0, 0), (1, 0), (2, 128)):
        data = torch.utils.data.Subset(Images(256), range(shift, shift + 128))
        loader = hr.wrap(
            DataLoader(data, batch_size=16, shuffle=True), name="train", run=tmp_path, rank=rank, watch=True
        )
        Training().epochs(loader, 1)
        loader.report()  # type: ignore[attr-defined]
    by_rank = [[one.kind for one in hr.Report.load(tmp_path, rank=rank).findings] for rank in range(3)]
    assert by_rank == [["ranks_overlap"], ["ranks_overlap"], []]


def test_ranks_that_read_the_same_stream(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(3, 40, 4, 20))
    for rank, part in ((0, 0), (1, 0), (2, 1)):
        loader = hr.wrap(list(rows[part]), name="train", run=tmp_path, rank=rank, watch=True)
        for _ in loader:
            pass
        loader.report()  # type: ignore[attr-defined]
    found = [hr.Report.load(tmp_path, rank=rank).findings for rank in range(3)]
    assert [[(one.kind, one.samples) for one in each] for each in found] == [[("ranks_overlap", [])]] * 2 + [
        []
    ]


@pytest.mark.parametrize(
    "damage", [b"", b"{", b"[1]", b'{"findings": [1, {"kind": 5, "loader": "x"}], "samples_seen": {"x": 3}}']
)
def test_a_damaged_file_is_left_out(tmp_path: Path, damage: bytes) -> None:
    loader = hr.wrap([np.full((2, 3), np.nan), np.ones((2, 3))], name="x", run=tmp_path, watch=True)
    for _ in loader:
        pass
    loader.report()  # type: ignore[attr-defined]
    (tmp_path / "rank0.watch-1.json").write_bytes(damage)
    assert "nonfinite_batch" in [one.kind for one in hr.Report.load(tmp_path).findings]


def test_a_folder_that_cannot_be_written_does_not_disturb(tmp_path: Path) -> None:
    run_folder = tmp_path / "run"
    loader = hr.wrap([np.full((2, 3), np.nan)] * 3, run=run_folder, watch=True)
    (run_folder / f"rank0.watch-{os.getpid()}.json.new").mkdir()
    assert sum(1 for _ in loader) == 3


def test_arrays_of_other_libraries(tmp_path: Path) -> None:
    batches: list[object] = [
        np.ones((4, 3), np.float16),
        {"a": [np.full((4, 20), np.nan)]},
        "text",
        3,
        None,
        object(),
    ]
    batches.append(np.ones((4, 3), ">f4"))
    batches.append(torch.ones(4, 3).to_sparse())
    batches.append(np.ones((0, 3)))
    batches.append(np.zeros((4, 3))[:, ::2])
    loader = hr.wrap(batches, run=tmp_path, watch=True)
    assert sum(1 for _ in loader) == len(batches)
    found = loader.report().findings  # type: ignore[attr-defined]
    assert [(one.kind, one.where) for one in found] == [
        ("nonfinite_batch", "batch['a'][0]"),
        ("shape_change", "batch"),
    ]


def test_jax_arrays(tmp_path: Path) -> None:
    jax = pytest.importorskip("jax.numpy")
    loader = hr.wrap([jax.ones((4, 3)), jax.full((4, 3), jax.nan)], run=tmp_path, watch=True)
    for _ in loader:
        pass
    assert [one.first_step for one in loader.report().findings] == [1]  # type: ignore[attr-defined]


def test_faults_are_exported(tmp_path: Path) -> None:
    from headrace.export._metrics import scalars

    loader = hr.wrap([np.full((2, 3), np.nan), np.ones((2, 3))] * 20, run=tmp_path, watch=True)
    for _ in loader:
        pass
    found = scalars(loader.report())  # type: ignore[attr-defined]
    assert (found["findings/fault"], found["findings/note"]) == (0, 1)


def test_what_is_watched_is_not_kept(tmp_path: Path) -> None:
    import gc
    import weakref

    from loops import Images, trained
    from torch.utils.data import DataLoader

    dataset = Images()
    alive = weakref.ref(dataset)
    trained(str(tmp_path), DataLoader(dataset, batch_size=16, shuffle=True))
    del dataset
    gc.collect()
    assert alive() is None


def test_a_loader_of_a_later_run_is_not_watched(tmp_path: Path) -> None:
    """Numbers of records are used again."""
    for name, watch in (("a", True), ("b", False)):
        loader = hr.wrap([np.full((2, 3), np.nan)] * 20, name="x", run=tmp_path / name, watch=watch)
        for _ in loader:
            pass
        report = loader.report()  # type: ignore[attr-defined]
        del loader
        assert bool(report.findings) == watch
        assert bool(list((tmp_path / name).glob("*.watch-*"))) == watch
