"""What ``headrace run`` prints when the script has ended, and what it leaves in the run folder."""

import os
import re
import stat
from pathlib import Path
from typing import Any

import pytest

import headrace as hr

LOOP = """
    import sys, time
    import headrace as hr
    for step in hr.wrap(range(30), name=(sys.argv[1:] or ["train"])[0]):
        time.sleep(0.002)
"""

TWO_LOOPS = """
    import time
    import headrace as hr

    def slow():
        for number in range(30):
            time.sleep(0.004)
            yield number

    for _ in hr.wrap(range(20), name="valid"):
        time.sleep(0.004)
    list(hr.wrap(slow(), name="train"))
"""


def test_one_loader(scripts: Any, tmp_path: Path) -> None:
    result = scripts.run("--out", "run", scripts.write(LOOP + "    print('out')\n"))
    assert (result.status, result.out) == (0, b"out\n")
    first, empty, report = result.err.split("\n", 2)
    assert (first, empty) == ("headrace: recorded in run", "")
    assert report == hr.Report.load(tmp_path / "run").to_text().rstrip("\n") + "\n"
    assert stat.S_IMODE((tmp_path / "run").stat().st_mode) == 0o700


def test_two_loaders_the_one_that_waited_most_in_full(scripts: Any, tmp_path: Path) -> None:
    err = scripts.run("--out", "the run", scripts.write(TWO_LOOPS)).err
    listed, report = err.split("\n\n", 1)
    first, *lines = listed.splitlines()
    assert first == "headrace: recorded in 'the run'"
    heads = [line.split()[:4] for line in lines if " batches " in line]
    assert heads == [["train", "30", "batches", "waited"], ["valid", "20", "batches", "waited"]]
    said = hr.Report.load(tmp_path / "the run", loader="train").diagnosis.summary
    assert said in " ".join(listed.split())  # whole
    assert "train runs inside the training loop" in said
    assert lines[-1].endswith("headrace report 'the run' --loader NAME")
    assert report == hr.Report.load(tmp_path / "the run", loader="train").to_text().rstrip("\n") + "\n"


def test_very_many_loaders_are_not_all_listed(scripts: Any) -> None:
    name = scripts.write("import headrace as hr\nfor n in range(20): list(hr.wrap([n], name=f'trial {n}'))\n")
    err = scripts.run("--out", "run", name).err
    assert err.count(" batches ") == 8
    assert "\n  and 12 more\n" in err


def test_a_script_that_fails_after_recording(scripts: Any) -> None:
    result = scripts.run("--out", "run", scripts.write(LOOP + "    raise SystemExit(3)\n"))
    assert result.status == 3
    assert result.err.startswith("headrace: the script ended with status 3 after ")
    assert result.err.split("\n")[0].endswith("; recorded in run")
    assert "\ntrain · 1 epoch · 30 steps" in result.err


class TestFolder:
    def test_by_default_one_below_the_current_folder(self, scripts: Any, tmp_path: Path) -> None:
        scripts.run(scripts.write("import os\nos.chdir('/')\n" + LOOP.replace("\n    ", "\n")))
        (run,) = (path for path in (tmp_path / "headrace-runs").iterdir() if path.is_dir())
        assert [file.name for file in run.glob("*.hrseg*")] == ["rank0.hrseg"]

    def test_of_the_environment(self, scripts: Any, tmp_path: Path) -> None:
        scripts.run(scripts.write(LOOP), environment={"HEADRACE_DIR": "from/above"})
        assert (tmp_path / "from/above/rank0.hrseg").exists()

    def test_out_comes_before_the_environment(self, scripts: Any, tmp_path: Path) -> None:
        scripts.run("--out", "run", scripts.write(LOOP), environment={"HEADRACE_DIR": "from/above"})
        assert (tmp_path / "run/rank0.hrseg").exists()
        assert not (tmp_path / "from").exists()

    def test_ranks_of_one_job_meet(self, scripts: Any, tmp_path: Path) -> None:
        name = scripts.write(LOOP)
        job = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "4000"}
        silent = scripts.run(name, environment={**job, "RANK": "1"})
        assert (silent.status, silent.err) == (0, "")
        spoken = scripts.run(name, environment={**job, "RANK": "0"})
        assert "30 steps" in spoken.err
        files = {file.name for file in (tmp_path / "headrace-runs/127.0.0.1-4000").glob("*.hrseg*")}
        assert files == {"rank0.hrseg", "rank1.hrseg"}

    def test_processes_of_two_ranks_below_one_command(self, scripts: Any, tmp_path: Path) -> None:
        name = scripts.write(LOOP)
        launcher = scripts.write(
            f"""
            import os, subprocess, sys
            for rank in (1, 0):
                command = [sys.executable, {name!r}, f"of {{rank}}"]
                subprocess.run(command, env={{**os.environ, "RANK": str(rank)}}, check=True)
            """,
            "launcher.py",
        )
        err = scripts.run("--out", "run", launcher).err
        assert {file.name for file in (tmp_path / "run").glob("*.hrseg*")} == {"rank0.hrseg", "rank1.hrseg"}
        assert "of 0 needs" in err  # neither starves: the report is that of rank 0
        assert "starve alike" not in err
        assert "headrace report run --rank N" in err
        assert re.search(r"\nof [01] · 1 epoch", err)

    def test_a_run_within_a_run_leaves_the_report_to_the_outer_one(
        self, scripts: Any, tmp_path: Path
    ) -> None:
        inner = scripts.write(LOOP)
        command = f"[sys.executable, '-m', 'headrace', 'run', {inner!r}]"
        outer = scripts.write(
            f"import subprocess, sys\nsys.exit(subprocess.run({command}).returncode)", "o.py"
        )
        err = scripts.run("--out", "run", outer).err
        assert err.count("\ntrain · 1 epoch") == 1
        assert err.count("headrace: ") == 1
        assert {file.name for file in (tmp_path / "run").glob("*.hrseg*")} == {"rank0.hrseg"}

    def test_an_earlier_run_stays_and_is_not_reported(self, scripts: Any, tmp_path: Path) -> None:
        scripts.run("--out", "run", scripts.write(TWO_LOOPS))
        earlier = (tmp_path / "run/rank0.hrseg").read_bytes()
        err = scripts.run("--out", "run", scripts.write(LOOP), "again").err
        assert (tmp_path / "run/rank0.hrseg").read_bytes() == earlier
        assert "\nagain · 1 epoch" in err
        assert "other loaders" not in err
        assert " batches " not in err
        assert {"again", "train", "valid"} <= set(hr.Report.load(tmp_path / "run").loaders)

    def test_a_run_that_records_beside_this_one_is_not_reported(self, scripts: Any, tmp_path: Path) -> None:
        with hr.session(run=tmp_path / "run"):
            list(hr.wrap(range(50), name="of_another"))
            err = scripts.run("--out", "run", scripts.write(LOOP)).err
        assert "\ntrain · 1 epoch" in err
        assert "of_another" not in err

    def test_one_that_cannot_be_made_has_a_replacement(self, scripts: Any, tmp_path: Path) -> None:
        scripts.write("", "file")
        (tmp_path / "temporary").mkdir()
        temporary = {"TMPDIR": str(tmp_path / "temporary")}
        err = scripts.run("--out", "file/run", scripts.write(LOOP), environment=temporary).err
        (made,) = (tmp_path / "temporary").iterdir()
        assert err.splitlines()[0].endswith(f"recording in {made} instead")
        assert (made / "rank0.hrseg").exists()
        assert "\ntrain · 1 epoch · 30 steps" in err


class TestNothingRecorded:
    @pytest.mark.parametrize(
        "source", ["pass", "import headrace as hr; hr.wrap([1])", "import headrace as hr; iter(hr.wrap([1]))"]
    )
    def test_it_says_so_and_leaves_nothing(self, scripts: Any, tmp_path: Path, source: str) -> None:
        name = scripts.write(source)
        result = scripts.run(name)
        assert result.status == 0
        line, *hint = result.err.splitlines()
        assert line.startswith("headrace: nothing was recorded: no loader was iterated")
        assert "get_batch = hr.wrap(get_batch)" in "\n".join(hint)
        if source == "pass":
            assert list(tmp_path.iterdir()) == [tmp_path / name]

    def test_the_lines_that_it_shows_work(self, scripts: Any, tmp_path: Path) -> None:
        hint = scripts.run(scripts.write("pass")).err.splitlines()
        shown = [line.strip() for line in hint if "get_batch" in line or "import" in line]
        imports, called, wrapped = [line for line in shown if "headrace:" not in line]
        taken = called.partition("as in ")[2].rstrip(":")
        assert taken == 'x, y = get_batch("train")'
        source = [imports, "def get_batch(split): return [1], [2]", wrapped]
        source += ["for _ in range(7):", f"    {taken}", "assert (x, y) == ([1], [2])"]
        result = scripts.run("--out", "run", scripts.write("\n".join(source)))
        assert result.status == 0, result.err
        report = hr.Report.load(tmp_path / "run")
        assert (report.loader, report.profile.sink.steps) == ("get_batch", 7)

    def test_with_the_scripts_own_failure(self, scripts: Any) -> None:
        result = scripts.run(scripts.write("import sys; sys.exit(9)"))
        (line,) = result.err.splitlines()
        assert line.startswith("headrace: the script ended with status 9 after ")
        assert "nothing was recorded" in line

    def test_a_folder_of_the_user_stays(self, scripts: Any, tmp_path: Path) -> None:
        (tmp_path / "mine").mkdir()
        scripts.run("--out", "mine", scripts.write("pass"))
        assert (tmp_path / "mine").is_dir()

    def test_a_torn_segment_is_one_line(self, scripts: Any) -> None:
        name = scripts.write(
            "import os\nfolder = os.environ['HEADRACE_DIR']\nos.mkdir(folder)\n"
            "open(folder + '/rank0.hrseg', 'w').write('torn')\n"
        )
        result = scripts.run("--out", "run", name)
        assert result.status == 0
        (line,) = result.err.splitlines()
        assert line.startswith("headrace: no report: ")

    def test_a_torn_segment_beside_a_good_one(self, scripts: Any) -> None:
        tear = "import os\nfolder = os.environ['HEADRACE_DIR']\nos.mkdir(folder)\n"
        tear += "open(folder + '/rank0.hrseg', 'w').write('torn')\n"
        name = scripts.write(tear + LOOP.replace("\n    ", "\n"))
        result = scripts.run("--out", "run", name)
        assert result.status == 0
        assert "\ntrain · 1 epoch · 30 steps" in result.err


def test_other_ranks_say_nothing_about_trouble_either(scripts: Any) -> None:
    scripts.write("", "file")
    name = scripts.write("import sys; sys.exit(2)")
    result = scripts.run("--out", "file/run", name, environment={"RANK": "3", "WORLD_SIZE": "4"})
    assert (result.status, result.err) == (2, "")


@pytest.mark.parametrize("size", [{}, {"WORLD_SIZE": "1"}])
def test_a_single_process_has_a_report_whatever_its_rank(scripts: Any, size: dict[str, str]) -> None:
    result = scripts.run("--out", "run", scripts.write(LOOP), environment={"RANK": "1", **size})
    assert result.status == 0
    assert "30 steps" in result.err


def test_the_script_is_not_told_of_a_folder_that_changes(scripts: Any) -> None:
    name = scripts.write("import os; print(os.environ['HEADRACE_DIR'])")
    said = scripts.run("--out", "a/../run", name).out.decode().strip()
    assert said == os.path.join(scripts.folder, "run")  # noqa: PTH118 - as the environment has it


class TestPage:
    """``--open``"""

    @pytest.fixture
    def browser_script(self, tmp_path: Path) -> Path:
        """A browser that notes what it is given, and which signals are blocked for it."""
        script = tmp_path / "bin/browser"
        script.parent.mkdir()
        script.write_text(
            f'#!/bin/sh\necho "$1" > {tmp_path}/opened\ngrep SigBlk /proc/self/status > {tmp_path}/blocked\n'
        )
        script.chmod(0o755)
        return script

    def test_is_opened_in_the_browser(self, scripts: Any, tmp_path: Path, browser_script: Path) -> None:
        name = scripts.write(TWO_LOOPS)
        result = scripts.run("--open", "--out", "run", name, environment={"BROWSER": str(browser_script)})
        assert result.status == 0
        assert result.err.endswith("headrace: page: run/headrace-page.html\n")
        page = tmp_path / "run/headrace-page.html"
        assert (tmp_path / "opened").read_text() == page.as_uri() + "\n"
        assert (tmp_path / "blocked").read_text().split() == ["SigBlk:", "0" * 16]
        assert page.read_text() == hr.Report.load(tmp_path / "run", loader="train").to_html()

    def test_is_written_where_there_is_no_display(self, scripts: Any, tmp_path: Path) -> None:
        nowhere = {"BROWSER": "", "DISPLAY": "", "WAYLAND_DISPLAY": ""}
        result = scripts.run("--open", "--out", "run", scripts.write(LOOP), environment=nowhere)
        assert result.err.endswith("headrace: page: run/headrace-page.html\n")
        assert (tmp_path / "run/headrace-page.html").exists()

    def test_of_a_script_that_fails(self, scripts: Any, browser_script: Path) -> None:
        name = scripts.write(LOOP + "    raise SystemExit(3)\n")
        result = scripts.run("--open", "--out", "run", name, environment={"BROWSER": f"{browser_script} %s"})
        assert result.status == 3
        assert "page: run/headrace-page.html" in result.err

    def test_a_browser_that_does_not_start(self, scripts: Any) -> None:
        result = scripts.run("--open", "--out", "run", scripts.write(LOOP), environment={"BROWSER": "/none"})
        assert result.status == 0
        assert result.err.endswith("headrace: no browser could be started; open the page yourself\n")

    def test_nothing_recorded_no_page(self, scripts: Any, tmp_path: Path, browser_script: Path) -> None:
        environment = {"BROWSER": str(browser_script)}
        scripts.run("--open", "--out", "run", scripts.write("pass"), environment=environment)
        assert not (tmp_path / "opened").exists()
        assert not (tmp_path / "run").exists()
