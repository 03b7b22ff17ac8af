"""Epochs, early ends, failures, killed workers, loaders within loaders: what is counted, what stays."""

import contextlib
import gc
import os
import signal
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from stored_reports import StoredReports

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
data = pytest.importorskip("torch.utils.data")

pytestmark = pytest.mark.usefixtures("run")


class Numbers(data.Dataset):  # type: ignore[misc, name-defined]
    def __init__(self, count: int = 24, pause_s: float = 0) -> None:
        self.count = count
        self.pause_s = pause_s

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Any:
        time.sleep(self.pause_s)
        return torch.tensor([float(index)])


def wrapped(dataset: Any = None, name: str | None = None, **options: Any) -> Any:
    options = {"batch_size": 4, "num_workers": 2, **options}
    return hr.wrap(data.DataLoader(Numbers() if dataset is None else dataset, **options), name=name)


def operator(loader: Any, name: str) -> Any:
    return next(one for one in loader.report().profile.operators if one.name == name)


class KeepsIterator(data.DataLoader):  # type: ignore[misc, name-defined]
    """Of the shape of timm's and ultralytics' loaders: one iterator, which never ends."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        batches = self.batch_sampler

        class Forever:
            def __iter__(self) -> Any:
                while True:
                    yield from batches

        object.__setattr__(self, "batch_sampler", Forever())
        self.count = len(batches)
        self.iterator = super().__iter__()

    def __iter__(self) -> Any:
        for _ in range(self.count):
            yield next(self.iterator)


@pytest.mark.parametrize("workers", [0, 2])
def test_epochs_of_a_loader_that_keeps_its_iterator(workers: int) -> None:
    kept = hr.wrap(data.DataLoader(Numbers(), batch_size=4, num_workers=workers))
    loader = KeepsIterator(kept.dataset, batch_size=4, num_workers=workers)  # adopted
    assert len(list(iter(loader))) == 6
    for epoch in range(3):
        for number, _ in enumerate(loader):
            if epoch == 1 and number == 2:
                break
        time.sleep(0.3)  # validation
    profile = kept.report().profile
    assert profile.epochs == 4
    assert profile.sink.steps == 6 + 6 + 3 + 6
    assert profile.sink.compute_s < 0.05
    assert type(iter(loader)).__name__ == "generator"


def test_iterators_that_nothing_is_taken_from_are_no_epochs() -> None:
    loader = wrapped(num_workers=0)
    made = [iter(loader) for _ in range(3)]
    assert len(list(made[0])) == 6
    assert loader.report().profile.epochs == 1


@pytest.mark.parametrize("options", [{}, {"persistent_workers": True}, {"in_order": False}])
def test_epochs(options: dict[str, Any]) -> None:
    loader = wrapped(**options)
    for epoch in range(1, 4):
        assert len(list(loader)) == 6
        assert loader.report().profile.epochs == epoch
    profile = loader.report().profile
    assert profile.sink.steps == 18
    numbers = operator(loader, "Numbers")
    assert numbers.items == 72
    assert [one.worker_id for one in numbers.per_worker] == [0, 1]
    assert sum(one.items for one in numbers.per_worker) == 72
    last = loader.report(epoch=-1).profile
    assert last.sink.steps == 6
    assert next(one for one in last.operators if one.name == "Numbers").items == 24
    assert profile.notes == []


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_workers_that_start_afresh(execute: Callable[..., Any], method: str, tmp_path: Path) -> None:
    result = execute(
        f"""
        import json, torch, headrace as hr
        from torch.utils.data import DataLoader, Dataset

        class Numbers(Dataset):
            def __len__(self): return 24
            def __getitem__(self, index): return torch.tensor([index])

        if __name__ == "__main__":
            bare = DataLoader(Numbers(), 4, num_workers=1, multiprocessing_context="{method}")
            loader = hr.wrap(bare, run="r")
            list(loader)
            profile = loader.report().profile
            print(json.dumps({{one.name: one.items for one in profile.operators}}))
        """
    )
    assert result.json.items() >= {"Numbers": 24, "default_collate": 6, "handoff": 6}.items()


def test_batches_made_and_never_used_are_counted() -> None:
    loader = wrapped(Numbers(400), prefetch_factor=4)
    for number, _ in enumerate(loader):
        if number == 2:
            time.sleep(0.3)  # the workers fill their window
            break
    profile = loader.report().profile
    assert profile.sink.steps == 3
    assert 1 <= profile.handoff.unused_batches <= 8
    assert len(list(loader)) == 100
    assert loader.report().profile.handoff.unused_batches == profile.handoff.unused_batches


def test_an_early_break_with_workers_that_stay() -> None:
    loader = wrapped(Numbers(80), persistent_workers=True)
    for _ in range(3):
        for number, _ in enumerate(loader):
            if number == 1:
                break
    assert len(list(loader)) == 20
    profile = loader.report().profile
    assert profile.sink.steps == 3 * 2 + 20
    for queue in profile.queues:
        assert queue.gets <= queue.puts
        assert queue.mean <= queue.capacity


class Failing(Numbers):
    def __getitem__(self, index: int) -> Any:
        if index == 9:
            raise KeyError(index)
        return super().__getitem__(index)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_loop_goes_on_after_a_failed_batch(workers: int) -> None:
    loader = wrapped(Failing(), num_workers=workers)
    iterator = iter(loader)
    good = bad = 0
    for _ in range(6):
        with contextlib.suppress(KeyError):
            bad += 1
            next(iterator)
            good += 1
            bad -= 1
    with pytest.raises(StopIteration):
        next(iterator)
    assert (good, bad) == (5, 1)
    profile = loader.report().profile
    assert (profile.sink.steps, profile.epochs) == (5, 1)
    assert operator(loader, "Failing").failures == 1


class Dying(Numbers):
    def __getitem__(self, index: int) -> Any:
        if index == 60:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__getitem__(index)


def test_a_killed_worker() -> None:
    loader = wrapped(Dying(400), batch_size=2)
    # What torch meets first is chance: the signal, or the end of the socket of its descriptors. Then the
    # signal comes a little later, and torch's handler of it raises wherever the program is.
    with contextlib.suppress(RuntimeError):
        with pytest.raises((RuntimeError, OSError, EOFError)):
            list(loader)
        time.sleep(1.0)
    profile = loader.report().profile
    assert 1 <= profile.sink.steps <= 30
    assert operator(loader, "Dying").items >= 2 * profile.sink.steps
    assert any("died without finishing" in note for note in profile.notes)


def test_a_dataset_that_returns_nothing_or_fails_at_once() -> None:
    class Nothing(Numbers):
        def __getitem__(self, index: int) -> None:
            return None

    loader = wrapped(Nothing(), collate_fn=len)
    assert list(loader) == [4] * 6
    assert loader.report().profile.sink.steps == 6

    class Broken(Numbers):
        def __getitem__(self, index: int) -> Any:
            raise ValueError("at once")

    for workers in (0, 2):
        broken = wrapped(Broken(), num_workers=workers)
        with pytest.raises(ValueError, match="at once"):
            list(broken)
        assert broken.report().diagnosis.kind == "undetermined"


def test_a_dataset_that_forks_and_starts_threads() -> None:
    class Busy(Numbers):
        def __getitem__(self, index: int) -> Any:
            child = os.fork()
            if child == 0:
                os._exit(0)
            os.waitpid(child, 0)
            thread = threading.Thread(target=time.sleep, args=(0.0001,))
            thread.start()
            thread.join()
            return super().__getitem__(index)

    for workers in (0, 2):
        loader = wrapped(Busy(), num_workers=workers)
        assert len(list(loader)) == 6
        assert operator(loader, "Busy").items == 24


class Nested(Numbers):
    """Reads from a loader of its own, as some datasets of shards do."""

    def __getitem__(self, index: int) -> Any:
        inner = data.DataLoader(Numbers(4), batch_size=2)
        return torch.stack([batch.sum() for batch in hr.wrap(inner, name="inner")])


@pytest.mark.parametrize("workers", [0, 1])
def test_a_wrapped_loader_inside_another(workers: int) -> None:
    loader = wrapped(Nested(8), num_workers=workers, name="outer")
    assert [batch.tolist() for batch in loader] == [[[1.0, 5.0]] * 4] * 2
    assert operator(loader, "Nested").items == 8
    assert loader.report().profile.sink.steps == 2


def test_a_wrapped_loader_that_a_stream_reads_from() -> None:
    inner = wrapped(Numbers(24), num_workers=0, name="inner")

    class Sums(data.IterableDataset):  # type: ignore[misc, name-defined]
        def __iter__(self) -> Any:
            return (batch.sum() for batch in list(inner))

    loader = wrapped(Sums(), num_workers=0, name="outer")
    assert len(list(loader)) == 2
    assert (loader.report().profile.sink.steps, inner.report().profile.sink.steps) == (2, 6)


def test_training_and_validation_in_turn() -> None:
    train, check = wrapped(Numbers(48), name="train"), wrapped(Numbers(16), name="check")
    for _ in range(2):
        for number, _ in enumerate(train):
            if number % 6 == 5:
                list(check)
    assert (train.report().profile.sink.steps, check.report().profile.sink.steps) == (24, 16)
    assert (operator(train, "Numbers").items, operator(check, "Numbers").items) == (96, 64)
    assert [queue.puts for queue in train.report().profile.queues if queue.name == "results"] == [24]


def test_two_passes_side_by_side() -> None:
    loader = wrapped()
    assert len(list(zip(loader, loader, strict=True))) == 6
    assert loader.report().profile.sink.steps == 12
    assert operator(loader, "Numbers").items == 48


def test_an_iterator_on_another_thread() -> None:
    loader = wrapped(Numbers(40))
    seen: list[Any] = []
    thread = threading.Thread(target=lambda: seen.extend(loader))
    thread.start()
    thread.join()
    assert len(seen) == 10
    assert loader.report().profile.sink.steps == 10


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_iterators_and_their_pipes_go_when_they_are_dropped(wait_until: Callable[..., None]) -> None:
    loader = wrapped()
    list(loader)
    gc.collect()
    gc.disable()
    try:
        before = open_files()
        for _ in range(3):
            iterator = iter(loader)
            next(iterator)
            gone = weakref.ref(iterator)
            del iterator
            assert gone() is None
        wait_until(lambda: open_files() <= before + 2)
        dataset = Numbers()
        known = weakref.ref(dataset)
        list(hr.wrap(data.DataLoader(dataset)))
        del dataset
        assert known() is None
    finally:
        gc.enable()


def test_loaders_made_from_a_wrapped_one_are_adopted() -> None:
    loader = wrapped()
    options = {"batch_size": 6, "num_workers": 1}
    assert len(list(data.DataLoader(loader.dataset, **options))) == 4
    again = type(loader)(loader.dataset, **options)
    assert len(list(again)) == 4
    assert loader.report().profile.sink.steps == 8
    assert operator(loader, "Numbers").items == 48


@pytest.mark.parametrize("workers", [0, 2])
def test_iterators_that_were_there_before(workers: int) -> None:
    class Endless(data.DataLoader):  # type: ignore[misc, name-defined]
        """Keeps one iterator for all epochs, as some training scripts do."""

        def __iter__(self) -> Any:
            if "kept" not in self.__dict__:
                self.__dict__["kept"] = super().__iter__()
            return iter([next(self.kept) for _ in range(3)])

    bare = Endless(Numbers(), batch_size=4, num_workers=workers)
    assert len(list(bare)) == 3
    loader: Any = hr.wrap(bare)
    assert [int(batch[0]) for batch in loader] == [12, 16, 20]
    profile = loader.report().profile
    assert (profile.sink.steps, profile.epochs) == (3, 1)
    assert any("workers" in note for note in profile.notes) == (workers > 0)


def test_workers_that_stayed_from_before() -> None:
    bare = data.DataLoader(Numbers(), batch_size=4, num_workers=2, persistent_workers=True)
    list(bare)
    loader: Any = hr.wrap(bare)
    assert len(list(loader)) == len(list(loader)) == 6
    profile = loader.report().profile
    assert (profile.sink.steps, profile.epochs) == (12, 2)
    assert [one.name for one in profile.operators] == ["handoff"]


def test_others_are_not() -> None:
    bare = data.DataLoader(Numbers(), batch_size=4)
    loader: Any = hr.wrap(bare)
    list(bare)
    list(data.DataLoader(Numbers(), batch_size=4))
    assert loader.report().profile.sink.steps == 0


def pin_by_copy(iterator: Any) -> None:
    """What torch does where there is an accelerator: a thread receives, pins, and hands on."""
    import queue

    pinned: Any = queue.Queue()
    results, iterator._data_queue = iterator._worker_result_queue, pinned

    def loop() -> None:
        while True:
            try:
                number, batch = results.get(timeout=0.2)
            except queue.Empty:
                if iterator._shutdown:
                    return
                continue
            if batch is None:  # torch's last word to it
                return
            time.sleep(0.01)
            pinned.put((number, batch.clone()))

    iterator._pin_memory_thread = threading.Thread(target=loop, daemon=True)
    iterator._pin_memory_thread_done_event = threading.Event()


def test_a_thread_that_pins(monkeypatch: pytest.MonkeyPatch, stored: StoredReports) -> None:
    """Without an accelerator torch starts no such thread; this one does what it would do."""
    from headrace.loaders.torch_dataloader import hook

    follow = hook._follow

    def follow_pinned(iterator: Any, start: Any) -> None:
        pin_by_copy(iterator)
        follow(iterator, start)
        iterator._pin_memory_thread.start()

    monkeypatch.setattr(hook, "_follow", follow_pinned)
    loader = wrapped(Numbers(120))
    iterator = iter(loader)
    assert [batch.tolist() for batch in iterator] == [
        [[float(number)] for number in range(first, first + 4)] for first in range(0, 120, 4)
    ]
    iterator._shutdown = True
    profile = loader.report().profile
    assert [queue.name for queue in profile.queues] == [
        "index[0]",
        "index[1]",
        "results",
        "pinned",
        "reorder",
    ]
    kinds = {one.name: (one.kind, one.items) for one in profile.operators if one.kind != "sampler"}
    assert kinds["pin_memory"] == ("pin_memory", 30)
    assert kinds["handoff"] == ("handoff", 30)
    assert profile.queues[3].puts == profile.queues[3].gets == 30
    ledger = {row.operator: row.seconds for row in stored(loader.report).profile.stall_ledger}
    assert max(ledger, key=lambda name: ledger[name]) == "pin_memory"


def test_private_names_that_are_gone_leave_the_sink_and_a_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from headrace.loaders.torch_dataloader import hook

    monkeypatch.setattr(hook, "_FOLLOWED", ("_of_another_version",))
    loader = wrapped()
    assert len(list(loader)) == 6
    profile = loader.report().profile
    assert profile.sink.steps == 6
    assert any("unavailable" in note for note in profile.notes)
    assert "_of_another_version" in caplog.text


def start_in_turn(worker: int) -> None:
    time.sleep(0.25 * worker)


class ThreadedLoader(data.DataLoader):  # type: ignore[misc, name-defined]
    """Says what a loader with worker threads says; its workers are processes all the same."""

    worker_method = "thread"


def test_workers_of_another_kind_are_left_alone() -> None:
    bare = ThreadedLoader(Numbers(), batch_size=4, num_workers=1)
    loader: Any = hr.wrap(bare)
    assert [len(batch) for batch in loader] == [len(batch) for batch in bare]
    profile = loader.report().profile
    assert profile.sink.steps == 6
    assert "Numbers" not in {op.name for op in profile.operators}
    assert any("nothing could be recorded inside the loader's workers" in note for note in profile.notes)


def test_the_workers_of_torchs_next_version_are_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = data._utils.worker._worker_loop
    monkeypatch.setattr(ThreadedLoader, "worker_method", "multiprocessing")
    monkeypatch.setattr(loop, "__code__", loop.__code__.replace(co_name="_process_worker_loop"))
    loader: Any = hr.wrap(ThreadedLoader(Numbers(), batch_size=4, num_workers=1))
    assert len(list(loader)) == 6
    profile = loader.report().profile
    assert profile.operators[0].items == 24
    assert profile.notes == []


def test_waiting_for_workers_that_start_in_turn_is_told_apart() -> None:
    loader = wrapped(Numbers(48, 1e-4), num_workers=3, worker_init_fn=start_in_turn)
    for _ in range(2):
        for _ in loader:
            time.sleep(0.01)
    report = loader.report()
    # The second and third worker's first batch, in each of two epochs.
    assert report.profile.sink.worker_start_wait_s == pytest.approx(1.0, abs=0.35)
    assert report.profile.sink.starved_share * report.profile.elapsed_s >= 0.6
    assert report.diagnosis.kind == "not_input_bound"
