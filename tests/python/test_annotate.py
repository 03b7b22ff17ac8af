"""`hr.annotate`: named ranges on the timeline."""

from __future__ import annotations

import gzip
import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import headrace as hr


def ranges(run: Path) -> list[dict[str, Any]]:
    merged = hr.timeline.merge(run)
    events = json.loads(gzip.decompress(Path(merged.path).read_bytes()))["traceEvents"]
    return [e for e in events if e.get("ph") == "X" and e.get("name") in {"augment", "inner", "outer"}]


def test_ranges_stand_on_their_thread(tmp_path: Path) -> None:
    @hr.annotate("augment")
    def augment(x: int) -> int:
        time.sleep(0.002)
        return x + 1

    with hr.session(run=str(tmp_path / "run")):
        loader = hr.wrap([1, 2, 3], name="train")
        with hr.annotate("outer"):
            for item in loader:
                with hr.annotate("inner"):
                    assert augment(item) == item + 1
        other = threading.Thread(target=augment, args=(1,))
        other.start()
        other.join()
    found = ranges(tmp_path / "run")
    counts = {name: sum(e["name"] == name for e in found) for name in ("outer", "inner", "augment")}
    assert counts == {"outer": 1, "inner": 3, "augment": 4}
    (outer,) = [e for e in found if e["name"] == "outer"]
    for event in found:
        assert event["cat"] == "headrace"
        if event["tid"] == outer["tid"]:
            assert outer["ts"] <= event["ts"]
            assert event["ts"] + event["dur"] <= outer["ts"] + outer["dur"] + 0.001
    assert len({event["tid"] for event in found}) == 2


def test_what_the_body_raises_goes_through(tmp_path: Path) -> None:
    with hr.session(run=str(tmp_path / "run")):
        hr.wrap([1], name="train")
        with pytest.raises(KeyError), hr.annotate("outer"):
            raise KeyError("a")
    assert [e["name"] for e in ranges(tmp_path / "run")] == ["outer"]


def test_without_a_run_it_does_nothing() -> None:
    with hr.annotate("outer") as range_:
        assert range_ is not None
    with pytest.raises(hr.UsageError, match="takes a name"):
        hr.annotate(3)  # type: ignore[arg-type]
