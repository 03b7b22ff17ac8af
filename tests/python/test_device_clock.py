"""The device's own time of a step, with torch's events replaced: what is asked, and what must not happen."""

import time
from typing import Any

import pytest

import headrace as hr

torch = pytest.importorskip("torch")


class Device:
    """What torch.cuda would be, with a device that says what it is told to say."""

    def __init__(self) -> None:
        self.span_ms = 8.0
        self.is_behind = False
        self.captures = False
        self.recorded = 0
        self.raises: BaseException | None = None

    def event(self, enable_timing: bool = False) -> "Event":
        assert enable_timing
        return Event(self)


class Event:
    def __init__(self, device: Device) -> None:
        self.device = device

    def record(self) -> None:
        self.device.recorded += 1
        if self.device.raises is not None:
            raise self.device.raises

    def query(self) -> bool:
        return not self.device.is_behind

    def elapsed_time(self, end: "Event") -> float:
        return self.device.span_ms


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Device:
    fake = Device()
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: fake.captures)
    monkeypatch.setattr(torch.cuda, "Event", fake.event)
    return fake


def sink_of(steps: int = 60, seconds: float = 0.005) -> Any:
    loop: Any = hr.wrap(range(steps), name="train")
    for _ in loop:
        time.sleep(seconds)
    return loop.report().profile.sink


@pytest.mark.usefixtures("run")
def test_steps_tell_the_devices_time(device: Device) -> None:
    sink = sink_of()
    assert sink.device_steps >= 3
    assert sink.device_span_s == pytest.approx(0.008)
    assert sink.device_host_s >= 0.005


@pytest.mark.usefixtures("run")
def test_a_device_that_is_not_in_use_is_left_alone(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    assert sink_of().device_span_s is None
    assert device.recorded == 0


@pytest.mark.usefixtures("run")
def test_nothing_is_put_into_a_graph_that_is_being_captured(device: Device) -> None:
    device.captures = True
    assert sink_of().device_span_s is None
    assert device.recorded == 0


@pytest.mark.usefixtures("run")
def test_a_device_that_is_behind_is_not_waited_for(device: Device) -> None:
    device.is_behind = True
    assert sink_of().device_span_s is None
    assert device.recorded == 2  # one span, which is asked again


@pytest.mark.usefixtures("run")
def test_an_error_of_the_device_stays_out_of_the_loop(device: Device) -> None:
    device.raises = RuntimeError("device lost")
    assert sink_of().device_span_s is None
    assert device.recorded >= 2


@pytest.mark.usefixtures("run")
def test_an_interrupt_meanwhile_is_the_programs(device: Device) -> None:
    device.raises = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        sink_of()


def test_nothing_is_marked_while_recording_is_off(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE", "0")
    for _ in hr.wrap(range(30)):
        time.sleep(0.005)
    assert device.recorded == 0
