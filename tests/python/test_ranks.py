"""Ranks of one run beside each other: the slow one is named, the others say whom they wait for."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import headrace as hr


def record_rank(run: Path, rank: int, decode_s: float, step_s: float) -> None:
    """Sixty steps of a pipeline of one thread, recorded as that rank."""
    with hr.session(run=run, rank=rank):
        q = hr.Queue(2, name="decoded")

        @hr.operator("decode", kind="map")
        def decode(item: int) -> int:
            time.sleep(decode_s)
            return item

        def produce() -> None:
            for item in range(60):
                q.put(decode(item))
            q.put(None)

        thread = threading.Thread(target=produce)
        thread.start()
        for _ in hr.wrap(iter(q.get, None), name="train"):
            time.sleep(step_s)
        thread.join()


def test_the_slow_rank_is_named_and_the_others_say_so(tmp_path: Path) -> None:
    run = tmp_path / "run"
    for rank, decode_s in enumerate((0.002, 0.014, 0.002)):
        record_rank(run, rank, decode_s, 0.006)
    slow = hr.Report.load(run, rank=1)
    assert slow.ranks == [0, 1, 2]
    assert [other.rank for other in slow.profile.ranks] == [0, 2]
    assert slow.diagnosis.cause == "slow_rank"
    assert slow.diagnosis.operator == "decode"
    assert "rank 1" in slow.diagnosis.summary
    healthy = hr.Report.load(run)
    assert healthy.rank == 0
    assert healthy.diagnosis.kind == "not_input_bound"
    assert any(said.rule == "ranks" and "rank 1" in said.says for said in healthy.diagnosis.evidence)

    saved = tmp_path / "report.json"
    slow.save(saved)
    assert hr.Report.load(saved).diagnosis == slow.diagnosis


def test_a_rank_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    run = tmp_path / "run"
    for rank in range(2):
        record_rank(run, rank, 0.002, 0.006)
    (segment,) = run.glob("rank1*.hrseg")
    segment.write_bytes(segment.read_bytes()[:5000])
    report = hr.Report.load(run)
    assert report.profile.ranks == []
    assert any("rank 1" in note for note in report.profile.notes)
