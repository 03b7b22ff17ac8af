"""`Report.load`: folders, segments and saved reports, whole and broken; what is wrong is said in one line."""

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import headrace as hr


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run with two loaders and two ranks."""
    folder = tmp_path_factory.mktemp("recorded") / "run"
    with hr.session(run=folder, rank=0):
        list(hr.wrap(range(10), name="train"))
        list(hr.wrap(range(3), name="valid"))
    with hr.session(run=folder, rank=2):
        list(hr.wrap(range(7), name="train"))
    return folder


def refused(path: Any, kind: type[Exception] = hr.Error, **which: Any) -> str:
    """Loading fails with exactly ``kind``; the message, which is one line."""
    with pytest.raises(kind) as caught:
        hr.Report.load(path, **which)
    assert type(caught.value) is kind
    message = str(caught.value)
    assert message
    assert "\n" not in message
    return message


def test_a_folder(recorded: Path) -> None:
    report = hr.Report.load(recorded)
    assert (report.rank, report.ranks) == (0, [0, 2])
    assert sorted(report.loaders) == ["train", "valid"]
    assert report.loader == report.loaders[0]
    assert hr.Report.load(str(recorded), loader="valid").profile.sink.steps == 3
    other = hr.Report.load(recorded, rank=2)
    assert (other.rank, other.loaders, other.profile.sink.steps) == (2, ["train"], 7)


def test_a_segment(recorded: Path) -> None:
    report = hr.Report.load(recorded / "rank2.hrseg")
    assert (report.loader, report.rank, report.ranks, report.profile.sink.steps) == ("train", 2, [2], 7)
    assert hr.Report.load(recorded / "rank0.hrseg", loader="valid").profile.sink.steps == 3
    assert hr.Report.load(recorded / "rank0.hrseg", loader="valid", rank=0).profile.sink.steps == 3


def test_a_saved_report(recorded: Path, tmp_path: Path) -> None:
    report = hr.Report.load(recorded, loader="valid")
    report.save(tmp_path / "saved.json")
    loaded = hr.Report.load(tmp_path / "saved.json", loader="valid", rank=0)
    assert loaded.to_dict() == report.to_dict()
    assert (loaded.loaders, loaded.ranks) == (["valid"], [0])


def test_a_file_too_large_for_a_report_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    with path.open("wb") as file:
        file.write(b'{"profile": {')
        file.truncate(200 << 20)
    said = refused(path, hr.FormatError)
    assert "at most 64 MiB, not 200 MiB" in said


def test_loaders_and_ranks_that_are_not_there(recorded: Path, tmp_path: Path) -> None:
    said = refused(recorded, hr.UsageError, loader="test")
    assert "'train'" in said
    assert "'valid'" in said
    for which in ({"loader": "test"}, {"rank": 1}, {"rank": 99}, {"loader": "valid", "rank": 2}):
        refused(recorded, hr.UsageError, **which)
    refused(recorded / "rank2.hrseg", hr.UsageError, loader="valid")
    refused(recorded / "rank2.hrseg", hr.UsageError, rank=0)
    hr.Report.load(recorded).save(tmp_path / "saved.json")
    refused(tmp_path / "saved.json", hr.UsageError, loader="other")
    refused(tmp_path / "saved.json", hr.UsageError, rank=5)


def test_nothing_there(tmp_path: Path) -> None:
    assert "no such file or folder" in refused(tmp_path / "missing")
    assert "no such file or folder" in refused(tmp_path / "missing.hrseg")


def test_an_empty_folder_and_one_of_another_tool(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert "no recorded run" in refused(tmp_path / "empty")
    other = tmp_path / "lightning_logs"
    (other / "checkpoints").mkdir(parents=True)
    for name in ("events.out.tfevents.1", "hparams.yaml", "rank", "rank_0.log", "rank0.txt", "rankx.hrseg"):
        (other / name).write_bytes(b"something else")
    assert "no recorded run" in refused(other)


def test_a_folder_with_foreign_segments(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "rank0.hrseg").write_bytes(b"not ours" * 1000)
    refused(folder, hr.SegmentError)
    (folder / "rank1.hrseg").mkdir()
    (folder / "rank0.hrseg").unlink()
    refused(folder, hr.SegmentError)


def test_a_broken_segment_does_not_hide_the_others(recorded: Path, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "rank0.hrseg").write_bytes(b"torn")
    (folder / "rank0.2.hrseg").write_bytes((recorded / "rank0.hrseg").read_bytes())
    assert hr.Report.load(folder, loader="train").profile.sink.steps == 10


def test_a_run_in_which_nothing_was_wrapped(tmp_path: Path) -> None:
    with hr.session(run=tmp_path / "idle"):
        hr.Queue[int](2).put(1)
    assert "nothing was wrapped" in refused(tmp_path / "idle")


@pytest.mark.parametrize("length", [0, 1, 7, 8, 100, 1000, 4096, 100_000])
@pytest.mark.parametrize("packed", [True, False])
def test_cut_segments(recorded: Path, tmp_path: Path, length: int, packed: bool) -> None:
    data = (recorded / "rank0.hrseg").read_bytes()
    if not packed:
        data = gzip.decompress(data)  # as a live segment is
    length = min(length, len(data) - 1)
    (tmp_path / "cut.hrseg").write_bytes(data[:length])
    refused(tmp_path / "cut.hrseg", hr.SegmentError)


@pytest.mark.parametrize("longer", [0, 1 << 20])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_segment_of_another_version_says_so(
    recorded: Path, tmp_path: Path, pack: Callable[[bytes], bytes], longer: int
) -> None:
    """Also where it is longer than a segment of this version."""
    content = gzip.decompress((recorded / "rank0.hrseg").read_bytes())
    of_version_1 = content[:8] + (1).to_bytes(4, "little") + content[12:] + bytes(longer)
    (tmp_path / "rank0.hrseg").write_bytes(pack(of_version_1))
    said = refused(tmp_path, hr.SegmentError)
    assert "written by another version of Headrace (layout 1, this one reads" in said
    assert "read it with the version that recorded it" in said


def test_segments_cut_at_every_place_or_with_anything_flipped_never_crash(
    recorded: Path, execute: Callable[..., Any]
) -> None:
    # In a program of its own: a crash here would take every other test along.
    result = execute(
        """
        import gzip, random, sys
        import headrace as hr

        whole = gzip.decompress(open(sys.argv[1], "rb").read())
        chance = random.Random(5)
        said = {"loaded": 0, "refused": 0}

        def load(data):
            with open("broken.hrseg", "wb") as file:
                file.write(data)
            try:
                report = hr.Report.load("broken.hrseg")
                report.to_text(), report.to_json()
                said["loaded"] += 1
            except hr.SegmentError as error:
                assert "\\n" not in str(error)
                said["refused"] += 1
            except hr.Error as error:
                assert "nothing was wrapped" in str(error), error

        for length in range(0, len(whole), len(whole) // 60):
            load(whole[:length])
        for _ in range(120):
            data = bytearray(whole)
            for _ in range(chance.choice((1, 1, 30))):
                # The header and the first tables matter most.
                at = chance.randrange(chance.choice((600, 20_000, len(whole))))
                data[at] = chance.randrange(256)
            load(bytes(data))
        assert said["refused"] > 60, said
        """,
        recorded / "rank0.hrseg",
    )
    assert result.err == ""


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"   ",
        b"{",
        b"[]",
        b"null",
        b"3",
        b'"text"',
        b"{}",
        b'{"profile": null}',
        b'{"profile": []}',
        b'{"profile": 3}',
        b'{"version": "1", "profile": {}}',
        b'{"version": 2, "profile": {}}',
        b'{"version": 99, "loader": "x", "rank": 0, "profile": {}, "diagnosis": {}, "steps": {}}',
        b'{"profile": {"operators": 3}}',
        b'{"profile": {"operators": [3]}}',
        b'{"profile": {"loader": 3}}',
        b'{"profile": {"elapsed_s": "long"}}',
        b'{"profile": {"rank": 1e999}}',
        b'{"profile": {"rank": NaN}}',
        b'{"profile": {"queues": [{"occupancy": [{}]}]}}',
        b'{"profile": {"rank": ' + b"9" * 5000 + b"}}",
        b"[" * 100_000,
        b'{"profile": ' + b'{"a":' * 5000 + b"1" + b"}" * 5001,
        b"\xff\xfe{}",
        b"\x00\x01\x02",
        b'{"traceEvents": []}',
        b'{"profile": {}} trailing',
    ],
    ids=lambda content: ascii(content[:40]),
)
def test_json_that_is_no_report(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "saved.json").write_bytes(content)
    message = refused(tmp_path / "saved.json", hr.FormatError)
    assert "saved.json" in message
    assert len(message) < 1000


def test_a_newer_version_says_so(recorded: Path, tmp_path: Path) -> None:
    document = hr.Report.load(recorded).to_dict()
    document["version"] = 2
    (tmp_path / "newer.json").write_text(json.dumps(document))
    assert "newer Headrace" in refused(tmp_path / "newer.json", hr.FormatError)


def test_fields_of_a_later_release_are_passed_over(recorded: Path, tmp_path: Path) -> None:
    document = hr.Report.load(recorded).to_dict()
    document["profile"]["invented"] = {"a": [1, 2]}
    document["profile"]["sink"]["invented_s"] = 3
    (tmp_path / "later.json").write_text(json.dumps(document))
    assert hr.Report.load(tmp_path / "later.json").profile.sink.steps == document["profile"]["sink"]["steps"]


def test_other_files(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("text")
    assert "run folder" in refused(tmp_path / "notes.txt", hr.FormatError)
    refused("/dev/null", hr.FormatError)
    os.mkfifo(tmp_path / "pipe.hrseg")
    refused(tmp_path / "pipe.hrseg", hr.SegmentError)


def test_error_fields(tmp_path: Path) -> None:
    (tmp_path / "saved.json").write_text('{"profile": oops}')
    with pytest.raises(hr.FormatError) as caught:
        hr.Report.load(tmp_path / "saved.json")
    assert caught.value.path == str(tmp_path / "saved.json")
    assert caught.value.offset == 12
    assert caught.value.expected
    assert issubclass(hr.FormatError, hr.Error)
    assert issubclass(hr.SegmentError, hr.Error)
    assert issubclass(hr.UsageError, hr.Error)
    assert issubclass(hr.DeviceError, hr.Error)


def test_a_report_of_an_older_version_is_read_without_what_it_lacks(tmp_path: Path) -> None:
    corpus = Path(__file__).parent.parent / "verdicts/corpus/loader_too_few_workers_100.json"
    profile = json.loads(corpus.read_text(encoding="utf-8"))["profile"]
    profile.pop("model")
    (tmp_path / "report.json").write_text(json.dumps({"version": 1, "profile": profile}), encoding="utf-8")
    report = hr.Report.load(tmp_path / "report.json")
    assert (report.profile.model, report.profile.slow_ranks) == (None, [])
    assert report.diagnosis.kind == "input_bound"
    assert hr.Report.from_profile_json(report.to_profile_json()).diagnosis.kind == "input_bound"
