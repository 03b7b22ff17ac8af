"""What recording a loader beside PyTorch's costs: CPU time of the process for each item, idle stages.

    python benchmarks/loaders/bench_per_item.py [--items 20000] [--rounds 7] [--only datasets]

bare     the loader alone
wrapped  recorded by headrace
node     the difference, divided by the nodes or stages that an item goes through
"""

import argparse
import io
import json
import os
import statistics
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import headrace as hr


def same(item: Any) -> Any:
    return item


def nodes(items: int) -> Any:
    """Everything in the loop: threads would hide the cost."""
    import torchdata.nodes as tn

    node = tn.IterableWrapper(range(items))
    for _ in range(3):
        node = tn.Mapper(node, same)
    return tn.Loader(node)


def threads(items: int) -> Any:
    import torchdata.nodes as tn

    return tn.Loader(tn.Prefetcher(tn.ParallelMapper(tn.IterableWrapper(range(items)), same, 1), 4))


def rows(count: int) -> Iterator[dict[str, int]]:
    for number in range(count):
        yield {"i": number}


def datasets(items: int) -> Any:
    import datasets as hf

    stream = hf.IterableDataset.from_generator(rows, gen_kwargs={"count": items})
    for _ in range(3):
        stream = stream.map(same)
    return stream


def webdataset(items: int) -> Any:
    import webdataset as wds

    pipeline = wds.DataPipeline(wds.SimpleShardList([shard_of(items)]), wds.tarfile_to_samples())
    for _ in range(3):
        pipeline.append(wds.map(same))
    return pipeline


def grain(items: int) -> Any:
    """Everything in the loop: a source, three maps of a MapDataset."""
    import grain as gr

    dataset = gr.MapDataset.source(range(items))
    for _ in range(3):
        dataset = dataset.map(same)
    return dataset.to_iter_dataset(gr.ReadOptions(0, 0))


def grain_timing(items: int) -> Any:
    """With Grain's own statistics."""
    import grain as gr

    options = gr.experimental.DatasetOptions(
        execution_tracking_mode=gr.experimental.ExecutionTrackingMode.STAGE_TIMING
    )
    return gr.experimental.WithOptionsIterDataset(grain(items), options)


def streaming(items: int) -> Any:
    """Alone: a thread that finds every shard there, and a loop that decodes."""
    import streaming as st

    folder = Path(tempfile.mkdtemp())
    with st.MDSWriter(out=str(folder), columns={"x": "int"}) as writer:
        for number in range(items):
            writer.write({"x": number})
    return st.StreamingDataset(local=str(folder), batch_size=8)


def tfdata(items: int) -> Any:
    import tensorflow as tf

    dataset = tf.data.Dataset.range(items)
    for _ in range(3):
        dataset = dataset.map(abs, num_parallel_calls=2)
    return dataset.prefetch(2)


_shards: dict[int, str] = {}


def shard_of(items: int) -> str:
    if items not in _shards:
        path = Path(tempfile.mkdtemp()) / "shard.tar"
        with tarfile.open(path, "w") as tar:
            for number in range(items):
                entry = tarfile.TarInfo(f"{number:08}.cls")
                entry.size = 1
                tar.addfile(entry, io.BytesIO(b"1"))
        _shards[items] = str(path)
    return _shards[items]


#: The loader, and how many timed nodes an item goes through.
LOADERS: dict[str, tuple[Callable[[int], Any], int]] = {
    "torchdata in the loop": (nodes, 4),
    "torchdata in threads": (threads, 4),
    "datasets": (datasets, 4),
    "webdataset": (webdataset, 5),
    "grain in the loop": (grain, 4),
    "tf.data": (tfdata, 5),
    "streaming": (streaming, 2),
    "grain, own statistics": (grain_timing, 4),
}


def cpu_per_item(loader: Any) -> float:
    iterator = iter(loader)
    next(iterator)
    count = 0
    began = time.process_time()
    for _ in iterator:
        count += 1
    return (time.process_time() - began) / count


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--items", type=int, default=20000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="", help="loaders whose names begin so")
    options = parser.parse_args()
    os.environ.setdefault("HEADRACE_DIR", tempfile.mkdtemp())
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    results = {}
    for name, (make, stages) in LOADERS.items():
        if not name.startswith(options.only):
            continue
        try:
            make(10)
        except ImportError as error:
            print(f"  {name}: not measured ({error})")
            continue
        bare, wrapped = [], []
        # One after the other in each round, so that a change of the machine's speed meets both.
        for _ in range(options.rounds):
            bare.append(cpu_per_item(make(options.items)))
            wrapped.append(cpu_per_item(hr.wrap(make(options.items))))
        alone, recorded = statistics.median(bare), statistics.median(wrapped)
        each = (recorded - alone) / stages
        print(
            f"{name:22} bare {1e6 * alone:6.2f} us  wrapped {1e6 * recorded:6.2f} us  "
            f"{recorded / alone:.2f} x  {1e6 * each:5.2f} us a node"
        )
        results[name] = {"bare_us": [1e6 * t for t in bare], "wrapped_us": [1e6 * t for t in wrapped]}
    print(json.dumps({"items": options.items, "loaders": results}))


if __name__ == "__main__":
    main()
