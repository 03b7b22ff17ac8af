"""A DataLoader to be built and what its training loop does, as plain data (JSON both ways)."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

#: Wrappers of torch's own: they cost nothing and are no operators.
TORCH_WRAPPERS = ("Subset", "ConcatDataset")


@dataclass
class Part:
    """Something that is called per item (dataset, wrapper, transform, sampler) or per batch (collate)."""

    name: str
    seconds: float = 0.0  # per call: slept, or of CPU time
    work: str = "sleep"  # sleep (I/O), native (C code without the interpreter lock), python
    vary: dict[str, Any] = field(default_factory=lambda: {"how": "even", "spread": 0.1})


@dataclass
class Loader:
    """What is inside the loader, how it is set, and the loop around it."""

    dataset: Part
    step_s: float
    batch_size: int = 8
    num_workers: int = 2
    prefetch_factor: int = 2
    in_order: bool = True
    persistent_workers: bool = False
    start_method: str = "fork"
    shuffle: bool = False
    kind: str = "map"  # map; getitems: whole batches are asked for; stream: an IterableDataset
    wrappers: list[Part] = field(default_factory=list)  # outermost first
    transforms: list[Part] = field(default_factory=list)
    collate: Part | None = None
    sampler: Part | None = None
    tensors: int = 1  # per item, so per batch
    item_bytes: int = 0  # above 0: items are NumPy arrays of that size, and so are batches
    sharing_strategy: str = ""
    first_s: float = 0.0  # every worker's first item: opening files
    worker_times: list[float] = field(default_factory=list)  # per worker, multiplies the dataset's time
    step_work: str = "sleep"
    step_spread: float = 0.05
    steps: int = 100  # per epoch
    epochs: int = 1
    copy_s: float = 0.0  # the copy of a batch to a device, which the step waits for
    neighbours: int = 0  # processes that burn CPU beside it, none of its own
    quiet: bool = False  # must run alone, though hardly any CPU is asked for by name
    validation: Loader | None = None  # looped over after each epoch
    seed: int = 0

    @property
    def program(self) -> str:
        return "build_loader.py"

    @property
    def bears(self) -> float:
        """Share of the cores that others may use where `uses_cpu` is false: passing batches needs some."""
        return 0.4

    @property
    def parts(self) -> list[Part]:
        one = [part for part in (self.sampler, self.collate) if part is not None]
        return [self.dataset, *self.wrappers, *self.transforms, *one]

    @property
    def uses_cpu(self) -> bool:
        return (
            self.quiet
            or self.step_work != "sleep"
            or any(part.work != "sleep" for part in self.parts)
            or (self.validation is not None and self.validation.uses_cpu)
        )

    def batch_s(self, *works: str) -> float:
        """Time that one worker spends on a batch, in work of these kinds (all of them by default)."""
        total = 0.0
        for part in self.parts:
            if part is self.sampler or (works and part.work not in works):
                continue
            mean = 1.0
            if part.vary["how"] == "rare":
                mean += part.vary["share"] * (part.vary["times"] - 1)
            total += part.seconds * mean * (1 if part is self.collate else self.batch_size)
        return total

    def pace(self, cores: int) -> float:
        """Roughly the step that the loop will reach."""
        serial = self.sampler.seconds * self.batch_size if self.sampler is not None else 0.0
        serial += self.item_bytes * self.batch_size * 2e-9 + self.copy_s
        if self.num_workers == 0:
            return self.step_s + serial + self.batch_s()
        cpu = self.batch_s("native", "python") / cores
        return max(self.step_s + serial + 5e-4, self.batch_s() / self.num_workers, cpu)

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Loader:
        return cls._from(json.loads(text))

    @classmethod
    def _from(cls, fields: dict[str, Any]) -> Loader:
        for one in ("dataset", "collate", "sampler"):
            fields[one] = Part(**fields[one]) if fields[one] else None
        for several in ("wrappers", "transforms"):
            fields[several] = [Part(**part) for part in fields[several]]
        fields["validation"] = cls._from(fields["validation"]) if fields["validation"] else None
        return cls(**fields)

    def in_words(self) -> str:
        """Short, for a table: names, milliseconds, workers and what else is set."""

        def shape(part: Part) -> str:
            work = "" if part.work == "sleep" else {"native": "c", "python": "py"}[part.work]
            return f"{part.name} {1e3 * part.seconds:.3g}{work}"

        chain = [shape(part) for part in [*self.wrappers, self.dataset, *self.transforms]]
        collate = f" {shape(self.collate)}" if self.collate else ""
        sampler = f"{shape(self.sampler)} " if self.sampler else ""
        size = f" {self.item_bytes * self.batch_size / 1e6:.0f}MB" if self.item_bytes else ""
        several = f" {self.tensors} tensors" if self.tensors > 1 else ""
        settings = "".join(
            word
            for word, said in (
                (f" p{self.prefetch_factor}", self.num_workers > 0),
                (" any-order", not self.in_order),
                (" persistent", self.persistent_workers),
                (f" {self.start_method}", self.start_method != "fork"),
                (f" {self.kind}", self.kind != "map"),
                (f" x{self.epochs} epochs", self.epochs > 1),
                (f" then {self.validation.in_words()}" if self.validation else "", bool(self.validation)),
                (f" copy {1e3 * self.copy_s:.3g}", self.copy_s > 0),
                (f" beside {self.neighbours} others", self.neighbours > 0),
            )
            if said
        )
        step = f"{1e3 * self.step_s:.3g}{'' if self.step_work == 'sleep' else self.step_work}"
        return (
            f"{sampler}{'>'.join(chain)} x{self.batch_size}{collate}{size}{several} "
            f"w{self.num_workers}{settings} | {step}"
        )
