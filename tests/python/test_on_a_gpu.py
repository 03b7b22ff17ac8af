"""What only a real GPU shows: copies arrive, their order holds, the device tells its own time of a step."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

import headrace as hr
from headrace.transport import CudaDevice

torch = pytest.importorskip("torch")
numpy = pytest.importorskip("numpy")
if not torch.cuda.is_available():
    pytest.skip("no GPU", allow_module_level=True)

#: Long enough that a copy which does not wait for a kernel would overtake it.
KERNEL_CYCLES = 20_000_000


def batches(count: int, size: int = 1 << 18) -> Iterator[Any]:
    for number in range(count):
        yield {"x": numpy.full(size, number, "f4"), "y": [numpy.arange(number, number + 5), "label"]}


@pytest.fixture(params=["driver", "torch"])
def device(request: pytest.FixtureRequest) -> Any:
    return CudaDevice("cuda", buffers=2) if request.param == "driver" else hr.open_device("cuda", buffers=2)


def tensor(array: Any) -> Any:
    return array if isinstance(array, torch.Tensor) else torch.from_dlpack(array)


def test_a_batch_arrives(device: Any) -> None:
    for number, batch in enumerate(batches(20)):
        moved = device.copy(batch)
        assert tensor(moved["x"]).is_cuda
        assert bool((tensor(moved["x"]) == number).all())
        assert tensor(moved["y"][0]).tolist() == list(range(number, number + 5))
        assert moved["y"][1] == "label"


def test_a_buffer_is_not_overwritten_while_a_kernel_reads_it(device: Any) -> None:
    sums = []
    for batch in batches(12):
        x = tensor(device.copy(batch)["x"])
        torch.cuda._sleep(KERNEL_CYCLES)
        sums.append(x.double().mean())
        del x
    assert [float(each) for each in sums] == [float(number) for number in range(12)]


def test_page_locked_memory_is_copied_as_it_is(device: Any) -> None:
    pinned = torch.arange(1 << 16).pin_memory()
    copied = device.transfer(pinned)
    copied.wait()
    assert (copied.pinned_bytes, copied.pageable_bytes) == (pinned.nbytes, 0)
    assert torch.equal(tensor(copied.ready()).cpu(), pinned)
    assert copied.copy_s > 0


def test_cupy_takes_it_without_a_copy() -> None:
    cupy = pytest.importorskip("cupy")
    device = CudaDevice("cuda", buffers=2)
    moved = device.copy(numpy.arange(1000, dtype="i8"))
    taken = cupy.from_dlpack(moved)
    assert int(taken.sum()) == 499_500
    del moved, taken
    assert device.free_buffers == 2


@pytest.mark.usefixtures("run")
def test_a_pipeline_ends_on_the_device(device: Any) -> None:
    pipe = (
        hr.source(range(400))
        .map(lambda number: numpy.full(1000, number, "f4"), workers=3, name="load")
        .batch(4, collate=numpy.stack)
        .to_device(device)
    )
    columns = [tensor(batch)[:, -1].clone() for batch in pipe]
    assert torch.cat(columns).tolist() == list(range(400))
    transfer = pipe.report().profile.operators[-1].transfer
    assert transfer is not None
    assert 90 <= transfer.copies <= 100  # those before the first batch belong to the start
    assert transfer.bytes == transfer.copies * 4 * 4000
    assert transfer.bytes_per_s > 1e6


def cycles_of(seconds: float) -> int:
    """Of the GPU's clock, measured, after it has woken up."""
    took_ms = 0.0
    for _ in range(5):
        began, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        began.record()
        torch.cuda._sleep(KERNEL_CYCLES)
        ended.record()
        torch.cuda.synchronize()
        took_ms = began.elapsed_time(ended)
    return round(KERNEL_CYCLES * seconds * 1e3 / took_ms)


def loop_over(load_s: float, device_s: float, waits: bool, workers: int = 1) -> Any:
    """Batches that take `load_s` to make; a step of which the device works `device_s`."""
    cycles = cycles_of(device_s)
    pipe = hr.source(range(250)).map(lambda _: time.sleep(load_s), workers=workers, name="load")
    for _ in pipe:
        torch.cuda._sleep(cycles)
        if waits:
            torch.cuda.synchronize()
    torch.cuda.synchronize()
    return pipe.report()


@pytest.mark.usefixtures("run")
def test_the_device_works_on_while_the_loop_waits() -> None:
    report = loop_over(load_s=0.010, device_s=0.008, waits=False)
    sink = report.profile.sink
    assert sink.device_steps >= 20
    assert sink.device_span_s == pytest.approx(0.008, rel=0.1)
    assert sink.wait_share > 0.9  # the host has nothing else to do
    gate = report.diagnosis.evidence[0]
    assert gate.figures["most_speedup"] == pytest.approx(10 / 8, rel=0.12)
    predicted = report.what_if(**{"load.workers": 4})
    assert predicted["step_s"] == pytest.approx(0.008, rel=0.12)


@pytest.mark.usefixtures("run")
def test_a_device_that_is_busy_all_the_time_is_the_limit() -> None:
    report = loop_over(load_s=0.004, device_s=0.005, waits=False)
    assert report.diagnosis.kind == "not_input_bound"


@pytest.mark.usefixtures("run")
def test_a_step_that_waits_for_the_device_is_compute() -> None:
    report = loop_over(load_s=0.010, device_s=0.005, waits=True)
    sink = report.profile.sink
    assert sink.device_span_s == pytest.approx(0.005, rel=0.1)
    assert sink.device_host_s == pytest.approx(sink.compute_s, rel=0.1)
    assert report.diagnosis.kind == "input_bound"
    assert report.diagnosis.evidence[0].figures["most_speedup"] == pytest.approx(2, rel=0.12)
