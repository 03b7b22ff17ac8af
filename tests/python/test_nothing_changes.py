"""A recorded loader yields, raises, draws and saves what a bare one does: each loader in many configurations.

Configurations that only one loader has are in that loader's own tests.
"""

import copy
import gc
import io
import os
import pickle
import random
import sys
import tarfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from recorded_loops import outcome

np = pytest.importorskip("numpy", reason="NumPy is not installed")

ROWS = 48
os.environ.setdefault("HF_HUB_OFFLINE", "1")


def decode(item: Any) -> Any:
    return item + random.randrange(3) + int(np.random.randint(3))


def same(item: Any) -> Any:
    return item


def broken(item: Any) -> Any:
    if item == 29:
        raise ValueError("row 29")
    return item


def numbers(shards: list[int]) -> Iterator[dict[str, int]]:
    for shard in shards:
        for number in range(ROWS // 4):
            yield {"i": ROWS // 4 * shard + number}


class Loaders:
    """What the configurations need of one kind of loader."""

    #: Its module, and others that are needed.
    needs: tuple[str, ...] = ()
    #: Configurations that it cannot have.
    without: frozenset[str] = frozenset()

    def make(self, workers: int, shuffle: bool, fails: bool, idle: int) -> Any:
        raise NotImplementedError

    def prepare(self) -> None:
        """What a program does once."""

    def running(self, loader: Any) -> AbstractContextManager[Any]:
        """Around a loop, where the library wants that."""
        return nullcontext()

    def save(self, loader: Any, iterator: Any, taken: int) -> Any:
        return copy.deepcopy(loader.state_dict())

    def resume(self, loader: Any, state: Any) -> Iterator[Any]:
        loader.load_state_dict(copy.deepcopy(state))
        return iter(loader)


class Nodes(Loaders):
    needs = ("torchdata.nodes",)

    def make(self, workers: int, shuffle: bool, fails: bool, idle: int) -> Any:
        tn = sys.modules["torchdata.nodes"]
        rows = list(range(ROWS))
        if shuffle:
            random.Random(5).shuffle(rows)
        node = tn.IterableWrapper(rows)
        # Without workers in the loop, where the functions' random numbers have an order.
        function = broken if fails else abs if workers else decode
        for _ in range(idle):
            node = tn.Mapper(node, abs)
        if workers:
            node = tn.ParallelMapper(node, function, num_workers=workers)
        else:
            node = tn.Mapper(node, function)
        return tn.Loader(tn.Batcher(node, 3, drop_last=False))


class Grain(Loaders):
    needs = ("grain",)

    def make(self, workers: int, shuffle: bool, fails: bool, idle: int) -> Any:
        gr = sys.modules["grain"]
        dataset = gr.MapDataset.source(range(ROWS)).seed(3)
        if shuffle:
            dataset = dataset.shuffle()
        for function in (*[abs] * idle, broken if fails else abs if workers else decode):
            dataset = dataset.map(function)
        return dataset.to_iter_dataset(gr.ReadOptions(workers, 4 * workers)).batch(3, drop_remainder=False)

    def save(self, loader: Any, iterator: Any, taken: int) -> Any:
        return copy.deepcopy(iterator.get_state())

    def resume(self, loader: Any, state: Any) -> Iterator[Any]:
        iterator: Any = iter(loader)
        iterator.set_state(copy.deepcopy(state))
        return iterator


class Streams(Loaders):
    needs = ("datasets", "torch")

    def make(self, workers: int, shuffle: bool, fails: bool, idle: int) -> Any:
        hf, torch = sys.modules["datasets"], sys.modules["torch"]
        stream = hf.IterableDataset.from_generator(numbers, gen_kwargs={"shards": [0, 1, 2, 3]})
        if shuffle:
            stream = stream.shuffle(seed=4, buffer_size=16)
        function = broken if fails else abs if workers else decode
        for each in (*[abs] * idle, function):
            stream = stream.map(lambda row, each=each: {"i": each(row["i"])})
        if workers:
            return torch.utils.data.DataLoader(stream, batch_size=4, num_workers=workers)
        return stream


class Tars(Loaders):
    needs = ("webdataset", "torch")
    without = frozenset({"resume"})  # a pipeline has no state to save

    def make(self, workers: int, shuffle: bool, fails: bool, idle: int) -> Any:
        wds, torch = sys.modules["webdataset"], sys.modules["torch"]
        dataset = wds.WebDataset(self.shards(), shardshuffle=False).decode()
        if shuffle:
            dataset = dataset.shuffle(20, initial=10, seed=6)
        function = broken if fails else abs if workers else decode
        dataset = dataset.map(lambda sample: function(int(sample["cls"])))
        for _ in range(idle):
            dataset = dataset.map(abs)
        dataset = dataset.batched(3, list)
        if workers:
            return torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=workers)
        return dataset

    def shards(self) -> list[str]:
        folder = Path.cwd()
        for shard in range(4):
            with tarfile.open(folder / f"{shard}.tar", "w") as tar:
                for row in numbers([shard]):
                    text = str(row["i"]).encode()
                    entry = tarfile.TarInfo(f"{row['i']:04}.cls")
                    entry.size = len(text)
                    tar.addfile(entry, io.BytesIO(text))
        return [str(folder / f"{shard}.tar") for shard in range(4)]


class Pipelines(Loaders):
    needs = ("spdl.pipeline",)
    #: A pipeline has no state to save, and its user stops it.
    without = frozenset({"resume", "dropped half-way"})

    def make(self, workers: int, shuffle: bool, fails: bool, idle: int) -> Any:
        rows = list(range(ROWS))
        if shuffle:
            random.Random(5).shuffle(rows)
        builder = sys.modules["spdl.pipeline"].PipelineBuilder().add_source(rows)
        # In order of the input, which does not depend on the machine. No random numbers, because
        # its threads work ahead of the loop.
        builder.pipe(broken if fails else abs, concurrency=max(1, workers), output_order="input").aggregate(3)
        for _ in range(idle):
            builder.pipe(same)
        return builder.add_sink(2).build(num_threads=max(1, workers))

    def running(self, loader: Any) -> AbstractContextManager[Any]:
        return loader.auto_stop()  # type: ignore[no-any-return]


class Tensors(Loaders):
    needs = ("tensorflow",)

    def make(self, workers: int, shuffle: bool, fails: bool, idle: int) -> Any:
        tf = sys.modules["tensorflow"]
        dataset = tf.data.Dataset.range(ROWS)
        if shuffle:
            dataset = dataset.shuffle(16, seed=4)
        if fails:
            dataset = dataset.map(lambda row: tf.debugging.check_numerics(1 / (29 - row), "row 29"))
        for _ in range(idle + 1):
            dataset = dataset.map(lambda row: row + 1, num_parallel_calls=workers or None)
        return dataset.batch(3).map(lambda rows: rows, num_parallel_calls=workers or None)

    def save(self, loader: Any, iterator: Any, taken: int) -> Any:
        iterator = getattr(iterator, "__wrapped__", iterator)
        checkpoint = sys.modules["tensorflow"].train.Checkpoint(iterator=iterator)
        return checkpoint.save(str(Path.cwd() / f"state{random.random()}"))

    def resume(self, loader: Any, state: Any) -> Iterator[Any]:
        iterator: Any = iter(loader)
        bare = getattr(iterator, "__wrapped__", iterator)
        sys.modules["tensorflow"].train.Checkpoint(iterator=bare).restore(state)
        return iterator


class Callbacks(Loaders):
    needs = ("nvidia.dali",)
    #: Callbacks of Python cannot be saved with a pipeline, and a pipeline has one of them.
    without = frozenset({"resume", "a hundred nodes"})

    def make(self, workers: int, shuffle: bool, fails: bool, idle: int) -> Any:
        dali = sys.modules["nvidia.dali"]
        from nvidia.dali.plugin.base_iterator import _DaliBaseIterator

        rows = list(range(ROWS))
        if shuffle:
            random.Random(5).shuffle(rows)

        def read(sample: Any) -> Any:
            if sample.idx_in_epoch >= ROWS:
                raise StopIteration
            row = rows[sample.idx_in_epoch]
            function = broken if fails else abs if workers else decode
            return np.full((2,), function(row), np.float32)

        @dali.pipeline_def(batch_size=4, num_threads=max(1, workers), device_id=None, seed=7)
        def pipeline() -> Any:
            made = dali.fn.external_source(read, batch=False)
            return made + dali.fn.random.uniform(range=[0, 1]) if shuffle else made

        made = pipeline()
        made.build()

        class Batches(_DaliBaseIterator):  # type: ignore[misc]
            def __init__(self) -> None:
                super().__init__([made], size=-1, auto_reset=True)

            def __next__(self) -> Any:
                if self._first_batch is not None:
                    batch, self._first_batch = self._first_batch, None
                    return batch
                [[out]] = self._get_outputs()
                self._schedule_runs()
                return np.asarray(out).tolist()

            _first_batch = None

        batches = Batches()
        if batches._prepare_first_batch:
            batches._first_batch = next(batches)
        return batches


class Blocks(Loaders):
    needs = ("ray", "ray.data")
    #: An iteration has no state to save; Ray makes one task of many functions.
    without = frozenset({"resume", "a hundred nodes"})

    def prepare(self) -> None:
        ray = sys.modules["ray"]
        if not ray.is_initialized():
            ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # Ray's workers cannot import it
            ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
        ray.data.DataContext.get_current().execution_options.preserve_order = True

    def make(self, workers: int, shuffle: bool, fails: bool, idle: int) -> Any:
        ray = sys.modules["ray"]
        dataset = ray.data.range(ROWS, override_num_blocks=4)

        def rows(batch: dict[str, Any]) -> dict[str, Any]:
            return {"id": np.array([(broken if fails else abs)(int(row)) for row in batch["id"]])}

        dataset = dataset.map_batches(rows, batch_size=8, concurrency=max(1, workers))
        shuffled = {"local_shuffle_buffer_size": 16, "local_shuffle_seed": 3} if shuffle else {}
        return dataset.iter_batches(batch_size=8, **shuffled)


class Function(Loaders):
    """A function that makes a batch. Its state is the user's own, as are its workers."""

    without = frozenset({"resume", "workers", "a hundred nodes", "dropped half-way", "pickled"})

    def make(self, workers: int, shuffle: bool, fails: bool, idle: int) -> Any:
        left = iter(random.Random(5).sample(range(ROWS), ROWS) if shuffle else range(ROWS))

        def get_batch() -> Any:
            row = next(left, None)
            return None if row is None else (broken if fails else decode)(row)

        return get_batch


LOADERS: dict[str, Loaders] = {
    "torchdata": Nodes(),
    "grain": Grain(),
    "datasets": Streams(),
    "webdataset": Tars(),
    "spdl": Pipelines(),
    "tf.data": Tensors(),
    "dali": Callbacks(),
    "ray": Blocks(),
    "function": Function(),
}

CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "workers": {"workers": 2},
    "shuffle": {"shuffle": True},
    "resume": {"shuffle": True},
    "early break": {},
    "error in a map": {"fails": True},
    "two at once": {"shuffle": True},
    "a hundred nodes": {"idle": 100},
    "from two threads": {"workers": 1},
    "dropped half-way": {"workers": 1},
    "copied": {"shuffle": True},
    "pickled": {"shuffle": True},
}


@dataclass
class Play:
    """One configuration of a loader, bare or recorded: everything that the training loop can see."""

    loaders: Loaders
    configuration: str
    wrap: Callable[[Any], Any]

    def seen(self) -> list[str]:
        random.seed(8)
        np.random.seed(8)
        if "torch" in sys.modules:
            sys.modules["torch"].manual_seed(8)
        played = {
            "resume": self._resume,
            "early break": self._leave_early,
            "two at once": self._two,
            "from two threads": self._two_threads,
            "dropped half-way": self._drop,
            "copied": lambda: self._another(copy.deepcopy),
            "pickled": lambda: self._another(lambda loader: pickle.loads(pickle.dumps(loader))),
        }.get(self.configuration, self._epochs)
        seen = [repr(each) for each in played()]
        seen += [repr(random.getstate()), repr(np.random.get_state())]  # what users draw from
        if "torch" in sys.modules:
            seen.append(repr(sys.modules["torch"].get_rng_state()))
        return seen

    def _made(self) -> Any:
        options = {
            "workers": 0,
            "shuffle": False,
            "fails": False,
            "idle": 0,
            **CONFIGURATIONS[self.configuration],
        }
        return self.wrap(self.loaders.make(**options))

    def _loop(self, loader: Any) -> Iterator[Any]:
        return iter(loader, None) if isinstance(self.loaders, Function) else iter(loader)

    def _epochs(self) -> Iterator[Any]:
        loader = self._made()
        with self.loaders.running(loader):
            for _ in range(2):
                items, error = outcome(lambda: self._loop(loader))
                yield items, error.partition(" [Op:")[0]

    def _leave_early(self) -> Iterator[Any]:
        loader = self._made()
        with self.loaders.running(loader):
            items = self._loop(loader)
            yield [next(items) for _ in range(3)]
            del items
            yield outcome(lambda: self._loop(loader))

    def _two(self) -> Iterator[Any]:
        first, second = self._made(), self._made()
        with self.loaders.running(first), self.loaders.running(second):
            yield from zip(self._loop(first), self._loop(second), strict=True)

    def _two_threads(self) -> Iterator[Any]:
        """Each has a loader of its own, which the main thread made; they take turns, as both may draw."""
        first, second = self._made(), self._made()
        with (
            self.loaders.running(first),
            self.loaders.running(second),
            ThreadPoolExecutor(1) as one,
            ThreadPoolExecutor(1) as other,
        ):
            pairs = ((one, first), (other, second))
            loops = [(thread, thread.submit(self._loop, loader).result()) for thread, loader in pairs]
            while loops:
                items = [thread.submit(next, loop, None).result() for thread, loop in loops]
                yield items
                loops = [loop for loop, item in zip(loops, items, strict=True) if item is not None]

    def _drop(self) -> Iterator[Any]:
        """What is left of the loader's threads once nobody has it."""
        before = set(threading.enumerate())
        items: Any = self._loop(self._made())
        yield [next(items) for _ in range(2)]
        del items
        until = time.monotonic() + 3
        while time.monotonic() < until:
            gc.collect()
            left = {each for each in threading.enumerate() if "headrace" not in each.name} - before
            if not left:
                break
            time.sleep(0.02)
        yield len(left)

    def _another(self, copied: Callable[[Any], Any]) -> Iterator[Any]:
        loader = self._made()
        try:
            other = copied(loader)
        except Exception:
            yield "it cannot be copied"
            return
        for each in (other, loader):
            with self.loaders.running(each):
                yield outcome(lambda each=each: self._loop(each))

    def _resume(self) -> Iterator[Any]:
        loader, resumed = self._made(), self._made()
        items = self._loop(loader)
        yield [next(items) for _ in range(5)]
        state = self.loaders.save(loader, items, 5)
        yield "a file" if isinstance(state, str) else state
        yield list(items)
        yield list(self.loaders.resume(resumed, state))


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    yield
    if "ray" in sys.modules:
        sys.modules["ray"].shutdown()


@pytest.mark.filterwarnings("ignore:coroutine:RuntimeWarning")  # of a pipeline that was never started
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("configuration", CONFIGURATIONS)
@pytest.mark.parametrize("library", LOADERS)
def test_a_recorded_loader_is_as_a_bare_one(
    library: str, configuration: str, request: pytest.FixtureRequest
) -> None:
    loaders = LOADERS[library]
    for module in loaders.needs:
        pytest.importorskip(module, reason=f"{module} is not installed")
    if configuration in loaders.without:
        pytest.skip(f"{library} has no such configuration")
    if "torch" in loaders.needs:
        request.getfixturevalue("short_joins")
    loaders.prepare()
    bare = Play(loaders, configuration, lambda loader: loader).seen()
    reports: list[Callable[[], Any]] = []

    def wrap(loader: Any) -> Any:
        recorded: Any = hr.wrap(loader)
        if configuration != "dropped half-way":
            reports.append(recorded.report)
        return recorded

    request.getfixturevalue("run")
    assert Play(loaders, configuration, wrap).seen() == bare
    if configuration not in ("copied", "pickled"):
        assert all(report().profile.sink.steps > 0 for report in reports)
