"""tools/costs/run.py: what is made of counts, and how they are held against their ceilings."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"


@pytest.fixture
def costs(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(TOOLS)
    spec = importlib.util.spec_from_file_location("costs_run", TOOLS / "costs/run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_comes_once_is_in_no_count(costs: ModuleType) -> None:
    counts = {("event", 100): 1_000 + 100 * 30, ("event", 200): 1_000 + 200 * 30}
    assert costs.per_operation(counts) == {"event": 30}


def test_what_runs_bare_is_taken_off(costs: ModuleType) -> None:
    counts = {("a call, bare", 10): 100, ("a call, bare", 20): 200}
    counts |= {("a call, recorded", 10): 600, ("a call, recorded", 20): 1_200}
    assert costs.per_operation(counts) == {"a call": 50}


def test_an_operation_that_runs_once_is_counted_whole(costs: ModuleType) -> None:
    assert costs.per_operation({("import headrace", 1): 7_000}) == {"import headrace": 7_000}


def test_counts_within_two_per_cent_of_their_ceilings_pass(costs: ModuleType) -> None:
    assert list(costs.failures({"event": 1_000}, {"event": 1_019})) == []
    assert list(costs.failures({"event": 1_000}, {"event": 981})) == []


def test_counts_off_their_ceilings_fail(costs: ModuleType) -> None:
    assert list(costs.failures({"event": 1_000}, {"event": 1_021})) == [
        "event: 1021 instructions, ceiling 1000: take 21 out of it"
    ]
    (line,) = costs.failures({"event": 1_000}, {"event": 979})
    assert line.startswith("event: 979 instructions, ceiling 1000: lower it")
    assert list(costs.failures({"gone": 1}, {"new": 1})) == ["gone: was not counted", "new: has no ceiling"]


def test_make_ceilings_keeps_costs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(TOOLS)
    import ceilings

    (tmp_path / "cmake").mkdir()
    (tmp_path / "cmake/install.cmake").write_text("set(headrace_public_headers)\n", encoding="utf-8")
    (tmp_path / "tools").mkdir()
    path = tmp_path / "tools/ceilings.toml"
    path.write_text('[costs]\n"event" = 30\n', encoding="utf-8")
    for option in ("--reset", ""):
        assert ceilings.main(tmp_path, option) == 0
        assert '\n[costs]\n"event" = 30\n' in path.read_text(encoding="utf-8")
    assert ceilings.main(tmp_path, "--check") == 0
