"""Scripts that use PyTorch: every DataLoader is recorded, in whatever process it runs."""

import re
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import headrace as hr

pytest.importorskip("torch")

#: Where a loader's worker can import it from.
DATASET = """
    import time
    import torch
    from torch.utils.data import DataLoader, Dataset

    class Squares(Dataset):
        def __len__(self):
            return 64
        def __getitem__(self, index):
            time.sleep(0.001)
            return torch.tensor([index, index * index])

    class Validation(Squares):
        pass
"""


@pytest.fixture
def dataset(scripts: Any) -> None:
    scripts.write(DATASET, "dataset.py")


@pytest.mark.usefixtures("dataset")
class TestPlainLoops:
    def test_every_way_to_start_workers(
        self, scripts: Any, compare: Callable[..., Any], tmp_path: Path
    ) -> None:
        """Without workers, by fork, spawn and forkserver, in one script: same batches, four loaders."""
        name = scripts.write(
            """
            import torch
            from torch.utils.data import DataLoader
            from dataset import Squares

            if __name__ == "__main__":
                torch.manual_seed(1)
                for method in (None, "fork", "spawn", "forkserver"):
                    workers = 0 if method is None else 1
                    options = {"num_workers": workers, "multiprocessing_context": method}
                    loader = DataLoader(Squares(), batch_size=4, shuffle=True, **options)
                    print(method, [batch.tolist() for batch in loader], torch.rand(1).item())
            """
        )
        result = compare(name, environment={"HEADRACE_DIR": "run"})
        assert result.status == 0
        loaders = hr.Report.load(tmp_path / "run").loaders
        assert len(loaders) == 4
        assert all(loader.startswith("Squares") for loader in loaders)
        assert "\n\nSquares" in result.said
        for loader in loaders:
            assert hr.Report.load(tmp_path / "run", loader=loader).profile.sink.steps == 16

    def test_train_and_validation_that_end_by_os_exit(self, scripts: Any) -> None:
        name = scripts.write(
            """
            import os, sys
            from dataset import DataLoader, Squares, Validation

            def main():
                train = DataLoader(Squares(), batch_size=4, num_workers=1)
                valid = DataLoader(Validation(), batch_size=8)
                for epoch in range(2):
                    for batch in train: pass
                    for batch in valid: pass
                sys.stdout.flush()
                os._exit(7)

            if __name__ == "__main__":
                main()
            """
        )
        result = scripts.run("--out", "run", name)
        assert result.status == 7
        report = result.said.split("\n\n")[0]
        assert "Squares" in report
        assert "Validation" in report

    def test_errors_of_the_dataset(self, scripts: Any) -> None:
        name = scripts.write(
            """
            from dataset import DataLoader, Squares

            class Torn(Squares):
                def __getitem__(self, index):
                    if index == 17:
                        raise ValueError("item 17 is torn")
                    return super().__getitem__(index)

            for batch in DataLoader(Torn(), batch_size=4):
                pass
            """
        )
        result = scripts.run("--out", "run", name)
        assert result.status == 1
        assert result.script_err.rstrip().endswith("ValueError: item 17 is torn")
        assert "the script ended with status 1" in result.said
        assert "Torn" in result.said

    def test_the_modules_of_torch_are_as_bare(self, scripts: Any, compare: Callable[..., Any]) -> None:
        name = scripts.write(
            """
            import importlib.util, inspect, pickle, sys
            print(importlib.util.find_spec("torch").origin, "torch" in sys.modules)
            import torch.utils.data.dataloader as module
            print(type(module.__loader__), module.__spec__.loader is module.__loader__, module.__file__)
            print(len(inspect.getsource(module)), pickle.loads(pickle.dumps(module.DataLoader)))
            print(inspect.signature(module.DataLoader), module.DataLoader.__mro__)
            """
        )
        assert compare(name).status == 0


#: Two ranks on gloo that add up what they have read.
RANK = """
    import os
    import torch.distributed as dist
    from torch.utils.data import DistributedSampler
    from dataset import DataLoader, Squares, torch

    if __name__ == "__main__":
        dist.init_process_group("gloo")
        data = Squares()
        total = torch.zeros(1, dtype=torch.int64)
        for batch in DataLoader(data, batch_size=4, sampler=DistributedSampler(data)):
            total += batch[:, 0].sum()
        dist.all_reduce(total)
        if dist.get_rank() == 0:
            print("total", total.item())
        dist.destroy_process_group()
"""


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


@pytest.mark.usefixtures("dataset")
class TestTorchrun:
    """Two ranks meet in one folder, whichever of the two commands starts the other."""

    @pytest.fixture(autouse=True)
    def _one_thread(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OMP_NUM_THREADS", "1")

    def options(self) -> list[str]:
        return ["--nproc-per-node", "2", "--master-addr", "127.0.0.1", "--master-port", str(free_port())]

    def check(self, result: Any, folder: Path) -> None:
        assert (result.status, result.out) == (0, b"total 2016\n"), result.err
        assert result.err.count("recorded in ") == 1
        assert len(re.findall(r"\nSquares.* · 1 epoch · 8 steps", result.err)) == 1
        assert {file.name for file in folder.glob("*.hrseg*")} == {"rank0.hrseg", "rank1.hrseg"}
        for rank in (0, 1):
            assert hr.Report.load(folder, rank=rank).profile.sink.steps == 8

    def test_the_launcher_below_headrace(self, scripts: Any, tmp_path: Path) -> None:
        name = scripts.write(RANK)
        result = scripts.run("--out", "run", "-m", "torch.distributed.run", *self.options(), name)
        self.check(result, tmp_path / "run")
        assert re.search(r"rank [01] of 2 is shown: ", result.err)

    def test_headrace_below_the_launcher(self, scripts: Any, tmp_path: Path) -> None:
        name = scripts.write(RANK)
        headrace = ["--no-python", sys.executable, "-m", "headrace", "run"]
        result = scripts.bare("-m", "torch.distributed.run", *self.options(), *headrace, name)
        (run,) = (path for path in (tmp_path / "headrace-runs").iterdir() if path.is_dir())
        self.check(result, run)
