"""The CUDA device of torch, with host memory in the device's place: what is ordered, and when.

No GPU is needed, and none is touched: the few functions of torch.cuda that the device calls are replaced by a
stream whose events are reached when the test says so.
"""

import gc
import weakref
from typing import Any

import pytest

import headrace as hr
from headrace.errors import TransferCancelled

torch = pytest.importorskip("torch")
numpy = pytest.importorskip("numpy")


class FakeCuda:
    """What happened, in order, and whether the device is held."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.held = False
        self.pinned: list[Any] = []
        self.clock = 0.0
        self.fails = False
        self.memories: list[Any] = []  # references that keep nothing

    def event(self, enable_timing: bool = False) -> Any:
        return FakeEvent(self, enable_timing)

    def stream(self, device: Any = None) -> Any:
        return FakeStream(self, f"stream {len(self.log)}")


class Memory(bytearray):
    """What tensors on the device lie in; lives as long as one of them."""


class FakeEvent:
    def __init__(self, cuda: FakeCuda, timed: bool) -> None:
        self.cuda = cuda
        self.timed = timed
        self.at = -1.0
        self.reached = False

    def record(self, stream: Any = None) -> None:
        self.cuda.clock += 1.0
        self.at = self.cuda.clock
        self.reached = not self.cuda.held

    def query(self) -> bool:
        self.reached = self.reached or (self.at >= 0 and not self.cuda.held)
        return self.reached

    def synchronize(self) -> None:
        self.cuda.log.append("synchronize event")
        self.reached = True

    def elapsed_time(self, end: Any) -> float:
        assert self.timed
        assert end.query(), "asked before it was reached"
        return float(end.at - self.at)


class FakeStream:
    def __init__(self, cuda: FakeCuda, name: str) -> None:
        self.cuda = cuda
        self.name = name

    def wait_event(self, event: Any) -> None:
        self.cuda.log.append("wait_event")

    def synchronize(self) -> None:
        self.cuda.log.append("synchronize stream")

    def __enter__(self) -> "FakeStream":
        return self

    def __exit__(self, *_: Any) -> None:
        return None


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> FakeCuda:
    from headrace.transport import torch_device

    fake = FakeCuda()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    monkeypatch.setattr(torch.cuda, "Event", fake.event)
    monkeypatch.setattr(torch.cuda, "Stream", fake.stream)
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: stream)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: FakeStream(fake, "current"))

    def device_bytes(count: int, device: Any) -> Any:
        fake.log.append(f"allocate {count} on {device}")
        if fake.fails:
            raise RuntimeError("CUDA out of memory")
        memory = Memory(max(count, 1))
        fake.memories.append(weakref.ref(memory))
        return torch.frombuffer(memory, dtype=torch.uint8)[:count]

    def pinned_bytes(count: int) -> Any:
        fake.log.append(f"pin {count}")
        return torch.empty(count, dtype=torch.uint8)

    monkeypatch.setattr(torch_device, "_device_bytes", device_bytes)
    monkeypatch.setattr(torch_device, "_pinned_bytes", pinned_bytes)
    monkeypatch.setattr(
        torch_device,
        "_is_pinned",
        lambda flat: any(flat.data_ptr() == one.data_ptr() for one in fake.pinned),
    )
    monkeypatch.setattr(
        torch_device, "_keep_until_used", lambda memory, stream: fake.log.append(f"keep for {stream.name}")
    )
    return fake


def count(fake: FakeCuda, what: str) -> int:
    return sum(what in entry for entry in fake.log)


def test_a_batch_arrives_in_one_piece(cuda: FakeCuda) -> None:
    device = hr.open_device("cuda")
    assert device.name == "cuda:1"  # torch's current one
    images = torch.arange(24).reshape(2, 3, 4)
    last = torch.ones(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    moved = device.copy({"x": images, "y": numpy.arange(3), "last": last, "id": "a", "n": None})
    assert torch.equal(moved["x"], images)
    assert torch.equal(moved["y"], torch.arange(3))
    assert torch.equal(moved["last"], last)
    assert moved["last"].is_contiguous(memory_format=torch.channels_last)
    assert (moved["id"], moved["n"]) == ("a", None)
    assert count(cuda, "allocate") == 1
    assert count(cuda, "pin") == 1
    assert moved["x"].untyped_storage().data_ptr() == moved["y"].untyped_storage().data_ptr()


def test_the_consumers_stream_waits_and_the_host_does_not(cuda: FakeCuda) -> None:
    device = hr.open_device("cuda:0")
    cuda.held = True
    copied = device.transfer(torch.ones(3))
    assert not copied.done()
    assert copied.copy_s is None
    cuda.log.clear()
    assert torch.equal(copied.ready(), torch.ones(3))
    assert cuda.log == ["wait_event", "keep for current"]
    cuda.held = False
    assert copied.done()
    assert copied.copy_s == pytest.approx(1e-3)


def test_pageable_memory_is_staged(cuda: FakeCuda) -> None:
    source = torch.ones(1000)
    copied = hr.open_device("cuda").transfer([source])
    assert (copied.bytes, copied.pinned_bytes, copied.pageable_bytes) == (4000, 0, 4000)
    source.zero_()
    assert copied.ready()[0].sum() == 1000


def test_pinned_memory_is_copied_as_it_is(cuda: FakeCuda) -> None:
    source = torch.ones(1000)
    cuda.pinned.append(source)
    copied = hr.open_device("cuda").transfer([source])
    assert (copied.pinned_bytes, copied.pageable_bytes) == (4000, 0)
    assert count(cuda, "pin") == 0
    both = hr.open_device("cuda").transfer([source, torch.zeros(10)])
    assert (both.pinned_bytes, both.pageable_bytes) == (4000, 40)
    assert both.ready()[0].sum() == 1000
    assert both.ready()[1].sum() == 0


def test_without_pinning_nothing_is_staged(cuda: FakeCuda) -> None:
    copied = hr.open_device("cuda", pin=False).transfer([torch.ones(10)])
    assert count(cuda, "pin") == 0
    assert copied.ready()[0].sum() == 10


def test_a_staging_buffer_is_reused_when_its_copy_is_done(cuda: FakeCuda) -> None:
    device = hr.open_device("cuda", buffers=2)
    for _ in range(5):
        device.copy(torch.ones(1000))
    assert count(cuda, "pin") == 1
    cuda.held = True
    device.copy(torch.ones(1000))
    device.copy(torch.ones(1000))
    assert count(cuda, "pin") == 2
    device.copy(torch.ones(1000))
    assert count(cuda, "synchronize event") == 1  # the oldest one is waited for
    assert count(cuda, "pin") == 2


def test_a_wait_for_a_buffer_is_told_and_can_end(cuda: FakeCuda) -> None:
    device = hr.open_device("cuda", buffers=1)
    cuda.held = True
    device.copy(torch.ones(3))
    with pytest.raises(TimeoutError, match="in use"):
        device.transfer(torch.ones(3), timeout=0.01)
    assert device.transfer(torch.ones(3)).buffer_wait_s > 0
    device.cancel()
    with pytest.raises(TransferCancelled):
        device.copy(torch.ones(3))
    device.resume()
    cuda.held = False
    assert device.copy(torch.ones(3)).sum() == 3


def test_a_copy_that_fails_gives_its_buffer_back(cuda: FakeCuda) -> None:
    device = hr.open_device("cuda", buffers=1)
    cuda.fails = True
    for _ in range(3):
        with pytest.raises(RuntimeError, match="out of memory"):
            device.copy(torch.ones(3))
    assert count(cuda, "synchronize stream") == 3
    cuda.fails = False
    assert device.copy(torch.ones(3)).sum() == 3


def test_bad_input(cuda: FakeCuda) -> None:
    with pytest.raises(hr.DeviceError, match=r'no device "cuda:7" here; there is: cpu, cuda:0, cuda:1'):
        hr.open_device("cuda:7")
    with pytest.raises(hr.UsageError, match="buffers"):
        hr.open_device("cuda", buffers=0)
    with pytest.raises(hr.UsageError, match="max_buffer_bytes"):
        hr.open_device("cuda", max_buffer_bytes=100).copy(torch.ones(100))


def test_arrays_that_torch_has_no_type_for_stay(cuda: FakeCuda) -> None:
    stays = [numpy.array(["a"]), numpy.array(["2026-01-01"], "M8[D]"), numpy.ones(2, ">f4"), bytearray(b"a")]
    moved = hr.open_device("cuda").copy(stays)
    assert all(one is other for one, other in zip(moved, stays, strict=True))
    odd = [numpy.arange(6)[::-1], numpy.broadcast_to(numpy.ones(1), (3,))]
    for copied, source in zip(hr.open_device("cuda").copy(odd), odd, strict=True):
        assert copied.tolist() == source.tolist()


def test_an_empty_batch(cuda: FakeCuda) -> None:
    device = hr.open_device("cuda")
    assert device.copy({"a": "text"}) == {"a": "text"}
    assert device.copy(torch.zeros(0, 3)).shape == (0, 3)


def test_a_copy_under_way_does_not_keep_the_batch(cuda: FakeCuda) -> None:
    device = hr.open_device("cuda")
    cuda.held = True
    moved = device.copy(torch.ones(3))
    assert cuda.memories[-1]() is not None
    del moved
    gc.collect()
    assert cuda.memories[-1]() is None


@pytest.mark.usefixtures("run")
def test_to_device_tells_the_time_of_copies_that_went_on(cuda: FakeCuda) -> None:
    device = hr.open_device("cuda")
    source = torch.ones(1000)
    loop: Any = hr.wrap(range(4))
    cuda.held = True
    for _ in loop:
        hr.to_device(source, device)
    cuda.held = False
    for _ in loop:
        hr.to_device(source, device)
    transfer = loop.report().profile.operators[-1].transfer
    assert transfer.copies == 8
    assert transfer.bytes == 32_000
    assert transfer.pinned_share == 0
    assert transfer.copy_s >= 4e-3  # each took 1 ms by the device's clock
    assert transfer.bytes_per_s == pytest.approx(4000 / 1e-3)


class OnDevice:
    """Stands for a tensor that went to a device which is not here."""

    class device:  # noqa: N801 - an attribute of tensors
        type = "cuda"


@pytest.mark.usefixtures("run")
def test_to_a_torch_device_by_name(cuda: FakeCuda, monkeypatch: pytest.MonkeyPatch) -> None:
    source = torch.ones(1000)
    monkeypatch.setattr(torch.Tensor, "to", lambda self, device, **_: OnDevice())
    monkeypatch.setattr(torch.Tensor, "is_pinned", lambda self: True)
    loop: Any = hr.wrap(range(3))
    for _ in loop:
        hr.to_device([source, "a"], "cuda")
    transfer = loop.report().profile.operators[-1].transfer
    assert (transfer.copies, transfer.bytes, transfer.pinned_share) == (3, 12_000, 1)
    assert transfer.copy_s == pytest.approx(3e-3)
