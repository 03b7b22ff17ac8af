"""A job and a fleet in an object store: moto's server, if it is installed."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import headrace as hr
from headrace.show.cli import main
from test_cluster import write_job
from test_fleet import record, write_fleet

pytest.importorskip("s3fs", reason="needs s3fs: make object-store")
server = pytest.importorskip("moto.server", reason="needs moto: make object-store")


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A file system with an empty bucket ``job``; workers in other processes find it by the environment."""
    import s3fs

    running = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    running.start()
    host, port = running.get_host_and_port()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "none")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "none")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    s3fs.S3FileSystem.clear_instance_cache()
    system = s3fs.S3FileSystem()
    system.mkdir("job")
    yield system
    s3fs.S3FileSystem.clear_instance_cache()
    # Servers of one process share their buckets.
    urllib.request.urlopen(f"http://{host}:{port}/moto-api/reset", data=b"", timeout=10).close()
    running.stop()


def upload(bucket: Any, job: Path) -> None:
    for path in job.iterdir():
        if path.is_file():
            bucket.pipe_file(f"job/run/{path.name}", path.read_bytes())


def test_a_job_behind_s3_has_the_same_verdict(bucket: Any, tmp_path: Path) -> None:
    job = write_job(tmp_path / "job", {2: {"input": 400}})
    upload(bucket, job)
    local = hr.Cluster.load(job, cache=tmp_path / "local")
    # Four ranks are read in other processes.
    cluster = hr.Cluster.load("s3://job/run", cache=tmp_path / "kept")
    assert [slow.rank for slow in cluster.diagnosis.slow] == [2]
    assert cluster.diagnosis.to_dict() == local.diagnosis.to_dict()
    assert cluster.read_errors == []
    # Kept summaries are used as long as the objects are the same.
    assert len(list((tmp_path / "kept").iterdir())) == 4
    other = write_job(tmp_path / "other", {2: {"input": 400}, 1: {"compute": 900}})
    bucket.pipe_file("job/run/rank1.json.gz", (other / "rank1.json.gz").read_bytes())
    bucket.invalidate_cache()
    again = hr.Cluster.load("s3://job/run", cache=tmp_path / "kept")
    assert again.ranks.column("own_s")[list(again.ranks.column("rank")).index(1)] > 1.6e-3


def test_a_damaged_object_is_one_line(bucket: Any, tmp_path: Path) -> None:
    upload(bucket, write_job(tmp_path / "job", {3: {"input": 400}}, ranks=5))
    bucket.pipe_file("job/run/rank1.json.gz", b"\x1f\x8b\x08" + b"no gzip")
    bucket.pipe_file("job/run/rank4.json.gz", b"")
    done = CliRunner().invoke(main, ["cluster", "s3://job/run"])
    assert done.exit_code == 0, done.output
    assert "Rank 3 is slow" in done.output
    assert [
        line.split(":")[1].strip() for line in done.output.splitlines() if line.startswith("not read")
    ] == [
        "rank1.json.gz",
        "rank4.json.gz",
    ]
    for url in ("s3://job/absent", "s3://nobucket/run"):
        done = CliRunner().invoke(main, ["cluster", url])
        assert (done.exit_code, done.output.count("\n")) == (1, 1), done.output
        assert url in done.output


def test_a_fleet_behind_s3(bucket: Any, tmp_path: Path) -> None:
    recordings = [record(tmp_path / f"recorded{number}", 0.005 * number) for number in (1, 2)]
    root = tmp_path / "fleet"
    planted_hours, damaged = write_fleet(root, recordings, 10)
    for path in root.rglob("rank*"):
        bucket.pipe_file(f"job/fleet/{path.relative_to(root)}", path.read_bytes())
    # Jobs are read in other processes.
    fleet = hr.Fleet.load("s3://job/fleet", cache=tmp_path / "kept")
    assert fleet.to_json() == hr.Fleet.load(root).to_json()
    assert fleet.lost_hours == pytest.approx(planted_hours, rel=0.01)
    assert len({name for name, _ in fleet.read_errors}) == damaged == 2
    assert len(list((tmp_path / "kept").iterdir())) == 9
