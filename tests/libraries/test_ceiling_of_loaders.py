"""``headrace run --ceiling`` with loaders of other libraries, in unchanged scripts."""

import re
from typing import Any

import pytest

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
    ("library", "source"),
    [
        pytest.param("torchdata.nodes", NODES, id="nodes"),
        pytest.param("spdl.pipeline", SPDL, id="spdl"),
        pytest.param("grain", GRAIN, id="grain"),
        pytest.param("mindspore", MINDSPORE, id="mindspore"),
    ],
)
def test_ceiling_of_a_loop(scripts: Any, library: str, source: str) -> None:
    pytest.importorskip(library)
    script = scripts.write((SLOW + source).replace("range(4000)", "range(200)"))
    outcome = scripts.run("--ceiling", script)
    assert outcome.status == 0, outcome.err
    found = re.search(r"CEILING .* a step over cached batches takes ([0-9.]+) ms", outcome.said)
    assert found, outcome.said
    assert float(found[1]) >= 3
