"""What a drawn case of a loader is: what is slow, and by how much."""

import hashlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

SHARDS = 4
SAMPLES = 60
CASES = ("source", "map", "cpu", "batch", "step", "lock")
#: Where the case of the interpreter lock cannot be: in processes, in one thread, in a library's own threads.
_WITHOUT_A_LOCK = ("streaming", "datasets", "webdataset", "ray", "dali", "get_next", "function")
CASES_OF = dict.fromkeys(_WITHOUT_A_LOCK, CASES[:-1])


def burn(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        sum(range(50))


def native(seconds: float) -> None:
    """As `burn`, without the interpreter lock."""
    block = bytes(1 << 18)
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        hashlib.sha256(block)


def rows(shards: list[int], seconds: float) -> Iterator[dict[str, int]]:
    for shard in shards:
        for number in range(SAMPLES):
            if seconds:
                time.sleep(seconds)
            yield {"i": SAMPLES * shard + number}


@dataclass
class Case:
    """One drawn case: what is slow, and by how much."""

    loader: str
    kind: str
    seconds: float
    batch_size: int
    idle: int
    name: str

    @property
    def workers(self) -> int:
        return {"cpu": 2, "lock": 4}.get(self.kind, 1)

    @property
    def source_s(self) -> float:
        return self.seconds if self.kind == "source" else 0.0

    @property
    def step_s(self) -> float:
        return self.batch_size * self.seconds + 0.02 if self.kind == "step" else 0.001

    def function(self, in_threads: bool = False) -> Callable[[Any], Any]:
        """``in_threads``: threads are to fill all cores, so that case needs no interpreter lock."""
        compute = native if in_threads and self.kind == "cpu" else burn

        def work(item: Any) -> Any:
            if self.kind == "map":
                time.sleep(self.seconds)
            elif self.kind in ("cpu", "lock"):
                compute(self.seconds)
            return item

        work.__name__ = work.__qualname__ = self.name
        return work

    def collate(self) -> Callable[[Any], Any]:
        def collate(items: Any) -> Any:
            if self.kind == "batch":
                time.sleep(self.batch_size * self.seconds)
            return items

        collate.__name__ = collate.__qualname__ = f"collate_{self.name}"
        return collate

    def idle_functions(self) -> list[Callable[[Any], Any]]:
        def idle(item: Any) -> Any:
            return item

        return [idle] * self.idle
