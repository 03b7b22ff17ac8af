"""multiprocessing.Pool(1).imap."""

from __future__ import annotations

import multiprocessing

from arrays import make, seconds_per_array


def run(count: int) -> float:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return seconds_per_array(pool.imap(make, range(count)), count)
