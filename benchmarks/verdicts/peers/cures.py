"""What tools of few words advise, read as a cause, to their advantage."""

from __future__ import annotations

from line import Line
from loader import Loader


def more_workers(drawn: Line | Loader) -> str:
    """Of "increase num_workers": the cause it cures, given how the draw is set; not what is wrong with it."""
    in_the_loop = drawn.how == "generators" if isinstance(drawn, Line) else drawn.num_workers == 0
    return "no_overlap" if in_the_loop else "too_few_workers"
