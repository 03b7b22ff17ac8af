"""torch_geometric's NodeLoader with a sampler of one's own; features are fetched in the loop."""

from typing import Any

import torch
from drawn import DRAWN, finish, make, train
from torch_geometric.data import Data
from torch_geometric.loader import NodeLoader
from torch_geometric.sampler import BaseSampler, SamplerOutput


class Walks(BaseSampler):  # type: ignore[misc]
    edge_permutation = None

    def sample_from_nodes(self, index: Any, **_: Any) -> Any:
        make()
        none = torch.zeros(0, dtype=torch.long)
        return SamplerOutput(index.node, none, none, None, metadata=(index.input_id, None))

    def sample_from_edges(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


def features(graph: Any) -> Any:
    finish()
    return graph


if __name__ == "__main__":
    nodes = DRAWN.batches * DRAWN.batch
    graph = Data(x=torch.zeros(nodes, 8), edge_index=torch.zeros(2, 0, dtype=torch.long))
    settings = {"batch_size": DRAWN.batch, "num_workers": DRAWN.workers, "filter_per_worker": False}
    batches = iter(NodeLoader(graph, Walks(), transform=features, **settings))
    train(lambda: next(batches))
