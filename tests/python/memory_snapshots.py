"""Memory snapshots for tests: a small caching allocator that records itself, and both picklers of PyTorch."""

from __future__ import annotations

import pickle
import random
import struct
from pathlib import Path
from typing import Any

MIB = 1 << 20
START_US = 1_790_000_000_000_000

UNWIND = {"filename": "??", "line": 0, "name": "torch::unwind::unwind()"}
ENGINE = {"filename": "??", "line": 0, "name": "torch::autograd::Engine::evaluate_function(int)"}
ADAM = {"filename": "/env/site-packages/torch/optim/adam.py", "line": 7, "name": "step"}
LINEAR = {"filename": "/env/site-packages/torch/nn/linear.py", "line": 3, "name": "forward"}
MAIN = {"filename": "/job/train.py", "line": 90, "name": "main"}


def function(name: str, line: int = 1) -> dict[str, Any]:
    """A frame of the user's program."""
    return {"filename": f"/job/{name}.py", "line": line, "name": name}


#: Stacks, the innermost frame first, each with its place. They are shared, as the allocator shares them.
STACKS: list[tuple[list[dict[str, Any]], str]] = [
    ([UNWIND, LINEAR, function("model", 10), MAIN], "model.py:10 model"),
    ([UNWIND, function("loader", 11), MAIN], "loader.py:11 loader"),
    ([UNWIND, ENGINE], "backward"),
    ([UNWIND, ADAM], "adam.py:7 step"),
    ([], "no stack recorded"),
]


class Recorder:
    """A device's allocator: blocks by first fit in segments, the events of everything, and the true level.

    ``expandable``: one segment that is mapped in parts. ``pool``: of all segments.
    """

    def __init__(self, device: int, *, expandable: bool = False, pool: tuple[int, int] = (0, 0)) -> None:
        self.device = device
        self.expandable = expandable
        self.pool = pool
        self.events: list[dict[str, Any]] = []
        #: Requested bytes that are live behind each event.
        self.levels: list[int] = []
        self.live: dict[int, dict[str, Any]] = {}
        self.segments: list[dict[str, Any]] = []
        self._next_address = 0x7F00_0000_0000 + device * (1 << 40)

    def event(self, action: str, addr: int | None, size: int, stack: int = 0, **more: Any) -> None:
        event = {
            "action": action,
            "size": size,
            "stream": 0,
            "time_us": START_US + 100 * len(self.events),
            "frames": STACKS[stack][0],
            "compile_context": "N/A",
            **more,
        }
        if addr is not None:
            event["addr"] = addr
        self.events.append(event)
        self.levels.append(sum(block["requested_size"] for block in self.live.values()))

    def alloc(self, size: int, stack: int = 0) -> int:
        rounded = -(-size // 512) * 512
        block = self._fitting(rounded) or self._reserve(rounded, stack)
        if block["size"] > rounded:
            blocks = next(s["blocks"] for s in self.segments if block in s["blocks"])
            rest = {**block, "address": block["address"] + rounded, "size": block["size"] - rounded}
            blocks.insert(blocks.index(block) + 1, rest)
        state = {"size": rounded, "requested_size": size, "state": "active_allocated"}
        block.update(state, frames=STACKS[stack][0], stack=stack)
        self.live[block["address"]] = block
        self.event("alloc", block["address"], size, stack)
        return int(block["address"])

    def free(self, addr: int, *, completed: bool = True) -> None:
        block = self.live[addr]
        self.event("free_requested", addr, block["requested_size"])
        block["state"] = "active_pending_free"
        if completed:
            requested = block["requested_size"]
            del self.live[addr]
            block.update(requested_size=0, state="inactive", frames=[])
            self.event("free_completed", addr, requested)

    def _fitting(self, size: int) -> dict[str, Any] | None:
        free = (b for s in self.segments for b in s["blocks"] if b["state"] == "inactive")
        return next((block for block in free if block["size"] >= size), None)

    def _reserve(self, size: int, stack: int) -> dict[str, Any]:
        total = max(2 * MIB, -(-size // MIB) * MIB)
        address = self._next_address
        self._next_address += total + MIB
        block = {"address": address, "size": total, "requested_size": 0, "state": "inactive", "frames": []}
        self.segments.append({"address": address, "total_size": total, "blocks": [block]})
        self.event("segment_map" if self.expandable else "segment_alloc", address, total, stack)
        return block

    def release(self) -> None:
        """What empty_cache() does: segments without a live block go back."""
        for segment in [s for s in self.segments if all(b["state"] == "inactive" for b in s["blocks"])]:
            self.segments.remove(segment)
            action = "segment_unmap" if self.expandable else "segment_free"
            self.event(action, segment["address"], segment["total_size"])

    def written_segments(self) -> list[dict[str, Any]]:
        keys = ("address", "size", "requested_size", "state", "frames")
        written = []
        for segment in self.segments:
            blocks = [{key: block[key] for key in keys} for block in segment["blocks"]]
            active = [block for block in blocks if block["state"] != "inactive"]
            in_use = sum(block["size"] for block in active if block["state"] == "active_allocated")
            written.append(
                {
                    "device": self.device,
                    "address": segment["address"],
                    "total_size": segment["total_size"],
                    "allocated_size": in_use,
                    "active_size": sum(block["size"] for block in active),
                    "requested_size": sum(block["requested_size"] for block in active),
                    "stream": 0,
                    "segment_type": "large",
                    "segment_pool_id": self.pool,
                    "is_expandable": self.expandable,
                    "frames": [],
                    "blocks": blocks,
                }
            )
        return written


def random_run(recorder: Recorder, seed: int, count: int) -> None:
    """Allocations and frees by chance, some of the frees pending, and an empty_cache() now and then."""
    chance = random.Random(seed)
    for _ in range(count):
        usable = [a for a, block in recorder.live.items() if block["state"] == "active_allocated"]
        if usable and chance.random() < 0.45:
            recorder.free(chance.choice(usable), completed=chance.random() < 0.9)
        else:
            recorder.alloc(chance.randint(1, 3 * MIB), chance.randrange(len(STACKS)))
        if chance.random() < 0.02:
            recorder.release()


def step_marks(device: int, ends: list[int]) -> list[dict[str, Any]]:
    """``ProfilerStep#1`` and so on; ``ends``: the numbers of the events that the steps end behind."""
    marks = []
    begin = START_US
    for number, event in enumerate(ends, start=1):
        end = START_US + 100 * event + 50
        for stage, time_us in (("START", begin), ("END", end)):
            name = f"ProfilerStep#{number}"
            marks.append({"stage": stage, "name": name, "device": device, "time_us": time_us})
        begin = end + 1
    return marks


def snapshot_of(
    recorders: list[Recorder], *, max_entries: int = 0, marks: list[dict[str, Any]] | None = None
) -> dict[str, Any]:
    """``max_entries``: of each device the latest events only, as the ring buffer keeps them; 0: all."""
    traces: list[list[dict[str, Any]]] = [[] for _ in range(max(r.device for r in recorders) + 1)]
    for recorder in recorders:
        traces[recorder.device] = recorder.events[-max_entries:] if max_entries else recorder.events
    return {
        "segments": [segment for recorder in recorders for segment in recorder.written_segments()],
        "device_traces": traces,
        "allocator_settings": {
            "PYTORCH_CUDA_ALLOC_CONF": "",
            "max_split_size": -1,
            "garbage_collection_threshold": 0.8,
            "expandable_segments": any(recorder.expandable for recorder in recorders),
        },
        "external_annotations": marks or [],
    }


def write(path: Path, snapshot: Any, protocol: int = 4) -> Path:
    """As ``torch.cuda.memory._dump_snapshot`` does, with ``pickle.dump``."""
    path.write_bytes(pickle.dumps(snapshot, protocol=protocol))
    return path


class CppPickler:
    """The bytes that PyTorch's C++ pickler writes: protocol 2, every list and dict in one piece.

    Texts are in the memo by content, lists and dicts by identity, and only behind their end.
    """

    def __init__(self) -> None:
        self._out = bytearray(b"\x80\x02")
        self._memo: dict[Any, int] = {}

    def dumps(self, value: Any) -> bytes:
        self._write(value)
        return bytes(self._out) + b"."

    def _put(self, key: Any) -> None:
        number = self._memo[key] = len(self._memo)
        self._out += struct.pack("<cB", b"q", number) if number < 256 else struct.pack("<cI", b"r", number)

    def _write(self, value: Any) -> None:
        key = value if isinstance(value, str) else id(value)
        if isinstance(value, (str, dict, list)) and key in self._memo:
            number = self._memo[key]
            self._out += (
                struct.pack("<cB", b"h", number) if number < 256 else struct.pack("<cI", b"j", number)
            )
        elif value is None or isinstance(value, bool):
            self._out += {None: b"N", True: b"\x88", False: b"\x89"}[value]
        elif isinstance(value, int):
            self._integer(value)
        elif isinstance(value, float):
            self._out += struct.pack(">cd", b"G", value)
        elif isinstance(value, str):
            text = value.encode()
            self._out += struct.pack("<cI", b"X", len(text)) + text
            self._put(key)
        elif isinstance(value, tuple):
            for item in value:
                self._write(item)
            self._out += {1: b"\x85", 2: b"\x86", 3: b"\x87"}[len(value)]
        else:
            is_dict = isinstance(value, dict)
            self._out += b"}(" if is_dict else b"]("
            for item in value:
                self._write(item)
                if is_dict:
                    self._write(value[item])
            self._out += b"u" if is_dict else b"e"
            self._put(key)

    def _integer(self, value: int) -> None:
        if 0 <= value < 256:
            self._out += struct.pack("<cB", b"K", value)
        elif 0 <= value < 65536:
            self._out += struct.pack("<cH", b"M", value)
        elif -(1 << 31) <= value < 1 << 31:
            self._out += struct.pack("<ci", b"J", value)
        else:
            self._out += struct.pack("<cBq", b"\x8a", 8, value)
