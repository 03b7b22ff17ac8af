"""litdata's StreamingDataLoader: waits for chunks apart from reading, in the loop and in workers."""

import shutil
import time
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from recorded_loops import operators, played, run_script
from stored_reports import StoredReports

pytest.importorskip("torch", reason="PyTorch is not installed")
litdata: Any = pytest.importorskip("litdata", reason="litdata is not installed")

pytestmark = pytest.mark.usefixtures("run")

ITEM_S = 0.003


class Images(litdata.StreamingDataset):  # type: ignore[misc]
    def __getitem__(self, index: Any) -> Any:
        item = super().__getitem__(index)
        time.sleep(ITEM_S)
        return item


@pytest.fixture(scope="module")
def chunks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from litdata.streaming.cache import Cache

    folder = tmp_path_factory.mktemp("chunks")
    cache = Cache(str(folder), chunk_size=20)
    for number in range(240):
        cache[number] = number
    cache.done()
    cache.merge()
    return folder


def made(folder: Path, kind: Any = litdata.StreamingDataset, workers: int = 0) -> Any:
    return litdata.StreamingDataLoader(
        kind(str(folder), shuffle=True, seed=3), batch_size=4, num_workers=workers
    )


def values(loader: Any) -> list[Any]:
    return [batch.tolist() for _ in range(2) for batch in loader]


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_and_their_order_are_those_of_the_bare_loader(chunks: Path, workers: int) -> None:
    assert values(hr.wrap(made(chunks, workers=workers))) == values(made(chunks, workers=workers)) != []


def test_reading_in_the_loop(chunks: Path, stored: StoredReports) -> None:
    report = stored(lambda: played(made(chunks, Images), 0.004))
    assert (report.diagnosis.operator, report.diagnosis.cause) == ("Images", "no_overlap"), str(report)
    assert report.diagnosis.advice[0].parameter == "num_workers"


SCRIPT = """
import sys, time
import litdata
from litdata.streaming import downloader
from litdata.streaming.resolver import Dir

download = downloader.LocalDownloader.download_file

def slow(self, *args, **kwargs):
    time.sleep(0.2)
    return download(self, *args, **kwargs)

downloader.LocalDownloader.download_file = slow

if __name__ == "__main__":
    data = litdata.StreamingDataset(Dir(path=sys.argv[1], url="local:" + sys.argv[2]), max_pre_download=1)
    for batch in litdata.StreamingDataLoader(data, batch_size=4, num_workers=int(sys.argv[3])):
        time.sleep(0.002)
"""


@pytest.mark.parametrize("workers", [0, 1])
def test_waits_for_chunks_are_an_operator(
    chunks: Path, tmp_path: Path, stored: StoredReports, workers: int
) -> None:
    remote = tmp_path / "remote"
    shutil.copytree(chunks, remote)
    arguments = (str(tmp_path / "cache"), str(remote), str(workers))
    report = stored(lambda: run_script(tmp_path, SCRIPT, *arguments)[1])
    assert operators(report)["download"].busy_s > 0.5
    assert report.diagnosis.operator == "download", str(report)
    assert report.profile.sink.steps == 60
