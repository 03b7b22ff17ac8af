"""Labelled cases in loaders beside PyTorch's, drawn from a seed: is the verdict right?

    python benchmarks/loaders/draw_cases.py [--seed 1] [--rounds 3] [--only datasets]

source   a slow source                          map    a slow function, one worker
cpu      a function that computes, two workers  batch  a slow collate function
step     a slow training step: no alarm         lock   a function that computes in four threads

Times, batch sizes, names and the number of idle functions around the slow one are drawn. A verdict is right
if it names the operator (step: if it says that the loop is not input-bound); lock: and the cause.
"""

import argparse
import io
import json
import logging
import os
import random
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import headrace as hr

SHARDS = 4
SAMPLES = 60
CASES = ("source", "map", "cpu", "batch", "step", "lock")


def burn(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        sum(range(50))


def rows(shards: list[int], seconds: float) -> Iterator[dict[str, int]]:
    for shard in shards:
        for number in range(SAMPLES):
            if seconds:
                time.sleep(seconds)
            yield {"i": SAMPLES * shard + number}


@dataclass
class Case:
    """One drawn case: what is slow, and by how much."""

    kind: str
    seconds: float
    batch_size: int
    idle: int
    name: str

    @property
    def workers(self) -> int:
        return {"cpu": 2, "lock": 4}.get(self.kind, 1)

    @property
    def source_s(self) -> float:
        return self.seconds if self.kind == "source" else 0.0

    @property
    def step_s(self) -> float:
        return self.batch_size * self.seconds + 0.02 if self.kind == "step" else 0.001

    def function(self) -> Callable[[Any], Any]:
        def work(item: Any) -> Any:
            if self.kind == "map":
                time.sleep(self.seconds)
            elif self.kind in ("cpu", "lock"):
                burn(self.seconds)
            return item

        work.__name__ = work.__qualname__ = self.name
        return work

    def collate(self) -> Callable[[Any], Any]:
        def collate(items: Any) -> Any:
            if self.kind == "batch":
                time.sleep(self.batch_size * self.seconds)
            return items

        collate.__name__ = collate.__qualname__ = f"collate_{self.name}"
        return collate

    def idle_functions(self) -> list[Callable[[Any], Any]]:
        def idle(item: Any) -> Any:
            return item

        return [idle] * self.idle


class Rows:
    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __iter__(self) -> Iterator[Any]:
        return rows(list(range(SHARDS)), self.seconds)


def torchdata(case: Case) -> tuple[Any, str]:
    import torchdata.nodes as tn

    node = tn.IterableWrapper(Rows(case.source_s))
    for function in case.idle_functions():
        node = tn.Mapper(node, function)
    where = {"method": "process", "multiprocessing_context": "fork"} if case.kind == "cpu" else {}
    node = tn.ParallelMapper(node, case.function(), num_workers=case.workers, **where)
    node = tn.Mapper(tn.Batcher(node, case.batch_size), case.collate())
    return tn.Loader(tn.Prefetcher(node, 2)), "Rows"


def datasets(case: Case) -> tuple[Any, str]:
    import datasets as hf
    import torch

    arguments = {"shards": list(range(SHARDS)), "seconds": case.source_s}
    stream = hf.IterableDataset.from_generator(rows, gen_kwargs=arguments)
    for function in (*case.idle_functions(), case.function()):
        stream = stream.map(function)
    loader = torch.utils.data.DataLoader(
        stream, batch_size=case.batch_size, num_workers=case.workers, collate_fn=case.collate()
    )
    return loader, "rows"


def webdataset(case: Case) -> tuple[Any, str]:
    import torch
    import webdataset as wds

    def reads(samples: Iterator[Any]) -> Iterator[Any]:
        for sample in samples:
            if case.source_s:
                time.sleep(case.source_s)
            yield sample

    pipeline = wds.DataPipeline(
        wds.SimpleShardList(shards()), wds.split_by_worker, wds.tarfile_to_samples(), reads
    )
    for function in (*case.idle_functions(), case.function()):
        pipeline.append(wds.map(function))
    pipeline.append(wds.batched(case.batch_size, case.collate()))
    return torch.utils.data.DataLoader(pipeline, batch_size=None, num_workers=case.workers), "reads"


_shards: list[str] = []


def shards() -> list[str]:
    if not _shards:
        folder = Path(tempfile.mkdtemp())
        for shard in range(SHARDS):
            path = folder / f"{shard}.tar"
            with tarfile.open(path, "w") as tar:
                for number in range(SAMPLES):
                    entry = tarfile.TarInfo(f"{shard}{number:04}.cls")
                    entry.size = 1
                    tar.addfile(entry, io.BytesIO(b"1"))
            _shards.append(str(path))
    return _shards


def tfdata(case: Case) -> tuple[Any, str]:
    import tensorflow as tf

    def python(function: Any) -> Any:
        def call(item: Any) -> Any:
            return tf.numpy_function(function, [item], tf.int64)

        call.__name__ = call.__qualname__ = function.__name__
        return call

    def numbers() -> Iterator[int]:
        for row in rows(list(range(SHARDS)), case.source_s):
            yield row["i"]

    dataset = tf.data.Dataset.from_generator(numbers, output_signature=tf.TensorSpec((), tf.int64))
    for _ in range(case.idle):
        dataset = dataset.map(lambda item: item + 1)
    dataset = dataset.map(python(case.function()), num_parallel_calls=case.workers).batch(case.batch_size)
    return dataset.map(python(case.collate())).prefetch(2), "generator"


class Numbers:
    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __len__(self) -> int:
        return SHARDS * SAMPLES

    def __getitem__(self, index: int) -> int:
        if self.seconds:
            time.sleep(self.seconds)
        return index


def grain(case: Case) -> tuple[Any, str]:
    import grain as gr

    dataset = gr.MapDataset.source(Numbers(case.source_s))
    for function in (*case.idle_functions(), case.function()):
        dataset = dataset.map(function)
    threads = 0 if case.kind == "cpu" else case.workers
    dataset = dataset.to_iter_dataset(gr.ReadOptions(threads, 2 * case.batch_size if threads else 0))
    dataset = dataset.batch(case.batch_size, batch_fn=case.collate())
    if case.kind == "cpu":
        return dataset.mp_prefetch(gr.MultiprocessingOptions(case.workers, 2)), "Numbers"
    return gr.experimental.ThreadPrefetchIterDataset(dataset, prefetch_buffer_size=2), "Numbers"


def streaming(case: Case) -> tuple[Any, str]:
    """Its source is the download of shards, which is slowed by the sleep of the loader's own thread."""
    import streaming as st
    import torch

    folder = Path(tempfile.mkdtemp())
    with st.MDSWriter(out=str(folder / "remote"), columns={"x": "int"}, size_limit=1 << 9) as writer:
        for number in range(SHARDS * SAMPLES):
            writer.write({"x": number})

    class Samples(st.StreamingDataset):  # type: ignore[misc, name-defined]
        def __getitem__(self, index: int) -> Any:
            return case.function()(super().__getitem__(index)["x"])

        def prepare_shard(self, shard_id: int, blocking: bool = True) -> None:
            if case.source_s and not blocking:
                time.sleep(case.source_s)
            super().prepare_shard(shard_id, blocking)

    Samples.__name__ = case.name
    dataset = Samples(local=str(folder / "local"), remote=str(folder / "remote"), batch_size=case.batch_size)
    loader = torch.utils.data.DataLoader(
        dataset, batch_size=case.batch_size, num_workers=case.workers, collate_fn=case.collate()
    )
    return loader, "download"


LOADERS = {
    "tf.data": tfdata,
    "streaming": streaming,
    "grain": grain,
    "torchdata": torchdata,
    "datasets": datasets,
    "webdataset": webdataset,
}


def drawn(kind: str, rng: random.Random) -> Case:
    return Case(
        kind=kind,
        seconds=rng.uniform(0.002, 0.005),
        batch_size=rng.choice([4, 8]),
        idle=rng.randrange(4),
        name=f"{rng.choice(['decode', 'crop', 'parse'])}_{rng.randrange(1000)}",
    )


def is_right(case: Case, source: str, diagnosis: Any) -> bool:
    if case.kind == "step":
        return bool(diagnosis.kind == "not_input_bound")
    operator = {"source": source, "batch": f"collate_{case.name}"}.get(case.kind, case.name)
    cause = diagnosis.cause == "gil_contention" or case.kind != "lock"
    return bool(diagnosis.operator == operator and cause)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="loaders whose names begin so")
    options = parser.parse_args()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    logging.getLogger("headrace").setLevel(logging.ERROR)
    rng = random.Random(options.seed)
    right = {name: [0, 0] for name in LOADERS if name.startswith(options.only)}
    for kind in CASES * options.rounds:
        for name, count in right.items():
            if kind == "lock" and name not in ("torchdata", "grain"):  # the others work in processes
                continue
            if kind == "cpu" and name == "tf.data":  # its Python functions share one interpreter lock
                continue
            case = drawn(kind, rng)
            bare, source = LOADERS[name](case)
            loader = hr.wrap(bare, run=tempfile.mkdtemp())  # one run has no room for the stages of all
            for _ in loader:
                time.sleep(case.step_s)
            diagnosis = loader.report().diagnosis
            good = is_right(case, source, diagnosis)
            count[0] += good
            count[1] += 1
            if not good:
                print(f"{name}: {case}: {diagnosis.kind} {diagnosis.operator} {diagnosis.cause}")
    for name, (good, all_of) in right.items():
        print(f"{name:12} {good} of {all_of} right")
    print(json.dumps({"seed": options.seed, "right": right}))


if __name__ == "__main__":
    main()
