"""Copies to host memory as a device: what arrives, whose memory it is, and what is recorded."""

import array
import gc
import threading
import time
from collections import OrderedDict, defaultdict, namedtuple
from dataclasses import dataclass, field
from typing import Any

import pytest

import headrace as hr
from headrace.errors import TransferCancelled
from headrace.transport import available_devices

numpy = pytest.importorskip("numpy")
Pair = namedtuple("Pair", "image label")


@dataclass(frozen=True)
class Sample:
    image: Any
    name: str
    extra: list[Any] = field(default_factory=list)


@pytest.fixture
def device() -> hr.HostDevice:
    return hr.HostDevice(buffers=2)


# --- what arrives -------------------------------------------------------------------------------------------


def test_a_nested_batch_keeps_its_structure(device: hr.HostDevice) -> None:
    one = numpy.arange(6, dtype="f4").reshape(2, 3)
    batch = {"a": [one, "text", 3], "b": Pair(one, None), "c": (one,), "d": Sample(one, "n", [one])}
    moved = device.copy(batch)
    arrays = [moved["a"][0], moved["b"].image, moved["c"][0], moved["d"].image, moved["d"].extra[0]]
    for copied in arrays:
        assert copied is not one
        assert not numpy.shares_memory(copied, one)
        numpy.testing.assert_array_equal(copied, one)
    assert moved["a"][1:] == ["text", 3]
    assert type(moved["b"]) is Pair
    assert moved["d"].name == "n"
    assert batch["d"].image is one
    assert batch["d"].extra[0] is one


def test_subclasses_of_containers_stay_what_they_are(device: hr.HostDevice) -> None:
    counts = defaultdict(list, {"x": numpy.ones(2)})
    moved = device.copy({"ordered": OrderedDict(b=numpy.zeros(1), a=1), "counts": counts})
    assert list(moved["ordered"]) == ["b", "a"]
    assert type(moved["ordered"]) is OrderedDict
    assert moved["counts"]["new"] == []
    assert "new" not in counts


@pytest.mark.parametrize(
    "dtype", ["?", "u1", "i2", "<i8", ">i4", "f2", "f8", "c16", "M8[us]", "S5", "U3", "V7"]
)
def test_element_types_of_numpy(device: hr.HostDevice, dtype: str) -> None:
    source = numpy.zeros(5, dtype)
    source.view("u1")[:] = numpy.arange(source.nbytes) % (2 if dtype == "?" else 100)
    moved = device.copy(source)
    assert moved.dtype == source.dtype
    assert moved.tobytes() == source.tobytes()


def test_records_of_numpy(device: hr.HostDevice) -> None:
    source = numpy.array([(1, 2.5, b"ab"), (2, 3.5, b"c")], [("n", "i4"), ("x", "f8"), ("s", "S2")])
    moved = device.copy(source)
    assert moved.dtype == source.dtype
    assert moved.tolist() == source.tolist()


@pytest.mark.parametrize(
    "source",
    [
        numpy.array(3.0),
        numpy.ones((0, 3)),
        numpy.asfortranarray(numpy.arange(12).reshape(3, 4)),
        numpy.arange(24).reshape(2, 3, 4).transpose(1, 0, 2),
        numpy.arange(10)[::2],
        numpy.arange(10)[::-1],
        numpy.broadcast_to(numpy.arange(3), (4, 3)),
    ],
    ids=["scalar", "empty", "fortran", "permuted", "stepped", "reversed", "broadcast"],
)
def test_shapes_and_strides_of_numpy(device: hr.HostDevice, source: Any) -> None:
    moved = device.copy([source])[0]
    assert type(moved) is numpy.ndarray
    assert moved.shape == source.shape
    numpy.testing.assert_array_equal(moved, source)


def test_the_order_in_memory_is_kept(device: hr.HostDevice) -> None:
    assert device.copy(numpy.asfortranarray(numpy.ones((3, 4)))).flags.f_contiguous


def test_arrays_are_aligned_and_can_be_written(device: hr.HostDevice) -> None:
    source = [numpy.ones(1, "u1"), numpy.ones(3), numpy.ones(5, "f4")]
    for one in source:
        one.flags.writeable = False
    for copied in device.copy(source):
        assert copied.__array_interface__["data"][0] % 64 == 0
        copied += 1
        assert copied[0] == 2


def test_tensors_of_torch(device: hr.HostDevice) -> None:
    torch = pytest.importorskip("torch")
    source = [
        torch.arange(6).reshape(2, 3),
        torch.ones(2, 3, 4, 5).contiguous(memory_format=torch.channels_last),
        torch.arange(10)[::3],
        torch.zeros(0, 4),
        torch.tensor(2.5),
        torch.ones(3, dtype=torch.bfloat16),
        torch.tensor([True, False]),
        torch.tensor([1 + 2j]).conj(),
        torch.ones(2, requires_grad=True),
    ]
    for copied, one in zip(device.copy(source), source, strict=True):
        assert type(copied) is torch.Tensor
        assert copied.dtype == one.dtype
        assert copied.shape == one.shape
        assert torch.equal(copied, one.detach())
        assert not copied.requires_grad
        assert copied.numel() == 0 or copied.data_ptr() != one.data_ptr()
    assert device.copy(source[1]).is_contiguous(memory_format=torch.channels_last)


def test_what_stays_as_it_is(device: hr.HostDevice) -> None:
    torch = pytest.importorskip("torch")
    stays = [
        b"bytes",
        "text",
        None,
        numpy.float32(1),
        numpy.array([object()], dtype=object),
        numpy.ma.masked_array([1, 2], mask=[True, False]),
        torch.nn.Parameter(torch.ones(2)),
        torch.ones(2, device="meta"),
        torch.eye(2).to_sparse(),
        object(),
    ]
    moved = device.copy(stays)
    assert all(one is other for one, other in zip(moved, stays, strict=True))


def test_the_buffer_protocol_in_and_out(device: hr.HostDevice) -> None:
    moved = device.copy([bytearray(b"abc"), array.array("d", [1, 2]), memoryview(b"abcd")[::2]])
    assert all(isinstance(one, hr.DeviceArray) for one in moved)
    assert bytes(moved[0]) == b"abc"
    assert memoryview(moved[1]).tolist() == [1.0, 2.0]
    assert memoryview(moved[1]).format == "d"
    assert moved[2].tobytes() == b"ac"
    assert (moved[1].shape, moved[1].itemsize, moved[1].nbytes, moved[1].device) == ((2,), 8, 16, "cpu")
    assert "'d' on cpu" in repr(moved[1])


class Producer:
    """An array of another library: DLPack alone, of before version 1.0 or since."""

    def __init__(self, source: Any, old: bool = False) -> None:
        self.source = source
        self.old = old

    def __dlpack__(self, **options: Any) -> Any:
        if self.old and options:
            raise TypeError("unexpected keyword argument")
        return self.source.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.source.__dlpack_device__()


@pytest.mark.parametrize("old", [False, True])
def test_dlpack_in_and_out(device: hr.HostDevice, old: bool) -> None:
    source = numpy.arange(12, dtype="i4").reshape(3, 4)
    moved = device.copy([Producer(source, old), Producer(source[:, ::2], old)])
    assert moved[0].__dlpack_device__() == (1, 0)
    numpy.testing.assert_array_equal(numpy.from_dlpack(moved[0]), source)
    numpy.testing.assert_array_equal(numpy.from_dlpack(moved[1]), source[:, ::2])
    torch = pytest.importorskip("torch")
    taken = torch.from_dlpack(moved[0])
    taken[0, 0] = 77
    assert numpy.asarray(moved[0])[0, 0] == 77  # the same memory


def test_what_dlpack_cannot_give_is_a_buffer_error(device: hr.HostDevice) -> None:
    moved = device.copy([bytearray(b"abc"), memoryview(numpy.zeros(2, "i4,f4"))])
    for wrong in ({"dl_device": (2, 0)}, {"stream": 3}):
        with pytest.raises(BufferError):
            moved[0].__dlpack__(**wrong)
    with pytest.raises(BufferError, match="no word"):
        moved[1].__dlpack__()
    copied = moved[0].__dlpack__(copy=True, max_version=(1, 0))
    assert "dltensor_versioned" in repr(copied)
    del copied  # nobody took it


# --- whose memory it is -------------------------------------------------------------------------------------


def test_the_buffer_goes_back_with_the_last_array(device: hr.HostDevice) -> None:
    moved = device.copy({"a": numpy.ones(3), "b": numpy.zeros(3)})
    assert device.free_buffers == 1
    view = moved["b"][1:]
    del moved
    gc.collect()
    assert device.free_buffers == 1
    del view
    assert device.free_buffers == 2


def test_a_tensor_taken_by_dlpack_keeps_the_buffer(device: hr.HostDevice) -> None:
    taken = numpy.from_dlpack(device.copy(bytearray(b"abc")))
    gc.collect()
    assert device.free_buffers == 1
    assert taken.tolist() == [97, 98, 99]
    del taken
    assert device.free_buffers == 2


def test_a_batch_outlives_its_device() -> None:
    moved = hr.HostDevice(buffers=1).copy(numpy.arange(1000))
    gc.collect()
    assert moved.sum() == 499500


def test_buffers_in_use_are_waited_for(device: hr.HostDevice) -> None:
    held = [device.copy(numpy.ones(3)), device.copy(numpy.ones(3))]
    with pytest.raises(TimeoutError, match="in use"):
        device.copy(numpy.ones(3), timeout=0.01)
    threading.Timer(0.05, held.clear).start()
    copied = device.transfer(numpy.ones(3))
    assert copied.buffer_wait_s > 0
    assert copied.done()
    assert copied.copy_s is not None
    assert copied.copy_s >= 0
    copied.wait()
    assert copied.ready() is copied.batch


def test_cancel_ends_a_wait_until_resume(device: hr.HostDevice) -> None:
    held = [device.copy(numpy.ones(3)), device.copy(numpy.ones(3))]
    threading.Timer(0.05, device.cancel).start()
    with pytest.raises(TransferCancelled):
        device.copy(numpy.ones(3))
    held.clear()
    with pytest.raises(hr.DeviceError):
        device.copy(numpy.ones(3))
    device.resume()
    assert device.copy(numpy.ones(3)).sum() == 3


def test_a_wait_for_a_buffer_can_be_interrupted(execute: Any) -> None:
    execute(
        """
        import os, signal, threading
        import headrace as hr
        device = hr.HostDevice(buffers=1)
        held = device.copy(bytearray(10))
        threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            device.copy(bytearray(10))
        except KeyboardInterrupt:
            raise SystemExit(0)
        raise SystemExit(1)
        """
    )


# --- bad input ----------------------------------------------------------------------------------------------


def test_options_that_cannot_be() -> None:
    for wrong in (
        {"buffers": 0},
        {"buffers": -1},
        {"buffer_bytes": -1},
        {"bandwidth": 0},
        {"max_buffer_bytes": 0},
    ):
        with pytest.raises(hr.UsageError):
            hr.HostDevice(**wrong)
    with pytest.raises(hr.UsageError, match="max_buffer_bytes"):
        hr.HostDevice(buffer_bytes=1000, max_buffer_bytes=10)


def test_a_batch_above_the_limit_says_what_to_do() -> None:
    with pytest.raises(hr.UsageError, match="max_buffer_bytes"):
        hr.HostDevice(max_buffer_bytes=1000).copy(numpy.ones(1000))


def test_a_device_that_is_not_there_names_those_that_are() -> None:
    assert available_devices()[0] == "cpu"
    for name in ("tpu", "cpu:3", "cuda:99", ""):
        with pytest.raises(hr.DeviceError, match="there is: cpu"):
            hr.open_device(name)
    with pytest.raises(hr.DeviceError, match="throttled"):
        hr.open_device("cuda", bandwidth=1e9)


def test_devices_by_name(device: hr.HostDevice) -> None:
    opened = hr.open_device("cpu", buffers=3, bandwidth=1e9)
    assert isinstance(opened, hr.HostDevice)
    assert repr(opened) == "<headrace device cpu, 3 buffers>"
    assert hr.open_device(device) is device
    torch = pytest.importorskip("torch")
    assert hr.open_device(torch.device("cpu")).name == "cpu"


# --- what is recorded ---------------------------------------------------------------------------------------


@pytest.mark.usefixtures("run")
def test_to_device_tells_what_it_copied() -> None:
    device = hr.HostDevice(bandwidth=10e6, buffers=1)
    loop: Any = hr.wrap([numpy.ones(12_500) for _ in range(6)])  # 100 kB: 10 ms each
    for batch in loop:
        moved = hr.to_device(batch, device)
        assert moved.sum() == 12_500
        del moved
    transfer = loop.report().profile.operators[-1].transfer
    assert loop.report().profile.operators[-1].name == "to_device"
    assert transfer.copies == 6
    assert transfer.bytes == 600_000
    assert transfer.copy_s >= 0.06
    assert transfer.bytes_per_s <= 10e6
    assert transfer.pinned_share is None
    assert "to_device copies 100 kB a batch" in loop.report().to_text(width=200)
    loop.report().save("report.json")
    again = hr.Report.load("report.json")
    assert again.profile.operators[-1].transfer == transfer


@pytest.mark.usefixtures("run")
def test_a_wait_for_a_buffer_is_no_service_time() -> None:
    device = hr.HostDevice(buffers=1)
    loop: Any = hr.wrap(range(3))
    for _ in loop:
        held = [device.copy(numpy.ones(3))]
        threading.Timer(0.05, held.clear).start()
        hr.to_device(numpy.ones(3), device)
    operator = loop.report().profile.operators[-1]
    assert operator.transfer.buffer_wait_s >= 0.1
    assert operator.busy_s < operator.transfer.buffer_wait_s / 2


@pytest.mark.usefixtures("run")
def test_nothing_copied_tells_nothing() -> None:
    loop: Any = hr.wrap([numpy.ones(3)] * 3)
    for batch in loop:
        hr.to_device(batch, "cpu")
    assert loop.report().profile.operators[-1].transfer is None


def test_threads_share_a_device() -> None:
    device = hr.HostDevice(buffers=2)
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(50):
            moved = device.copy(numpy.full(1000, number))
            time.sleep(0)
            if (moved != number).any():
                wrong.append(number)
            del moved  # nobody asks for a second buffer while holding one

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert device.free_buffers == 2
