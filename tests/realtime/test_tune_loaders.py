"""``headrace tune`` with loaders of other libraries, in unchanged scripts."""

import re
import time
from collections.abc import Callable
from typing import Any

import pytest

import headrace as hr

SLOW = """
    import time

    def slow(item):
        time.sleep(0.012)
        return item
"""

NODES = """
    from torchdata.nodes import IterableWrapper, Loader, ParallelMapper
    node = ParallelMapper(IterableWrapper(range(4000)), slow, num_workers=1, method="thread")
    for item in Loader(node):
        time.sleep(0.003)
"""

SPDL = """
    from spdl.pipeline import PipelineBuilder
    build = PipelineBuilder().add_source(range(4000)).pipe(slow, name="slow").add_sink(3)
    pipeline = build.build(num_threads=8)
    with pipeline.auto_stop():
        for item in pipeline:
            time.sleep(0.003)
"""

GRAIN = """
    import grain
    options = grain.ReadOptions(num_threads=1, prefetch_buffer_size=4)
    for item in grain.MapDataset.range(4000).map(slow).to_iter_dataset(options):
        time.sleep(0.003)
"""

#: Its worker processes import the script.
GRAIN_LOADER = """
    import grain

    class Slow(grain.transforms.Map):
        def map(self, item):
            return slow(item)

    if __name__ == "__main__":
        loader = grain.DataLoader(
            data_source=grain.sources.RangeDataSource(0, 4000, 1),
            sampler=grain.samplers.IndexSampler(4000, shard_options=grain.sharding.NoSharding()),
            operations=[Slow()],
        )
        for item in loader:
            time.sleep(0.003)
"""

MINDSPORE = """
    import numpy
    import mindspore.dataset as ds
    rows = [numpy.array([number]) for number in range(4000)]
    data = ds.GeneratorDataset(rows, ["number"], shuffle=False)
    data = data.map(slow, ["number"], num_parallel_workers=1)
    for row in data.create_dict_iterator(num_epochs=1):
        time.sleep(0.003)
"""


@pytest.mark.parametrize(
    ("library", "source", "change"),
    [
        pytest.param("torchdata.nodes", NODES, r"slow.num_workers=(\d+), .* ParallelMapper", id="nodes"),
        pytest.param("spdl.pipeline", SPDL, r"slow.concurrency=(\d+), .* .pipe\(\)", id="spdl"),
        pytest.param("grain", GRAIN, r"num_threads=(\d+), .* ReadOptions", id="grain"),
        pytest.param("grain", GRAIN_LOADER, r"worker_count=(\d+), .* grain.DataLoader", id="grain-loader"),
        pytest.param("mindspore", MINDSPORE, r"num_parallel_workers=(\d+), .* .map\(\)", id="mindspore"),
    ],
)
def test_tune_finds_more_workers(tune: Callable[..., Any], library: str, source: str, change: str) -> None:
    pytest.importorskip(library)
    outcome = tune(SLOW + source, "--budget", "40s")
    assert outcome.status == 0, outcome.err
    said = outcome.out.decode()
    found = re.search("change   .*" + change, said)
    assert found, said + outcome.err
    assert int(found[1]) > 1
    assert "winner, again" in said


def test_only_parameters_that_the_function_takes() -> None:
    torch_data = pytest.importorskip("torch.utils.data")
    asked: list[dict[str, Any]] = []

    class Slow(torch_data.Dataset):  # type: ignore[misc, name-defined]
        def __len__(self) -> int:
            return 400

        def __getitem__(self, index: int) -> int:
            time.sleep(0.005)
            return index

    def make(num_workers: int = 0) -> Any:
        asked.append({"num_workers": num_workers})
        return torch_data.DataLoader(Slow(), batch_size=4, num_workers=num_workers)

    result = hr.tune(make, lambda _: time.sleep(0.004), steps=40, budget_s=60)
    assert asked[0] == {"num_workers": 0}
    assert result.best == {"num_workers": result.changed["num_workers"]}
    assert result.changed["num_workers"] > 0
    assert result.best_step_s < 0.8 * result.start_step_s
