"""Decoders of videos as operators of the loader that reads with them."""

from pathlib import Path
from typing import Any

import pytest

from recorded_loops import operators, run_script

pytest.importorskip("torch", reason="PyTorch is not installed")
av: Any = pytest.importorskip("av", reason="PyAV, which writes the video, is not installed")
np: Any = pytest.importorskip("numpy", reason="NumPy is not installed")
pytest.importorskip("decord", reason="decord is not installed")

SCRIPT = """
import sys, time
import decord
from torch.utils.data import DataLoader, Dataset

class Clips(Dataset):
    def __len__(self):
        return 40

    def __getitem__(self, index):
        frames = decord.VideoReader(sys.argv[1]).get_batch([index, index + 40]).asnumpy()
        assert frames.shape == (2, 240, 320, 3)
        try:
            decord.VideoReader(sys.argv[1])[1000]
        except IndexError:
            return frames

if __name__ == "__main__":
    for batch in DataLoader(Clips(), batch_size=2, num_workers=int(sys.argv[2])):
        time.sleep(0.001)
"""


@pytest.fixture(scope="module")
def video(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("videos") / "clip.mp4"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=25)
        stream.width, stream.height, stream.pix_fmt = 320, 240, "yuv420p"
        for number in range(100):
            frame = av.VideoFrame.from_ndarray(np.full((240, 320, 3), number, np.uint8), format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


@pytest.mark.parametrize("workers", [0, 1])
def test_what_decodes_is_an_operator_in_unchanged_scripts(tmp_path: Path, video: Path, workers: int) -> None:
    printed, report = run_script(tmp_path, SCRIPT, str(video), str(workers))
    found = operators(report)
    assert found["VideoReader.get_batch"].items == 40, printed
    assert found["VideoReader.get_batch"].busy_s > 0
    assert found["VideoReader.__getitem__"].failures == 40
    assert report.profile.sink.steps == 20
