"""Names and categories as numbers, and the kinds that Holistic Trace Analysis reads from names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

COMMUNICATION = re.compile(r"(^nccl.*)|(^hip)|(^hccl)|(.*ncclKernel.*)")
MEMORY = re.compile(r"(^(hip)?Memcpy)|(^(hip)?Memset)|(^dma)")
NOT_COMPUTATION = re.compile(
    r"(^nccl)|(.*Memcpy)|(.*Memset)|(.*dma)|(^.*Sync)|(^Stream Wait Event)|(cuda.*LaunchKernel)"
    r"|(^runFunction)|(^hip)|(^job_exe)|(^packet)|(^pe_exe)|(^cpum_exe_subgraph)|(^hccl)"
    r"|(^collective_subgraph_execution)"
)


def kernel_type(name: str) -> str:
    """COMMUNICATION, MEMORY, COMPUTATION or OTHER."""
    if COMMUNICATION.match(name):
        return "COMMUNICATION"
    if MEMORY.match(name):
        return "MEMORY"
    return "OTHER" if NOT_COMPUTATION.match(name) else "COMPUTATION"


def shorten_name(name: str) -> str:
    """A kernel's name without its template and call arguments."""
    if MEMORY.match(name) or ("<" not in name and "(" not in name):
        return name
    name = name.replace("->", "")
    kept: list[str] = []
    open_brackets: list[tuple[str, int]] = []
    for letter in name:
        if letter in "<(":
            open_brackets.append((letter, len(kept)))
        kept.append(letter)
        if letter in ">)" and open_brackets and open_brackets[-1][0] == ("<" if letter == ">" else "("):
            _, start = open_brackets.pop()
            del kept[start:]
    return "".join(kept).split(" ")[-1]


class TraceSymbolTable:
    """Each text and its number: ``sym_table[sym_index[text]] == text``."""

    NULL = -1

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self.sym_table: list[str] = []
        self.sym_index: dict[str, int] = {}
        self.add_symbols(texts)

    def add_symbols(self, texts: Iterable[str]) -> None:
        for text in texts:
            if text not in self.sym_index:
                self.sym_index[text] = len(self.sym_table)
                self.sym_table.append(text)

    def get_sym_id_map(self) -> dict[str, int]:
        return self.sym_index

    def get_sym_table(self) -> list[str]:
        return self.sym_table

    def get_sym_table_series(self) -> pd.Series:
        return pd.Series(self.sym_table)

    def is_empty(self) -> bool:
        return not self.sym_table

    # --- which numbers have a property: each text is looked at once, not each row ---

    def ids(self, texts: Iterable[str]) -> np.ndarray:
        """The numbers of the texts that are known."""
        return np.array([self.sym_index[text] for text in texts if text in self.sym_index], dtype=np.int64)

    def matching(self, pattern: str | re.Pattern[str], *, anywhere: bool = False) -> np.ndarray:
        """The numbers of texts that a pattern matches at their beginning, or anywhere."""
        compiled = re.compile(pattern)
        test = compiled.search if anywhere else compiled.match
        return np.array([i for i, text in enumerate(self.sym_table) if test(text)], dtype=np.int64)

    def containing(self, parts: Sequence[str]) -> np.ndarray:
        """The numbers of texts that contain one of the parts."""
        return np.array(
            [i for i, text in enumerate(self.sym_table) if any(part in text for part in parts)],
            dtype=np.int64,
        )

    def texts(self, numbers: pd.Series) -> pd.Series:
        """The texts of a column of numbers."""
        table = np.array(self.sym_table, dtype=object)
        return pd.Series(table[numbers.to_numpy()], index=numbers.index, dtype=object)

    def kernel_types(self) -> np.ndarray:
        """The kind of every text, by its number."""
        return np.array([kernel_type(text) for text in self.sym_table], dtype=object)
