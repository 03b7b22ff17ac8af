"""Labelled cases in loaders beside PyTorch's, drawn from a seed: is the verdict right?

    python benchmarks/loaders/draw_cases.py [--seed 1] [--rounds 3] [--only datasets] [--kinds map step]

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
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from cases import CASES, CASES_OF, SAMPLES, SHARDS, Case, rows
from more_loaders import blocks, dali, functions, ray_data
from plain_python import SCRIPTS, recorded_script

import headrace as hr


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


def spdl(case: Case) -> tuple[Any, str]:
    from spdl.pipeline import PipelineBuilder

    builder = PipelineBuilder().add_source(Rows(case.source_s))
    for function in case.idle_functions():
        builder.pipe(function)
    builder.pipe(case.function(in_threads=True), concurrency=case.workers)
    builder.aggregate(case.batch_size).pipe(case.collate()).add_sink(2)
    return builder.build(num_threads=case.workers + case.idle + 2), "Rows"


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

    def native(item: Any) -> Any:  # 10 million numbers a second
        count = int(1e7 * case.seconds)
        return tf.cast(tf.sort(tf.random.stateless_uniform([count], [item, 0]))[0], tf.int64) + item

    native.__name__ = native.__qualname__ = case.name
    for _ in range(case.idle):
        dataset = dataset.map(lambda item: item + 1)
    work = native if case.kind == "cpu" else python(case.function())
    dataset = dataset.map(work, num_parallel_calls=case.workers).batch(case.batch_size)
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
    """Its source is the download of shards: each takes longer, in the loader's own thread, when it is new."""
    import streaming as st
    import torch

    folder = Path(tempfile.mkdtemp())
    with st.MDSWriter(out=str(folder / "remote"), columns={"x": "int"}, size_limit=1 << 9) as writer:
        for number in range(SHARDS * SAMPLES):
            writer.write({"x": number})

    seen: set[int] = set()

    class Samples(st.StreamingDataset):  # type: ignore[misc, name-defined]
        def __getitem__(self, index: int) -> Any:
            return case.function()(super().__getitem__(index)["x"])

        def prepare_shard(self, shard_id: int, blocking: bool = True) -> None:
            if case.source_s and not blocking and shard_id not in seen:
                seen.add(shard_id)
                time.sleep(case.source_s * self.shards[shard_id].samples)
            super().prepare_shard(shard_id, blocking)

    Samples.__name__ = case.name
    dataset = Samples(local=str(folder / "local"), remote=str(folder / "remote"), batch_size=case.batch_size)
    loader = torch.utils.data.DataLoader(
        dataset, batch_size=case.batch_size, num_workers=case.workers, collate_fn=case.collate()
    )
    return loader, "download"


LOADERS: dict[str, Callable[[Case], tuple[Any, str]]] = {
    "ray": ray_data,
    "dali": dali,
    "get_next": blocks,
    "function": functions,
    "spdl": spdl,
    "tf.data": tfdata,
    "streaming": streaming,
    "grain": grain,
    "torchdata": torchdata,
    "datasets": datasets,
    "webdataset": webdataset,
}


def drawn(loader: str, kind: str, rng: random.Random) -> Case:
    return Case(
        loader=loader,
        kind=kind,
        seconds=rng.uniform(0.002, 0.005) * (10 if loader == "ray" else 1),
        batch_size=rng.choice([4, 8]),
        idle=rng.randrange(4),
        name=f"{rng.choice(['decode', 'crop', 'parse'])}_{rng.randrange(1000)}",
    )


def is_right(case: Case, source: str, report: Any) -> bool:
    if report is None:  # nothing was found: it hardly waited
        return case.kind == "step"
    diagnosis = report.diagnosis
    if case.kind == "step":
        return bool(diagnosis.kind == "not_input_bound")
    operator = {"source": source, "batch": f"collate_{case.name}"}.get(case.kind, case.name)
    cause = diagnosis.cause == "gil_contention" or case.kind != "lock"
    if case.loader == "dali" and case.kind in ("map", "cpu"):
        operator = "DALI"
    if case.loader == "ray":
        return operator in (diagnosis.operator or "")  # Ray adds words of its own
    return bool(diagnosis.operator == operator and cause)


def recorded(case: Case) -> tuple[str, Any]:
    """The source's name, and the report of a loop over what was drawn; None: no loop was found."""
    run = tempfile.mkdtemp()  # one run has no room for the stages of all
    if case.loader in SCRIPTS:
        return "read", recorded_script(case, run)
    if case.loader in ("get_next", "function"):
        with hr.session(run):
            bare, source = LOADERS[case.loader](case)
            for _ in bare:
                time.sleep(case.step_s)
            return source, hr.get_next("blocks").report() if case.loader == "get_next" else bare.report()
    bare, source = LOADERS[case.loader](case)
    loader = hr.wrap(bare, run=run)
    with loader.auto_stop() if case.loader == "spdl" else nullcontext():
        for _ in loader:
            time.sleep(case.step_s)
    return source, loader.report()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="loaders whose names begin so")
    parser.add_argument("--kinds", nargs="+", default=CASES, choices=CASES)
    parser.add_argument("--wrong", type=Path, help="a folder for the reports of wrong verdicts")
    options = parser.parse_args()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    logging.getLogger("headrace").setLevel(logging.ERROR)
    rng = random.Random(options.seed)
    names = [name for name in (*LOADERS, *SCRIPTS) if name.startswith(options.only)]
    right = {name: [0, 0] for name in names}
    for kind in tuple(options.kinds) * options.rounds:
        for name, count in right.items():
            if kind not in CASES_OF.get(name, CASES):
                continue
            case = drawn(name, kind, rng)
            source, report = recorded(case)
            good = is_right(case, source, report)
            count[0] += good
            count[1] += 1
            if not good:
                found = report and report.diagnosis
                said = found and f"{found.kind} {found.operator} {found.cause}"
                print(f"{name}: {case}: {said}", flush=True)
                if options.wrong and report is not None:
                    options.wrong.mkdir(parents=True, exist_ok=True)
                    path = options.wrong / f"{name}_{kind}_{options.seed}_{count[1]}.json"
                    path.write_text(report.to_json(), encoding="utf-8")
    for name, (good, all_of) in right.items():
        print(f"{name:12} {good} of {all_of} right")
    print(json.dumps({"seed": options.seed, "right": right}))


if __name__ == "__main__":
    main()
