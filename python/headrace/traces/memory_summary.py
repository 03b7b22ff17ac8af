"""One screen about a memory snapshot: what `headrace trace snapshot.pickle` prints."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from headrace.common.plain import plain
from headrace.traces.table_text import counted, memory_size

if TYPE_CHECKING:
    from headrace.traces.memory import MemorySnapshot

#: Rows of a list that still fit on one screen.
_SHOWN = 8
#: Devices with a part of their own.
_DEVICES = 4
#: Steps that say whether something grows in each of them; thirds are sums, so two say as much.
_MIN_STEPS, _MIN_THIRDS = 3, 2
#: A device with more of its reserved memory inactive is worth a finding.
_MUCH_INACTIVE_PCT = 20.0
_KEEPS = "drop what a step leaves behind: keep loss.item() and not loss, detach() what is kept, clear lists"
_EXPANDABLE = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True joins free blocks, and "
_EMPTY_CACHE = "torch.cuda.empty_cache() returns whole free segments"


def memory_summary(snapshot: MemorySnapshot, width: int = 100) -> str:
    """The finding with its figure and cure; then, by device, the peak, what is reserved, and who holds it."""
    peaks = list(snapshot.peak().rows())
    reserved = {row["device"]: row for row in snapshot.fragmentation().rows()}
    holders = list(snapshot.holders().rows())
    parts = [_wrapped(line, width) for line in findings_of(snapshot)[0]]
    parts.append(repr(snapshot).strip("<>").removeprefix("headrace."))
    shown = sorted(peaks, key=lambda row: -row["peak_requested_bytes"])[:_DEVICES]
    for peak in sorted(shown, key=lambda row: int(row["device"])):
        device = peak["device"]
        parts.append(_device(peak, reserved.get(device, {}), len(peaks) > 1))
        parts.append(_holders([row for row in holders if row["device"] == device], width))
    if len(peaks) > _DEVICES:
        parts.append(f"{counted(len(peaks) - _DEVICES, 'more device')}: --table peak")
    notes = [f"note: {note}" for note in snapshot.peak().notes[:_SHOWN]]
    return "\n\n".join([*(part for part in parts if part), *(["\n".join(notes)] if notes else [])])


def findings_of(snapshot: MemorySnapshot) -> tuple[list[str], bool]:
    """Lines that ask for a change, and whether there are any: failed requests, growth, fragmentation."""
    failed = list(snapshot.oom().rows())
    if failed:
        last = {row["device"]: row for row in failed}
        found = [_failed(row) for row in list(last.values())[:_DEVICES]]
        more = len(failed) - len(found)
        return [*found, *([f"{counted(more, 'more failed request')}: --table oom"] if more else [])], True
    growth = snapshot.growth()
    thirds = any("thirds" in note for note in growth.notes)
    least = _MIN_THIRDS if thirds else _MIN_STEPS
    leaks = [row for row in growth.rows() if row["grew_in"] == row["steps"] >= least]
    reserved = {row["device"]: row for row in snapshot.fragmentation().rows()}
    fragmented = [
        line for row in snapshot.peak().rows() if (line := _fragmented(row, reserved[row["device"]]))
    ]
    found = [*(_leak(row, thirds) for row in leaks[:_DEVICES]), *fragmented[:_DEVICES]]
    return found or ["no finding: no request failed, and nothing grows in every step"], bool(found)


def _failed(row: dict[str, Any]) -> str:
    where = f"device {row['device']}" + (f", {plain(row['step'])}" if row["step"] else "")
    asked = f"Asked in {plain(row['where'])}"
    return f"out of memory ({where}): {row['says']}: {row['verdict']}; {row['cure']}. {asked}"


def _leak(row: dict[str, Any], thirds: bool) -> str:
    where = f"{plain(row['where'])} (device {row['device']})"
    when, each = f"in each of {row['steps']} steps", f"{memory_size(row['step_growth_bytes'])} a step"
    if thirds:
        when, each = "from third to third of the recording", f"{memory_size(row['growth_bytes'])} in all"
    return f"memory grows {when}: {each}, allocated in {where}; {_KEEPS}"


def _fragmented(peak: dict[str, Any], reserved: dict[str, Any]) -> str:
    """At the peak, where memory may run out; without recorded events the state is all there is."""
    at_the_peak = peak["peak_event"] >= 0
    whole = peak["reserved_bytes"] if at_the_peak else reserved["reserved_bytes"]
    inactive = whole - peak["peak_requested_bytes"] if at_the_peak else reserved["inactive_bytes"]
    if whole <= 0 or 100 * inactive < _MUCH_INACTIVE_PCT * whole:
        return ""
    when = " at the peak" if at_the_peak else ""
    share = f"{memory_size(inactive)} of {memory_size(whole)} reserved are inactive{when}"
    cure = _EMPTY_CACHE if reserved["expandable_bytes"] else _EXPANDABLE + _EMPTY_CACHE
    return f"device {peak['device']}: {share} ({100 * inactive / whole:.1f} %); {cure}"


def _device(peak: dict[str, Any], reserved: dict[str, Any], several: bool) -> str:
    where = f"device {peak['device']}: " if several else ""
    line = f"{where}peak {memory_size(peak['peak_requested_bytes'])}"
    if peak["peak_event"] >= 0:
        line += f" at event {peak['peak_event']} of {peak['events']}"
        line += f" in {plain(peak['step'])}" if peak["step"] else ""
        line += f"; {memory_size(peak['requested_before_recording_bytes'])} when the recording began"
    lines = [line]
    if reserved:
        sizes = {name: memory_size(value) for name, value in reserved.items() if name.endswith("_bytes")}
        rounding = f" ({sizes['rounding_bytes']} by rounding)" if reserved["rounding_bytes"] else ""
        in_use = f"{sizes['active_bytes']} in use{rounding}"
        lines.append(f"  reserved {sizes['reserved_bytes']}: {in_use}, {sizes['inactive_bytes']} inactive")
        if reserved["inactive_bytes"]:
            lines.append(
                f"  inactive: {sizes['whole_free_segments_bytes']} in whole segments, "
                f"{sizes['inactive_split_bytes']} between blocks in use, at most "
                f"{sizes['largest_inactive_block_bytes']} in one piece"
            )
    return "\n".join(lines)


def _holders(rows: list[dict[str, Any]], width: int) -> str:
    if not rows:
        return ""
    lines = ["held at the peak, by the innermost function outside of PyTorch"]
    for row in rows[:_SHOWN]:
        head = f"  {row['held_pct']:5.1f} %  {memory_size(row['held_bytes']):>10}  {row['blocks']:>7} x  "
        lines.append(
            head + textwrap.shorten(plain(row["where"]), max(width - len(head), 16), placeholder="~")
        )
    if len(rows) > _SHOWN:
        lines.append(f"  {len(rows) - _SHOWN} more: --table holders")
    return "\n".join(lines)


def _wrapped(text: str, width: int) -> str:
    return "\n".join(textwrap.wrap(text, width, subsequent_indent="  ", break_on_hyphens=False))
