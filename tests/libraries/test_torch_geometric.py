"""torch_geometric's loaders: sampling in workers, features in the loop, small graphs collated."""

import time
from typing import Any

import pytest

import headrace as hr
from recorded_loops import operators, played
from stored_reports import StoredReports

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed")
data: Any = pytest.importorskip("torch_geometric.data", reason="torch_geometric is not installed")
loader: Any = pytest.importorskip("torch_geometric.loader", reason="torch_geometric is not installed")
sampler: Any = pytest.importorskip("torch_geometric.sampler", reason="torch_geometric is not installed")

pytestmark = pytest.mark.usefixtures("run")

NODES = 640


class Walks(sampler.BaseSampler):  # type: ignore[misc]
    """In the place of the library's own samplers, whose compiled half is not a wheel everywhere."""

    edge_permutation = None

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def sample_from_nodes(self, index: Any, **_: Any) -> Any:
        time.sleep(self.seconds)
        none = torch.zeros(0, dtype=torch.long)
        return sampler.SamplerOutput(index.node, none, none, None, metadata=(index.input_id, None))

    def sample_from_edges(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


class Features:
    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __call__(self, graph: Any) -> Any:
        time.sleep(self.seconds)
        return graph


def made(workers: int, sample_s: float, features_s: float, **others: Any) -> Any:
    edges = torch.zeros(2, 0, dtype=torch.long)
    graph = data.Data(x=torch.arange(NODES).float().unsqueeze(1), edge_index=edges)
    others = {"batch_size": 16, "shuffle": True, "num_workers": workers, "filter_per_worker": False} | others
    return loader.NodeLoader(graph, Walks(sample_s), transform=Features(features_s), **others)


def values(bare: Any) -> list[Any]:
    torch.manual_seed(2)
    return [batch.x.flatten().tolist() for _ in range(2) for batch in bare]


@pytest.mark.parametrize("others", [{}, {"filter_per_worker": True}, {"persistent_workers": True}])
@pytest.mark.parametrize("workers", [0, 2])
def test_batches_are_those_of_the_bare_loader(workers: int, others: dict[str, Any]) -> None:
    if workers == 0 and "persistent_workers" in others:
        pytest.skip("needs workers")
    wrapped: Any = hr.wrap(made(workers, 0, 0, **others))
    assert values(wrapped) == values(made(workers, 0, 0, **others))
    assert wrapped.report().profile.sink.steps == 80


def test_features_that_are_fetched_in_the_loop_are_part_of_the_wait(stored: StoredReports) -> None:
    report = stored(lambda: played(made(1, 0.002, 0.02), 0.004))
    assert [*operators(report)] == ["filter_fn", "range", "collate_fn", "handoff"]
    assert (report.diagnosis.operator, report.diagnosis.cause) == ("filter_fn", "no_overlap"), str(report)
    assert "in the workers" in report.diagnosis.advice[0].text
    assert report.diagnosis.advice[0].predicted_step_s < 0.7 * report.profile.sink.step_s


def test_sampling_is_the_workers(stored: StoredReports) -> None:
    report = stored(lambda: played(made(1, 0.02, 0.001), 0.004))
    assert (report.diagnosis.operator, report.diagnosis.cause) == ("collate_fn", "too_few_workers"), str(
        report
    )
    assert report.diagnosis.advice[0].parameter == "num_workers"


def test_small_graphs_are_collated_in_the_loop(stored: StoredReports) -> None:
    graphs = [data.Data(x=torch.randn(20, 7), y=torch.randn(1)) for _ in range(1280)]
    report = stored(lambda: played(loader.DataLoader(graphs, batch_size=128), 0.0005, epochs=4))
    assert (report.diagnosis.operator, report.diagnosis.cause) == ("Collater", "no_overlap"), str(report)
