"""Language data in a loader's batches, and the tokens that other ways to form them would save."""

from __future__ import annotations

from typing import Any

from headrace.common.loader_names import unnumbered
from headrace.results import process_files
from headrace.results.figures import LengthBin, Tokens, TokenSaving

_MAX_BYTES = 16 << 20
#: Smaller savings are not reported.
_WORTH_IT = 0.05
#: Batches that a bucket is sorted over.
_BUCKET = 50
#: A batch this much above the mean is worth another way to size batches.
_UNEVEN = 0.3
_COUNTS = ("batches", "rows", "places", "tokens", "sequences")


def tokens_in(run: str, rank: int, loader: str, step_s: float) -> Tokens | None:
    """The language data of a loader in a run folder; None: its batches are none.

    step_s: its mean step.
    """
    seen = _seen(run, rank, loader)
    if seen is None or not seen["batches"] or not seen["places"] or not seen["rows"]:
        return None
    batches, rows, lengths = seen["batches"], seen["rows"] / seen["batches"], sorted(seen["lengths"])
    tokens = seen["tokens"] / batches
    profile = Tokens(
        batches=batches,
        tokens=tokens,
        places=seen["places"] / batches,
        tokens_per_s=tokens / step_s if step_s > 0 else None,
        padding_share=max(0.0, 1 - seen["tokens"] / seen["places"]),
        rows=rows,
        sequences_per_row=seen["sequences"] / seen["rows"],
        fixed_width=len(seen["widths"]) == 1 and batches > 1,
        length_mean=seen["tokens"] / max(1, seen["sequences"]),
        length_p50=_quantile(lengths, 0.5),
        length_p90=_quantile(lengths, 0.9),
        length_max=seen["longest"],
        lengths=_bins(lengths),
        rank_imbalance=_imbalance(run, rank, loader, seen["steps"]),
    )
    if profile.sequences_per_row <= 1 and len(lengths) >= 8:
        profile.savings = _savings(profile, lengths, max(seen["widths"]))
    return profile


def _seen(run: str, rank: int, loader: str) -> dict[str, Any] | None:
    """Sums over the processes of a rank, and over loaders that were made anew."""
    total: dict[str, Any] | None = None
    for path in process_files.paths("tokens", run, rank):
        for one in _loaders_of(path):
            if one["name"] != unnumbered(loader):
                continue
            if total is None:
                total = {**one, "steps": dict(one["steps"]), "widths": set(one["widths"])}
                continue
            for name in _COUNTS:
                total[name] += one[name]
            total["longest"] = max(total["longest"], one["longest"])
            total["lengths"] += one["lengths"]
            total["widths"] |= set(one["widths"])
            total["steps"].update(dict(one["steps"]))
    return total


def _loaders_of(path: str) -> list[dict[str, Any]]:
    """Those of a file that are whole; nothing of one that cannot be read."""
    try:
        loaders = (process_files.document_of(path, _MAX_BYTES) or {})["loaders"]
        return [one for one in loaders if _is_whole(one)]
    except (KeyError, TypeError, ValueError):
        return []


def _is_whole(one: Any) -> bool:
    """It has the numbers that it should; another program's may not."""
    numbers = [one[name] for name in (*_COUNTS, "longest")]
    numbers += [*one["lengths"], *one["widths"], *(each for pair in one["steps"] for each in pair)]
    return (
        isinstance(one["name"], str)
        and bool(one["widths"])
        and all(len(pair) == 2 for pair in one["steps"])
        and all(isinstance(number, int) and 0 <= number < 1 << 53 for number in numbers)
    )


def _quantile(ordered: list[int], share: float) -> int:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0


def _bins(ordered: list[int]) -> list[LengthBin]:
    """Each up to a power of two."""
    counts: dict[int, int] = {}
    for length in ordered:
        up_to = 1 << max(0, length - 1).bit_length()
        counts[up_to] = counts.get(up_to, 0) + 1
    return [LengthBin(up_to=up_to, share=count / len(ordered)) for up_to, count in sorted(counts.items())]


def _imbalance(run: str, rank: int, loader: str, own: dict[int, int]) -> float | None:
    """The imbalance of steps that all ranks recorded: the largest rank's tokens over the mean, less one."""
    ranks = process_files.ranks("tokens", run)
    others = [seen["steps"] for one in sorted(ranks - {rank}) if (seen := _seen(run, one, loader))]
    if not others:
        return None
    steps = [step for step in own if all(step in other for other in others)]
    excess = [
        max(tokens) * len(tokens) / sum(tokens) - 1
        for step in steps
        if sum(tokens := [own[step], *(other[step] for other in others)])
    ]
    return sum(excess) / len(excess) if excess else None


def _savings(profile: Tokens, lengths: list[int], widest: int) -> list[TokenSaving]:
    """From the recorded lengths, as if batches of as many rows were formed of them in another way."""
    rows = max(1, round(profile.rows))
    drawn = _shuffled(lengths)
    now = profile.places / profile.rows  # places for a sequence
    ways = []
    if profile.fixed_width:
        to_longest = _padded(drawn, rows)
        ways.append(("pad_to_longest", to_longest, "pad to the longest of the batch, not to one width"))
    bucketed = _padded(_in_buckets(drawn, rows), rows)
    ways.append(("bucket", bucketed, "form batches of similar lengths (a length-grouped sampler)"))
    ways.append(("pack", _packed(drawn, widest), f"pack several sequences into rows of {widest}"))
    found = [
        TokenSaving(change=change, saves=1 - places / now, says=says)
        for change, places, says in ways
        if places < (1 - _WORTH_IT) * now
    ]
    per_batch = [sum(drawn[at : at + rows]) for at in range(0, len(drawn) - rows + 1, rows)]
    if len(per_batch) >= 8 and not profile.fixed_width:
        mean, largest = sum(per_batch) / len(per_batch), max(per_batch)
        if largest > (1 + _UNEVEN) * mean:
            found.append(
                TokenSaving(
                    change="batch_by_tokens",
                    saves=1 - mean / largest,
                    says=f"let a batch have as many rows as hold {mean:,.0f} tokens",
                )
            )
    return sorted(found, key=lambda saving: -saving.saves)


def _shuffled(lengths: list[int]) -> list[int]:
    """In an order that depends on nothing but their number: a report does not change."""
    import random

    drawn = list(lengths)
    random.Random(len(drawn)).shuffle(drawn)
    return drawn


def _padded(lengths: list[int], rows: int) -> float:
    """Places for a sequence, if each batch is as wide as its longest."""
    batches = [lengths[at : at + rows] for at in range(0, len(lengths), rows)]
    return sum(max(batch) * len(batch) for batch in batches) / len(lengths)


def _in_buckets(lengths: list[int], rows: int) -> list[int]:
    size = rows * _BUCKET
    return [one for at in range(0, len(lengths), size) for one in sorted(lengths[at : at + size])]


def _packed(lengths: list[int], width: int) -> float:
    """Places for a sequence, if each goes into the first row of ``width`` with room, the longest first."""
    left: list[int] = []
    for length in sorted(lengths, reverse=True):
        place = next((row for row, room in enumerate(left) if room >= length), None)
        if place is None:
            left.append(width - min(width, length))
        else:
            left[place] -= length
    return len(left) * width / len(lengths)
