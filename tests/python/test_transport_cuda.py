"""CUDA without a framework, on a driver that is none: the library that the C++ tests use, compiled here."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace import _core
from headrace.transport import CudaDevice

TESTS = Path(__file__).parent.parent
numpy = pytest.importorskip("numpy")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> str:
    compiler = shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    path = tmp_path_factory.mktemp("driver") / "libfake_cuda.so"
    command = [compiler, "-std=c++20", "-O1", "-shared", "-fPIC", f"-I{TESTS}"]
    subprocess.run([*command, str(TESTS / "fake_cuda" / "fake_cuda.cc"), "-o", str(path)], check=True)
    return str(path)


@pytest.fixture
def device(library: str) -> CudaDevice:
    return CudaDevice("cuda:1", buffers=2, cuda_library=library)


def test_a_batch_in_device_memory(device: CudaDevice) -> None:
    source = numpy.arange(12, dtype="f4").reshape(3, 4)
    copied = device.transfer({"x": source, "y": [bytearray(b"abc"), "text"], "t": source.T})
    assert (device.name, copied.bytes, copied.pageable_bytes) == ("cuda:1", 99, 99)
    copied.wait()
    assert copied.done()
    assert copied.copy_s is not None
    moved = copied.ready()
    assert moved["x"].shape == (3, 4)
    assert moved["x"].format == "f"
    assert moved["x"].tobytes() == source.tobytes()
    assert moved["t"].tobytes() == source.T.tobytes()
    assert moved["y"][0].tobytes() == b"abc"
    assert moved["y"][1] == "text"


def test_the_host_cannot_look_into_it(device: CudaDevice) -> None:
    moved = device.copy(numpy.ones(3))
    with pytest.raises(BufferError) as raised:
        memoryview(moved)
    assert "in the memory of cuda:1" in str(raised.value.__cause__)
    assert moved.__dlpack_device__() == (2, 1)
    assert repr(moved) == "<headrace.DeviceArray (3,) of 'd' on cuda:1>"


def test_a_consumer_takes_it_and_its_buffer_goes_back(device: CudaDevice) -> None:
    moved = device.copy(numpy.ones(3))
    assert '"dltensor"' in repr(moved.__dlpack__(stream=-1))
    assert '"dltensor_versioned"' in repr(moved.__dlpack__(stream=-1, max_version=(1, 0)))
    for stream in (0, -2):
        with pytest.raises(BufferError):
            moved.__dlpack__(stream=stream)
    with pytest.raises(BufferError, match="consumer"):
        moved.__dlpack__(stream=-1, copy=True)
    assert device.free_buffers == 1
    del moved
    assert device.free_buffers == 2


def test_tensors_keep_their_type(device: CudaDevice) -> None:
    torch = pytest.importorskip("torch")
    moved = device.copy([torch.arange(6).reshape(2, 3).T, torch.ones(2, requires_grad=True)])
    assert (moved[0].shape, moved[0].format) == ((3, 2), "q")
    assert moved[0].tobytes() == torch.arange(6).reshape(2, 3).T.contiguous().numpy().tobytes()
    assert moved[1].format == "f"
    with pytest.raises(hr.UsageError, match="view them as bytes"):
        device.copy(torch.ones(2, dtype=torch.bfloat16))


def test_which_devices_there_are(library: str) -> None:
    assert _core.available_devices(library) == ["cpu", "cuda:0", "cuda:1"]
    with pytest.raises(hr.DeviceError, match="there is: cpu, cuda:0, cuda:1"):
        CudaDevice("cuda:2", cuda_library=library)
    with pytest.raises(hr.DeviceError, match="no driver is installed"):
        CudaDevice("cuda", cuda_library="libthere-is-no-such-driver.so.1")


@pytest.mark.usefixtures("run")
def test_one_buffer_is_enough_for_a_loop(library: str) -> None:
    device = CudaDevice("cuda:0", buffers=1, cuda_library=library)
    loop: Any = hr.wrap(range(5))
    for _ in loop:
        moved = hr.to_device(numpy.ones(10), device)
        del moved
    assert loop.report().profile.operators[-1].transfer.copies == 5
    assert device.free_buffers == 1


@pytest.mark.usefixtures("run")
def test_pageable_copies_are_told_as_such(device: CudaDevice) -> None:
    loop: Any = hr.wrap(range(4))
    for _ in loop:
        hr.to_device(numpy.ones(1000), device)
    transfer = loop.report().profile.operators[-1].transfer
    assert (transfer.copies, transfer.bytes, transfer.pinned_share) == (4, 32_000, 0)
    assert transfer.bytes_per_s == pytest.approx(
        1e9, rel=0.01
    )  # one nanosecond a byte, by that driver's clock
