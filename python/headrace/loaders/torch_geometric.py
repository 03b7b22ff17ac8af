"""torch_geometric's NodeLoader and LinkLoader: sampling in workers, features of the samples in the loop.

They are subclasses of torch's DataLoader whose iterator calls `filter_fn` for each batch that a worker
sampled, in the training loop. That is part of GetNext (`torch_dataloader/outer_loops.py`).
"""

from __future__ import annotations

from headrace.loaders.kit.base import classes_of
from headrace.loaders.torch_dataloader import hook, outer_loops
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
    hook.record_every_loader()
    for module, name in _CLASSES.items():
        for kind in classes_of(module, name):
            hook.patch_owner(kind)
