"""Weights & Biases: figures of its run, the verdict in its summary, page and timeline as an artefact."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headrace.errors import UsageError
from headrace.export._publisher import Publisher
from headrace.results.report import Report


def wandb(run: Any = None, *, every_s: float = 30.0) -> Publisher:
    """Log the figures of this process's loops to a W&B run, until the process ends.

        wandb.init(project="p")
        hr.export.wandb()

    run: default the current one. Figures go into the row that the script logs next, so its steps stay as
    they are. At the end, or before the run finishes, the verdict is in its summary
    (``headrace/LOADER/verdict``), the page is among its media, and page and timeline are an artefact. Returns
    what ends it earlier: ``close()``, or a ``with`` block. Raises UsageError without ``wandb`` (``pip install
    'headrace[wandb]'``), and without a run.
    """
    try:
        import wandb as library
    except ImportError:
        raise UsageError("hr.export.wandb needs wandb: pip install 'headrace[wandb]'") from None
    run = library.run if run is None else run
    if run is None:
        raise UsageError("hr.export.wandb needs a run: call it after wandb.init()")
    publisher = Publisher(_Target(library, run), every_s)
    name = "_finish" if hasattr(run, "_finish") else "finish"  # the former ends a ``with`` block, too
    finish = getattr(run, name)

    def finish_with_verdict(*args: Any, **kwargs: Any) -> Any:
        publisher.close()
        return finish(*args, **kwargs)

    setattr(run, name, finish_with_verdict)
    return publisher


class _Target:
    def __init__(self, library: Any, run: Any) -> None:
        self._library = library
        self._run = run

    def figures(self, report: Report, figures: dict[str, float]) -> None:
        self._run.log({f"headrace/{name}": value for name, value in figures.items()}, commit=False)

    def verdict(self, report: Report, sentence: str) -> None:
        self._run.summary[f"headrace/{report.loader}/verdict"] = sentence

    def files(self, paths: Sequence[Path]) -> None:
        pages = [path for path in paths if path.suffix == ".html"]
        self._run.log(
            {f"headrace/{page.stem}": self._library.Html(str(page), inject=False) for page in pages}
        )
        artefact = self._library.Artifact(f"headrace-{self._run.id}", type="headrace")
        for path in paths:
            artefact.add_file(str(path))
        self._run.log_artifact(artefact)
