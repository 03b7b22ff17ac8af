"""The fixture ``headrace_session``, and the action that runs ``headrace check``."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import headrace as hr

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "samples" / "test_loader_speed.py"


def run_pytest(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(folder)]
    return subprocess.run(
        [*command, *arguments], cwd=folder, capture_output=True, text=True, check=False, timeout=110
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with the sample's tests."""
    (tmp_path / "test_loader_speed.py").write_text(SAMPLE.read_text(encoding="utf-8"), encoding="utf-8")
    return tmp_path


def test_a_loader_that_got_slower_fails_the_sample(project: Path) -> None:
    without = run_pytest(project, "-k", "no_slower")
    assert without.returncode == 1
    assert "`pytest --headrace-update` writes it" in without.stdout
    assert run_pytest(project, "-k", "no_slower", "--headrace-update").returncode == 0
    assert hr.Report.load(project / "loader_baseline.json").profile.sink.steps == 100

    slower = (project / "test_loader_speed.py").read_text().replace("sleep(0.004)", "sleep(0.06)")
    (project / "test_loader_speed.py").write_text(slower)
    failed = run_pytest(project)
    assert failed.returncode == 1
    assert "2 failed" in failed.stdout
    assert re.search(r"waited \d\d\.\d% of the time, .* not ready \(at most 25\.0% allowed\)", failed.stdout)
    assert re.search(r"a step takes [2-9]\.?\d* times that of loader_baseline\.json", failed.stdout)
    assert "decode" in failed.stdout


def test_what_is_checked(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        textwrap.dedent(
            """
            import time
            import headrace, pytest

            def test_nothing_is_wrapped(headrace_session):
                with pytest.raises(headrace.UsageError, match="comes first"):
                    headrace_session.check(max_wait_share=1)

            def test_no_step(headrace_session):
                headrace_session.wrap([1, 2])
                headrace_session.check(max_wait_share=1)

            def test_the_loader_that_waits_most(headrace_session):
                for _ in headrace_session.wrap(range(50), name="quick"):
                    pass
                slow = (time.sleep(0.002) or one for one in range(50))
                for _ in headrace_session.wrap(slow, name="slow"):
                    pass
                report = headrace_session.check(max_step_s=10)
                assert report.loader == "slow"
                headrace_session.check(max_step_s=0.001)

            def test_other_tests_record_elsewhere(headrace_session):
                for _ in headrace_session.wrap(range(10), name="mine"):
                    pass
                assert headrace.Report.load(headrace_session.folder).loaders == ["mine"]
            """
        )
    )
    done = run_pytest(tmp_path)
    assert "2 failed, 2 passed" in done.stdout, done.stdout
    assert "no complete step was recorded" in done.stdout
    assert re.search(r"slow: a step took 0\.00\d+ s, at most 0\.001 s allowed", done.stdout)


def test_marked_tests_and_the_flag(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        textwrap.dedent(
            """
            import time
            import headrace, pytest

            def loop(seconds):
                for _ in headrace.wrap((time.sleep(seconds) or one for one in range(50)), name="mine"):
                    pass

            @pytest.mark.headrace(max_wait=0.2)
            def test_waits():
                loop(0.002)

            @pytest.mark.headrace(max_step_s=10)
            def test_quick_enough():
                loop(0)

            @pytest.mark.headrace(max_wait=0.2)
            def test_no_loop():
                pass

            @pytest.mark.headrace(max_wait=0.2)
            def test_fails_by_itself():
                loop(0)
                assert False, "its own failure"

            def test_without_a_mark():
                loop(0.002)
            """
        )
    )
    done = run_pytest(tmp_path, "--strict-markers")
    assert "3 failed, 2 passed" in done.stdout, done.stdout
    assert re.search(r"mine: waited \d\d\.\d% of the time, .* \(at most 20\.0% allowed\)", done.stdout)
    assert "no loop over a DataLoader or a wrapped loader was recorded" in done.stdout
    assert "its own failure" in done.stdout
    for beside in ([], ["-n", "1"]):
        flagged = run_pytest(tmp_path, "--headrace", "-k", "without_a_mark", *beside)
        assert flagged.returncode == 0
        assert re.search(r"test_it.py::test_without_a_mark: mine: .*input-bound", flagged.stdout)


def test_data_loaders_of_a_marked_test_need_no_wrap(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "test_it.py").write_text(
        textwrap.dedent(
            """
            import time
            import pytest
            from torch.utils.data import DataLoader

            class Slow:
                def __len__(self):
                    return 60
                def __getitem__(self, index):
                    time.sleep(0.002)
                    return index

            @pytest.mark.headrace(max_wait=0.05)
            def test_waits():
                for _ in DataLoader(Slow(), batch_size=2):
                    pass

            def test_records_nothing():
                assert type(iter(DataLoader(Slow()))).__module__.startswith("torch.")
            """
        )
    )
    done = run_pytest(tmp_path)
    assert "1 failed, 1 passed" in done.stdout, done.stdout
    assert re.search(r"Slow.*: waited \d\d\.\d% of the time", done.stdout)


# --- the action ---


def act(folder: Path, **inputs: str) -> tuple[int, str, str]:
    """Status, output and the job's summary."""
    import os

    summary = folder / "summary.md"
    summary.write_text("")
    environment = {f"INPUT_{name.upper()}": value for name, value in inputs.items()}
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        [ROOT / "tools" / "check_action.sh"],
        cwd=folder,
        env={
            **os.environ,
            "PATH": path,
            "INPUT_INSTALL": "false",
            "GITHUB_STEP_SUMMARY": str(summary),
            **environment,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr, summary.read_text()


def test_the_action_checks_a_run(tmp_path: Path) -> None:
    import time

    with hr.session(run=tmp_path / "run"):
        for _ in hr.wrap((time.sleep(0.002) or one for one in range(300)), name="train"):
            pass
    status, said, summary = act(tmp_path, run="run", max_wait_share="1")
    assert (status, said.splitlines()[1].split()[0]) == (0, "ok")
    assert "\n    ok " in summary
    status, said, summary = act(tmp_path, run="run", max_wait_share="0.05", loader="train", rank="0")
    assert status == 3
    assert "::error title=headrace check::FAILED" in said
    assert "25" in said.split("::error")[1]  # a per cent sign is written %25 there
    assert "train" in summary
    status, said, _ = act(tmp_path, run="run", baseline="run", max_slowdown="0.1")
    assert status == 0, said
    assert act(tmp_path, run="none; touch hacked", max_wait_share="1")[0] == 1
    assert act(tmp_path, run="--help", max_wait_share="1")[0] == 1
    assert not (tmp_path / "hacked").exists()


def test_no_name_becomes_a_command_of_the_workflow(tmp_path: Path) -> None:
    import time

    for name in ("a\n::error::injected\n```\n", "\x1b]0;title\x07\x1b[31mred"):
        for _ in hr.wrap((time.sleep(0.002) or one for one in range(100)), name=name, run=tmp_path / "run"):
            pass
    for limits in (
        {"max_wait_share": "0.01"},
        {"max_wait_share": "0.01", "loader": "\x1b]0;title\x07\x1b[31mred"},
    ):
        status, said, summary = act(tmp_path, run="run", **limits)
        assert status == 3
        lines = said.splitlines()
        assert lines[0].startswith("::stop-commands::")
        assert [line for line in lines if line.startswith("::error")] == lines[-1:]
        assert lines[-1].startswith("::error title=headrace check::FAILED")
        assert all(one.isprintable() for one in lines)
        assert all(not line or line.startswith(("    ", "###")) for line in summary.splitlines())
        assert "\x1b" not in summary


def test_every_input_of_the_action_is_used() -> None:
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    inputs = re.findall(r"^  ([a-z-]+):$", text.split("runs:")[0], re.MULTILINE)
    passed = dict(re.findall(r"^        (INPUT_\w+): \$\{\{ inputs\.([a-z-]+) \}\}$", text, re.MULTILINE))
    assert sorted(passed.values()) == sorted(inputs)
    script = (ROOT / "tools" / "check_action.sh").read_text(encoding="utf-8")
    for variable, name in passed.items():
        assert variable == "INPUT_" + name.upper().replace("-", "_")
        assert variable in script
    assert "${{" not in text.split("run: '")[1]
