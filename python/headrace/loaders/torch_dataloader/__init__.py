"""PyTorch's DataLoader, inside and out.

hook      hooks the iterator that a loader makes (``_get_iterator``) and of its queues
worker    what runs in each worker process before its first batch
operators finds dataset, transforms and collate function, and their stand-ins while a batch is fetched
loaders   which loaders are recorded, under which name
outer_loops loops over iterators that make each batch of several
own_loops loops of loaders that keep one iterator for all epochs
keras     Keras' PyDataset, which it puts into a DataLoader of its own
settings  a loader's settings, as its user would write them
adapter   detects a DataLoader, and makes what `wrap` returns
"""

from headrace.loaders.kit import libraries
from headrace.loaders.torch_dataloader.adapter import DataLoaderAdapter, as_instance
from headrace.loaders.torch_dataloader.hook import record_every_loader

libraries.adapters.append(DataLoaderAdapter())

#: `record_every_loader` is called after their import (`tools/loader_modules.py`).
RECORDED_AFTER = {
    "torch.utils.data": "",
    "torch.utils.data.dataloader": "",
    "accelerate.data_loader": "",
    "torchdata.stateful_dataloader": "",
    "torchdata.stateful_dataloader.stateful_dataloader": "",
}

__all__ = ["DataLoaderAdapter", "as_instance", "record_every_loader"]
