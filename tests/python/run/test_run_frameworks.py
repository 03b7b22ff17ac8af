"""Unchanged scripts of training frameworks: their loaders are found, recorded and reported."""

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

import headrace as hr

pytest.importorskip("torch")

DATASET = """
    import time
    import torch
    from torch.utils.data import DataLoader, Dataset

    class Points(Dataset):
        def __len__(self):
            return 48
        def __getitem__(self, index):
            time.sleep(0.001)
            x = torch.tensor([float(index), 1.0])
            return {"x": x, "labels": x.sum()}

    class Held(Points):
        pass
"""

LIGHTNING = """
    import warnings
    import lightning as L
    from dataset import DataLoader, Held, Points, torch

    warnings.filterwarnings("ignore")

    class Line(L.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(2, 1)
        def loss(self, batch):
            return (self.layer(batch["x"]).squeeze(1) - batch["labels"]).pow(2).mean()
        def training_step(self, batch, index):
            return self.loss(batch)
        def validation_step(self, batch, index):
            self.loss(batch)
        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=1e-5)

    if __name__ == "__main__":
        trainer = L.Trainer(max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False,
                            enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=0)
        trainer.fit(Line(), DataLoader(Points(), batch_size=4, num_workers=2, shuffle=True),
                    DataLoader(Held(), batch_size=8))
        print("steps", trainer.global_step)
"""

TRANSFORMERS = """
    from dataset import Held, Points, torch
    from transformers import Trainer, TrainingArguments

    class Line(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(2, 1)
        def forward(self, x, labels=None):
            out = self.layer(x).squeeze(1)
            return {"loss": (out - labels).pow(2).mean(), "logits": out}

    if __name__ == "__main__":
        arguments = TrainingArguments(
            "out", num_train_epochs=2, per_device_train_batch_size=4, per_device_eval_batch_size=8,
            use_cpu=True, report_to=[], save_strategy="no", eval_strategy="epoch", disable_tqdm=True,
            dataloader_num_workers=2, learning_rate=1e-5)
        trainer = Trainer(Line(), arguments, train_dataset=Points(), eval_dataset=Held())
        trainer.train()
        print("steps", trainer.state.global_step)
"""


@pytest.mark.parametrize(
    ("library", "script"),
    [("lightning", LIGHTNING), ("transformers", TRANSFORMERS)],
    ids=["lightning", "transformers"],
)
def test_train_and_validation_are_recorded(scripts: Any, tmp_path: Path, library: str, script: str) -> None:
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    scripts.write(DATASET, "dataset.py")
    name = scripts.write(script)
    bare = scripts.bare(name)
    result = scripts.run("--out", "run", name)
    assert result.status == bare.status == 0, bare.err
    assert b"steps 24" in bare.out
    assert b"steps 24" in result.out

    recorded = [
        hr.Report.load(tmp_path / "run", loader=one) for one in hr.Report.load(tmp_path / "run").loaders
    ]
    batches = {"Points": 0, "Held": 0}
    for report in recorded:
        dataset = next(name for name in batches if report.loader.startswith(name))
        batches[dataset] += report.profile.sink.steps
    assert batches == {"Points": 24, "Held": 12}
    assert "Points" in result.said.split("\n\n")[0]
    assert "Held" in result.said.split("\n\n")[0]


SEVERAL = """
    import datasets, io, tarfile, torch, webdataset as wds
    from torch.utils.data import DataLoader

    def rows(shards):
        for shard in shards:
            for number in range(20):
                yield {"i": 20 * shard + number}

    def decode(row):
        return row

    def parse(sample):
        return int(sample["cls"])

    if __name__ == "__main__":
        with tarfile.open("numbers.tar", "w") as tar:
            for number in range(40):
                entry = tarfile.TarInfo(f"{number:04}.cls")
                entry.size = 1
                tar.addfile(entry, io.BytesIO(b"1"))
        stream = datasets.IterableDataset.from_generator(rows, gen_kwargs={"shards": [0, 1]}).map(decode)
        tars = wds.WebDataset("numbers.tar", shardshuffle=False).decode().map(parse)
        streams = DataLoader(stream, batch_size=4, num_workers=2)
        numbers = DataLoader(tars, batch_size=4, num_workers=1)
        pairs = list(zip(streams, numbers, strict=True))
        print(sum(int(pair[0]["i"].sum()) for pair in pairs), sum(int(pair[1].sum()) for pair in pairs))
"""


def test_several_kinds_in_one_process(scripts: Any, tmp_path: Path) -> None:
    for library in ("torch", "datasets", "webdataset"):
        if importlib.util.find_spec(library) is None:
            pytest.skip(f"{library} is not installed")
    result = scripts.run("--out", "run", scripts.write(SEVERAL))
    assert result.status == 0, result.err
    assert b"780 40" in result.out
    report = hr.Report.load(tmp_path / "run")
    shown = {}
    for name in report.loaders:
        profile = hr.Report.load(tmp_path / "run", loader=name).profile
        shown[name.partition(" at ")[0]] = {op.name for op in profile.operators}
    # The library's stages and the DataLoader's are one graph.
    assert shown["IterableDataset"] >= {"rows", "decode", "IterableDataset", "default_collate"}
    assert shown["WebDataset"] >= {"tar_file_expander", "parse", "WebDataset", "default_collate"}
    assert len(report.loaders) == 2


INSTALLED = """
    from torch.utils.data import DataLoader

    class Engine:
        def __init__(self, held):
            self.held = held
        def get_eval_dataloader(self):
            return DataLoader(self.held, batch_size=8)
        def fit(self, loader):
            again = DataLoader(loader.dataset, batch_size=4, shuffle=True)  # as it pleases the framework
            for batch in again:
                pass
            for batch in self.get_eval_dataloader():
                pass
"""

SCRIPT = """
    import sys
    sys.path.insert(0, "site-packages")
    from dataset import DataLoader, Held, Points
    from framework import Engine

    if __name__ == "__main__":
        loader = DataLoader(Points(), batch_size=4)
        Engine(Held()).fit(loader)
"""


def test_loaders_of_a_framework_have_the_users_line(scripts: Any, tmp_path: Path) -> None:
    scripts.write(DATASET, "dataset.py")
    (tmp_path / "site-packages").mkdir()
    scripts.write(INSTALLED, "site-packages/framework.py")
    result = scripts.run("--out", "run", scripts.write(SCRIPT))
    assert result.status == 0, result.err
    lines = [line.strip() for line in (tmp_path / "script.py").read_text().splitlines()]
    made = lines.index("loader = DataLoader(Points(), batch_size=4)") + 1
    called = lines.index("Engine(Held()).fit(loader)") + 1
    assert set(hr.Report.load(tmp_path / "run").loaders) == {
        f"Points at script.py:{made}",
        f"Held (validation) at script.py:{called}",
    }
    unit = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
    waited = [
        float(number) * unit[of]
        for number, of in re.findall(r" batches  waited +([\d.]+) (us|ms|s) \(", result.said)
    ]
    assert len(waited) == 2
    assert waited == sorted(waited, reverse=True)
