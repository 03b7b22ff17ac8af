"""TensorFlow's tf.data, from the model that its autotuner keeps of every iterator.

adapter     detects a dataset, and records loops over it
graph       reads the datasets that the user put together, and which threads run which
counters    reads the autotuner's model while the loop runs
python_functions  times the Python functions of datasets
settings    the datasets' structure and settings, as their user would write them
keras_fit   loops of Keras over a dataset
"""

from __future__ import annotations

import sys

from headrace.loaders.kit import libraries
from headrace.loaders.tfdata.adapter import TfDataAdapter

libraries.adapters.append(TfDataAdapter())

#: `record_every_loader` is called after their import (`tools/loader_modules.py`).
RECORDED_AFTER = {"tensorflow": "python", "keras.src.backend.tensorflow.trainer": ""}


def record_every_loader() -> None:
    """From now on each loop over a dataset in this process is recorded (``headrace run``)."""
    from headrace.loaders.kit import every_loop
    from headrace.loaders.tfdata import keras_fit

    kind = sys.modules["tensorflow.python.data.ops.dataset_ops"].DatasetV2
    every_loop.patch(kind, TfDataAdapter())
    keras_fit.install(TfDataAdapter())
    keras_fit.begin(None)


__all__ = ["TfDataAdapter", "record_every_loader"]
