"""Whatever lies in a folder: no command waits for it, and each says in one line what it is."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import headrace as hr
from headrace.cluster._reading import default_cache
from headrace.common.folder_files import open_file, read_file, replace_file, start_of
from headrace.common.plain import error_line, plain, typed_error_line, without_secrets


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_socket(path: Path) -> None:
    folder = os.open(path.parent, os.O_RDONLY)  # an address has at most 107 bytes
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(f"/proc/self/fd/{folder}/{path.name}")
    os.close(folder)


def make_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def make_folder(path: Path) -> None:
    path.mkdir()


def make_huge(path: Path) -> None:
    """Ten GB of zeros that take no room on the disk."""
    with path.open("wb") as file:
        file.truncate(10_000_000_000)


def make_loop(path: Path) -> None:
    path.symlink_to(path)


def make_gone(path: Path) -> None:
    """As a file that is removed after its name was read."""
    path.symlink_to("/nowhere")


SPECIAL = [make_pipe, make_socket, make_device, make_folder, make_huge, make_loop, make_gone]
special = pytest.mark.parametrize("make", SPECIAL, ids=lambda make: make.__name__.removeprefix("make_"))


def headrace(*arguments: object, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """The command, which must end by itself, with at most one line on stderr."""
    command = [sys.executable, "-m", "headrace", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=folder)
    assert "Traceback" not in done.stderr, done.stderr
    return done


@special
def test_it_is_refused_unread(tmp_path: Path, make: Callable[[Path], None]) -> None:
    path = tmp_path / "file"
    make(path)
    with pytest.raises(hr.FormatError) as refused:
        read_file(path, 1 << 20)
    assert str(refused.value).startswith(f"{path}: ")
    assert "\n" not in str(refused.value)
    if make is not make_huge:
        assert start_of(path, 10) == b""
        with pytest.raises(hr.FormatError, match=r"not a regular file|no such file|symbolic links"):
            open_file(path)


def test_a_file_is_read_up_to_its_limit(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    assert read_file(path, 5) == b"12345"
    with pytest.raises(hr.FormatError, match="at most"):
        read_file(path, 4)
    link = tmp_path / "link"
    link.symlink_to(path)
    assert read_file(link, 5) == b"12345"
    with pytest.raises(hr.FormatError):
        read_file(link, 5, follow=False)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recorded") / "run"
    for _ in hr.wrap((time.sleep(0.002) or one for one in range(40)), name="train", run=folder):
        pass
    return folder


@special
def test_runs_are_shown_beside_it(recorded: Path, tmp_path: Path, make: Callable[[Path], None]) -> None:
    from headrace.results.library import Library

    shutil.copytree(recorded, tmp_path / "run")
    for name in (
        "x.json",
        "y.hrseg",
        "run/rank1.hrseg",
        "run/rank2.live",
        "run/rank0.live",
        "run/trace.json",
    ):
        make(tmp_path / name)
    pytest.importorskip("mcp")
    script = (
        "import sys; from headrace.show.mcp.tools import Tools; "
        "print([(run['name'], run.get('problem')) for run in Tools(sys.argv[1]).list_runs()['runs']])"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    listed = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    leads_out = make in (make_device, make_gone)
    assert ("('run', " in listed.stdout) != leads_out  # an assistant gets nothing from outside
    library = Library(tmp_path, tunings=True)
    runs = library.runs()[0]
    assert "run" in [run.name for run in runs]
    library.summaries(runs)
    assert headrace("report", tmp_path / "run").returncode == 0
    for name in ("x.json", "y.hrseg"):
        done = headrace("report", tmp_path / name)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)


@special
@pytest.mark.parametrize("place", ["trace_view.json", "ascend_pytorch_profiler_0.db", "kernel_details.csv"])
def test_a_profile_with_it_is_one_line(tmp_path: Path, make: Callable[[Path], None], place: str) -> None:
    output = tmp_path / "p_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    make(output / place)
    for beside in ("profiler_info_0.json", "profiler_metadata.json"):
        make(output.parent / beside)
    done = headrace("trace", output.parent)
    if done.returncode == 0:  # a table, large but no more than that: it is named, not read
        assert place == "kernel_details.csv"
        assert f"tables of the profiler (--table NAME): {place.removesuffix('.csv')}" in done.stdout
    else:
        assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    done = headrace("cluster", tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr


@special
def test_a_named_trace_is_one_line(recorded: Path, tmp_path: Path, make: Callable[[Path], None]) -> None:
    path = tmp_path / "trace.json"
    make(path)
    for command in (
        ["trace", path],
        ["timeline", recorded, "--trace", path, "-o", tmp_path / "out.json.gz"],
        ["report", recorded, "--trace", path, "--format", "json"],
    ):
        done = headrace(*command)
        assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr


@special
def test_a_cluster_does_not_wait_for_its_kept_summaries(
    recorded: Path, tmp_path: Path, make: Callable[[Path], None]
) -> None:
    for rank in range(2):
        shutil.copytree(recorded, tmp_path / "job" / f"rank{rank}")
    first = headrace("cluster", tmp_path / "job")
    kept = default_cache(str(tmp_path / "job"))
    assert kept is not None
    summaries = list(kept.iterdir())
    assert len(summaries) == 2
    for path in summaries:
        path.unlink()
        make(path)
    again = headrace("cluster", tmp_path / "job")
    assert (again.returncode, again.stdout.splitlines()[0]) == (
        first.returncode,
        first.stdout.splitlines()[0],
    )


def test_a_pipe_that_the_shell_gives_is_read(tmp_path: Path) -> None:
    """``headrace trace <(zcat trace.json.gz)``: nobody else can put that into the way."""
    (tmp_path / "trace.json").write_text(
        '{"traceEvents": [{"ph": "X", "name": "a", "ts": 1, "dur": 2, "pid": 1, "tid": 1}]}'
    )
    command = f"{sys.executable} -m headrace trace <(sleep 0.3; cat trace.json)"
    done = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "1 event" in done.stdout


@pytest.mark.parametrize("rank", [2**70, 2**62, 10**9, -1])
def test_a_rank_that_no_job_has_is_one_line(tmp_path: Path, rank: int) -> None:
    for place, of in enumerate((0, 1, rank)):
        rows = [
            {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{i}", "ts": 1000 * i, "dur": 900}
            for i in range(9)
        ]
        events = [{**row, "pid": 1, "tid": 1} for row in rows]
        (tmp_path / f"node{place}").mkdir()
        document = {"distributedInfo": {"rank": of}, "traceEvents": events}
        (tmp_path / f"node{place}" / "trace.json").write_text(json.dumps(document))
    done = headrace("cluster", tmp_path)
    assert (done.returncode, done.stdout[:8]) == (0, "2 ranks\n")


# --- output that nobody takes ---


@pytest.mark.parametrize(
    "command", ["report RUN", "report RUN --format html", "check RUN --max-wait-share 1", "--help"]
)
@pytest.mark.parametrize("output", [">&-", ">&- 2>&-", "| true", ">/dev/full"])
def test_output_that_nobody_takes(recorded: Path, command: str, output: str) -> None:
    script = f"{sys.executable} -m headrace {command.replace('RUN', str(recorded))} {output}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert lines == [] or (len(lines) == 1 and lines[0].startswith("headrace: [Errno 28]")), lines


# --- rows that are still in a database's log ---


def database_with_log(path: Path) -> sqlite3.Connection:
    """200 rows that only the log has; the connection is open, as of a profiler that still runs."""
    connection = sqlite3.connect(path)
    connection.executescript(
        "CREATE TABLE TASK (startNs INTEGER, endNs INTEGER, connectionId INTEGER, globalTaskId INTEGER,"
        " deviceId INTEGER, globalPid INTEGER, taskType INTEGER, streamId INTEGER);"
        "CREATE TABLE COMPUTE_TASK_INFO (name, globalTaskId); CREATE TABLE STRING_IDS (id, value);"
        "PRAGMA journal_mode=wal; PRAGMA wal_autocheckpoint=0;"
    )
    rows = [(1_200_000 + i * 1000, 1_200_500 + i * 1000) for i in range(200)]
    connection.executemany("INSERT INTO TASK VALUES (?, ?, 7, 1, 0, 100, 1, 2)", rows)
    connection.commit()
    return connection


def test_rows_in_the_log_of_a_database_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ascend_pytorch_profiler_0.db"
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    connection = database_with_log(path)
    before = {each.name: (each.stat().st_mtime_ns, each.read_bytes()) for each in tmp_path.glob("*.db*")}
    trace = hr.Trace.load(path)
    assert "200 events" in str(trace)
    assert {
        each.name: (each.stat().st_mtime_ns, each.read_bytes()) for each in tmp_path.glob("*.db*")
    } == before
    assert list(scratch.iterdir()) == []
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert "200 events" in str(hr.Trace.load(path))
    connection.close()


def test_a_log_that_is_no_file_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "ascend_pytorch_profiler_0.db"
    database_with_log(path).close()
    os.mkfifo(f"{path}-wal")
    done = headrace("trace", path)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert "-wal: a named pipe, not a regular file" in done.stderr


# --- what is printed ---


def test_names_are_printed_in_one_line_without_control_characters() -> None:
    assert plain("decode") == "decode"
    assert plain("größe 图 ü") == "größe 图 ü"
    assert plain("a\n::error::x\r\tb\u2028c") == "a ::error::x  b c"
    assert plain("\x1b[31mred\x07\u202e\x9b\udcff") == "?[31mred????"


def test_an_error_without_text_is_called_by_its_type() -> None:
    assert error_line(KeyError()) == "KeyError"
    assert error_line(ValueError("two\n  lines\x1b")) == "two lines?"
    assert typed_error_line(TimeoutError()) == "TimeoutError"
    assert typed_error_line(ValueError("x")) == "ValueError: x"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://user:pass@host/a.json", "https://***@host/a.json"),
        ("simplecache::s3://key:secret@bucket/a", "simplecache::s3://***@bucket/a"),
        ("abfs://c/a?sig=abc%3D&se=2026", "abfs://c/a?sig=***&se=***"),
        ("'https://h/a?token=x': 404", "'https://h/a?token=***': 404"),
        ("https://host/a@b.json", "https://host/a@b.json"),
        ("/folder/a?b=c", "/folder/a?b=c"),
    ],
)
def test_secrets_in_urls_are_not_printed(text: str, shown: str) -> None:
    assert without_secrets(text) == shown
    assert error_line(OSError(text)) == shown


def test_no_error_repeats_a_urls_secrets() -> None:
    pytest.importorskip("fsspec")
    for command in ("trace", "cluster"):
        done = headrace(command, "nosuch://user:pa55@host/x.json?sig=s3cret")
        assert done.returncode in (1, 2)
        assert done.stderr.count("\n") == 1
        assert not {"pa55", "s3cret"} & {word for word in ("pa55", "s3cret") if word in done.stderr}, (
            done.stderr
        )


def test_names_of_loaders_are_printed_plainly(tmp_path: Path) -> None:
    for name in ("\x1b]0;title\x07\x1b[31mred", "\x1b]0;title\x07\n::error::red\n"):
        for _ in hr.wrap((time.sleep(0.002) or one for one in range(40)), name=name, run=tmp_path / "run"):
            pass
    for command in (["check", tmp_path / "run", "--max-wait-share", "0.01"], ["report", tmp_path / "run"]):
        done = headrace(*command)
        said = done.stdout + done.stderr
        assert "red" in said
        assert "\x1b" not in said
        assert not [line for line in said.splitlines() if line.startswith("::")]
    done = headrace("report", tmp_path / "run", "--loader", "no\x1b[31m such")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "\x1b" not in done.stderr


def test_ranks_behind_a_chain_of_urls_are_read(recorded: Path, tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    for rank in range(2):
        (tmp_path / "job" / f"node{rank}").mkdir(parents=True)
        shutil.copy(recorded / "rank0.hrseg", tmp_path / "job" / f"node{rank}" / f"rank{rank}.hrseg")
    cluster = hr.Cluster.load(f"simplecache::file://{tmp_path / 'job'}")
    assert len(cluster.ranks) == 2


def test_files_of_a_run_follow_no_link(tmp_path: Path) -> None:
    """Another user may have made the folder, or a link under the name of a file of ours."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    run = tmp_path / "run"
    run.mkdir()
    written = run / "rank0.params.json"
    written.symlink_to(victim)
    replace_file(str(written), "ours")
    assert (victim.read_text(), written.read_text()) == ("precious", "ours")
    assert (written.stat().st_mode & 0o777, written.is_symlink()) == (0o600, False)
    assert list(run.iterdir()) == [written]
    with pytest.raises(UnicodeEncodeError):
        replace_file(str(written), "\udc80")
    assert (written.read_text(), list(run.iterdir())) == ("ours", [written])
    if os.geteuid() == 0:
        os.chown(run, 65534, 65534)
        with pytest.raises(PermissionError, match="another user"):
            replace_file(str(written), "again")


def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    def count() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    make_pipe(tmp_path / "pipe")
    before = count()
    replace_file(str(tmp_path / "file"), "text")
    with pytest.raises(UnicodeEncodeError):
        replace_file(str(tmp_path / "file"), "\ud800")
    with pytest.raises(hr.FormatError):
        open_file(tmp_path / "pipe")
    assert read_file(tmp_path / "file", 100) == b"text"
    assert count() == before
