"""Parameters that advice names exist in the release of the library that is installed."""

import inspect
from typing import Any

import pytest

#: Module, callable in it, parameters that the adapter's advice names.
ADVISED = [
    ("ray.data", "Dataset.map_batches", {"compute", "num_cpus"}),
    ("ray.data", "Dataset.map", {"compute", "num_cpus"}),
    ("ray.data", "Dataset.flat_map", {"compute", "num_cpus"}),
    ("ray.data", "Dataset.filter", {"compute", "num_cpus"}),
    ("ray.data", "Dataset.iter_batches", {"batch_size", "prefetch_batches"}),
    ("ray.data", "TaskPoolStrategy", {"size"}),
    ("ray.data", "read_parquet", {"concurrency"}),
    ("spdl.pipeline", "PipelineBuilder.pipe", {"concurrency", "executor", "output_order"}),
    ("spdl.pipeline", "PipelineBuilder.add_sink", {"buffer_size"}),
    ("spdl.pipeline", "PipelineBuilder.build", {"num_threads"}),
    ("datasets", "IterableDataset.shuffle", {"buffer_size"}),
    ("datasets", "Dataset.to_iterable_dataset", {"num_shards"}),
    ("grain", "ReadOptions", {"num_threads", "prefetch_buffer_size"}),
    ("grain", "MultiprocessingOptions", {"num_workers", "per_worker_buffer_size"}),
    ("grain", "MapDataset.to_iter_dataset", {"read_options"}),
    ("grain", "IterDataset.mp_prefetch", {"options"}),
    ("torchdata.nodes", "ParallelMapper", {"num_workers", "method", "in_order", "max_concurrent"}),
    ("torchdata.nodes", "Prefetcher", {"prefetch_factor"}),
    (
        "torch.utils.data",
        "DataLoader",
        {"num_workers", "prefetch_factor", "persistent_workers", "batch_size"},
    ),
    (
        "transformers",
        "TrainingArguments",
        {"dataloader_num_workers", "dataloader_prefetch_factor", "dataloader_persistent_workers"},
    ),
]


@pytest.mark.parametrize(("module", "name", "parameters"), ADVISED, ids=[f"{a}.{b}" for a, b, _ in ADVISED])
def test_the_library_has_the_parameter(module: str, name: str, parameters: set[str]) -> None:
    found: Any = pytest.importorskip(module)
    for part in name.split("."):
        found = getattr(found, part)
    signature = inspect.signature(found)
    assert parameters <= set(signature.parameters), str(signature)
