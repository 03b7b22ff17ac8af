"""Figures of a run for the tools that watch other things already. One file per tool, an extra each.

Prometheus and OpenTelemetry read when they collect; TensorBoard, MLflow and W&B are written to by a thread.
The metrics of all of them are declared once, in `_metrics`.
"""

from __future__ import annotations

from headrace.export._mlflow import mlflow
from headrace.export._opentelemetry import opentelemetry
from headrace.export._prometheus import prometheus
from headrace.export._publisher import Publisher
from headrace.export._tensorboard import tensorboard
from headrace.export._wandb import wandb

__all__ = ["Publisher", "mlflow", "opentelemetry", "prometheus", "tensorboard", "wandb"]
