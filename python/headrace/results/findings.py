"""Faults found in the data and the training of a run: their files, and how they are read."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

from headrace.results import process_files
from headrace.results.data import build
from headrace.results.figures import Finding

#: With so many other ranks a rank is compared.
_MOST_RANKS = 8
_MOST_SAMPLES = 1000
#: Share of the compared samples.
_SHARED = 0.02
#: A process keeps at most some thousand findings of a thousand samples.
_MAX_BYTES = 64 << 20


#: Every kind of finding (`tools/watch_kinds.py`).
KINDS = frozenset(
    (
        "nonfinite_batch",
        "constant_samples",
        "scale",
        "range_drift",
        "shape_change",
        "padding",
        "label_range",
        "single_class_batches",
        "imbalance",
        "order_identical",
        "duplicates_in_epoch",
        "leak",
        "same_random_in_workers",
        "same_random_each_epoch",
        "nonfinite_loss",
        "nonfinite_gradient",
        "nonfinite_module",
        "explosion",
        "gradient_vanishing",
        "no_gradient",
        "detached",
        "gradients_not_cleared",
        "weight_not_updated",
        "weight_change_too_large",
        "bad_initialisation",
        "dead_units",
        "loss_flat",
        "scaler_skips",
        "ranks_overlap",
    )
)


class Found(NamedTuple):
    """A finding and whose it is."""

    finding: Finding
    #: "": of the run.
    loader: str

    def as_json(self) -> dict[str, Any]:
        return {**dataclasses.asdict(self.finding), "loader": self.loader}


def documents_of(run: str, rank: int, known: set[str] | None = None) -> list[dict[str, Any]]:
    """The findings that the processes of a rank have written; a file that cannot be read is left out.

    known: files that are left out, too; those that are read now are added.
    """
    new = [path for path in process_files.paths("watch", run, rank) if path not in (known or ())]
    if known is not None:
        known.update(new)
    documents = (process_files.document_of(path, _MAX_BYTES) for path in new)
    return [document for document in documents if document is not None]


def was_watched(run: str) -> bool:
    """Whether a run folder has files of what was found."""
    return bool(process_files.paths("watch", run))


def findings_in(run: str, rank: int, loader: str) -> list[Finding]:
    """The findings of a run folder, worst first: those of ``loader`` and those of the run."""
    merged: dict[tuple[str, str], Finding] = {}
    documents = documents_of(run, rank)
    for document in documents:
        listed, again = document.get("findings"), document.get("made_again")
        parts = document.get("parts")
        names = {"", loader, again.get(loader, "") if isinstance(again, dict) else ""}
        names |= {
            part
            for part, whole in (parts.items() if isinstance(parts, dict) else ())
            if whole in names - {""}
        }
        for each in listed if isinstance(listed, list) else []:
            finding = build(Finding, each)
            if not isinstance(each, dict) or each.get("loader") not in names or not _is_whole(finding):
                continue
            first = merged.setdefault((finding.kind, finding.where), finding)
            if first is not finding:  # of another process
                first.steps += finding.steps
                first.samples += [one for one in finding.samples if one not in first.samples]
    overlap = ranks_overlap(run, rank, loader, _samples_in(documents, loader))
    return worst_first([*merged.values(), *([] if overlap is None else [overlap])])


def _is_whole(finding: Finding) -> bool:
    """It has the types that it should; another program's may not."""
    texts = (finding.kind, finding.severity, finding.where, finding.says, finding.cure)
    numbers = (finding.steps, finding.first_step or 0, *finding.samples, *finding.figures.values())
    return all(isinstance(one, str) for one in texts) and all(
        isinstance(one, (int, float)) for one in numbers
    )


def ranks_overlap(run: str, rank: int, loader: str, own: set[int]) -> Finding | None:
    """Samples that a rank shares with another one of its run; None: it shares none, or that is not known.

    own: dataset indices that this rank takes.
    """
    if not own:
        return None
    others = process_files.ranks("watch", run)
    worst: tuple[float, int, set[int]] = (0.0, 0, set())
    for other in sorted(others - {rank})[:_MOST_RANKS]:
        theirs = _samples_in(documents_of(run, other), loader)
        shared = own & theirs
        # A sampler that fills up the last round repeats one sample a rank at most.
        if len(shared) > len(others):
            worst = max(
                worst, (len(shared) / min(len(own), len(theirs)), other, shared), key=lambda one: one[0]
            )
    share, other, shared = worst
    if share < _SHARED:
        return None
    return Finding(
        kind="ranks_overlap",
        severity="fault",
        where=loader,
        steps=1,
        samples=sorted(one for one in shared if one >= 0)[:_MOST_SAMPLES],  # below 0: by content
        says=f"{loader}: ranks {rank} and {other} take the same samples: {share:.0%} of those compared",
        figures={"share": share, "samples": float(len(shared))},
        cure="Give each rank its part: DistributedSampler, or a shard by rank; ranks that share one model "
        "(tensor or pipeline parallel) are meant to take the same",
    )


def _samples_in(documents: list[dict[str, Any]], loader: str) -> set[int]:
    found: set[int] = set()
    for document in documents:
        seen = document.get("samples_seen")
        listed = seen.get(loader) if isinstance(seen, dict) else None
        found.update(one for one in (listed if isinstance(listed, list) else []) if isinstance(one, int))
    return found


def worst_first(findings: list[Finding]) -> list[Finding]:
    """Faults before notes, and in each the earlier first."""
    never = 1 << 62
    return sorted(
        findings,
        key=lambda one: (one.severity != "fault", never if one.first_step is None else one.first_step),
    )
