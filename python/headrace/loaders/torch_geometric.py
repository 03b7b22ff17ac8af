"""torch_geometric's NodeLoader and LinkLoader: sampling in workers, features of the samples in the loop.

They are subclasses of torch's DataLoader whose iterator calls `filter_fn` for each batch that a worker
sampled, in the training loop. That is part of GetNext (`torch_dataloader/outer_loops.py`).
"""

from __future__ import annotations

import sys

from headrace.loaders.torch_dataloader import outer_loops
from headrace.loaders.torch_dataloader.operators import register_subclass

_CLASSES = {
    "torch_geometric.loader.node_loader": "NodeLoader",
    "torch_geometric.loader.link_loader": "LinkLoader",
}
for _module, _name in _CLASSES.items():
    register_subclass(_module, _name, {"filter_per_worker": False})
outer_loops.register("torch_geometric.loader.base", "DataLoaderIterator", "iterator", "transform_fn")

RECORDED_AFTER = dict.fromkeys(_CLASSES, "")


def record_every_loader() -> None:
    """From now on their loops in this process are recorded (``headrace run``)."""
    from headrace.loaders.torch_dataloader import hook

    hook.record_every_loader()
    for module, name in _CLASSES.items():
        kind = getattr(sys.modules.get(module), name, None)
        if kind is not None:
            hook.patch_owner(kind)
