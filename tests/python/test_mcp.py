"""``headrace mcp``: what an assistant gets over the wire, and what it cannot get."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from device_traces import two_steps
from headrace.errors import UsageError
from headrace.show.mcp.tools import MAX_CHARACTERS, Tools

if not os.environ.get("CI"):
    pytest.importorskip("mcp", reason="needs headrace[mcp]")

RECORDS = """
import sys, time, headrace as hr
work = lambda item: time.sleep(0.004) or item
pipe = hr.source(range(150)).map(work, name="decode", workers=int(sys.argv[2]))
for _ in hr.wrap(pipe, run=sys.argv[1], name="train"):
    time.sleep(0.001)
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two runs, and another beside it."""
    place = tmp_path_factory.mktemp("mcp")
    for name, workers in (("before", "1"), ("after", "4")):
        subprocess.run([sys.executable, "-c", RECORDS, str(place / "runs" / name), workers], check=True)
    shutil.copytree(place / "runs" / "before", place / "secret")
    (place / "runs" / "link").symlink_to(place / "secret")
    return place / "runs"


def session(folder: Path, talk: Callable[[Any], Any]) -> Any:
    """``talk`` with the command, started as an assistant does."""
    from mcp import ClientSession, StdioServerParameters, stdio_client

    async def speak() -> Any:
        command = StdioServerParameters(command=sys.executable, args=["-m", "headrace", "mcp", str(folder)])
        async with stdio_client(command) as (reads, writes), ClientSession(reads, writes) as client:
            await client.initialize()
            return await talk(client)

    return asyncio.run(asyncio.wait_for(speak(), 60))


def field(answer: Any, name: str) -> Any:
    """Version 1 of the SDK has other names: isError for is_error."""
    first, *rest = name.split("_")
    return getattr(answer, name if hasattr(answer, name) else first + "".join(map(str.title, rest)))


def test_an_assistant_finds_and_reads_the_runs(runs: Path) -> None:
    async def talk(client: Any) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == {"list_runs", "report", "what_if", "compare", "trace_tables"}
        assert all(field(tool.annotations, "read_only_hint") and tool.description for tool in tools.values())

        async def ask(name: str, **arguments: Any) -> Any:
            answer = await client.call_tool(name, arguments)
            assert not field(answer, "is_error"), answer
            return field(answer, "structured_content")

        listed = (await ask("list_runs"))["runs"]
        assert [one["name"] for one in listed] == ["after", "before"]
        assert listed[1]["kind"] == "input_bound"
        assert listed[1]["operator"] == "decode"
        said = await ask("report", run="before")
        assert said["verdict"]["operator"] == "decode"
        assert said["advice"][0]["parameter"] == "decode.workers"
        change = {said["advice"][0]["parameter"]: said["advice"][0]["to"]}
        predicted = await ask("what_if", run="before", changes=change)
        assert predicted["step_s"] < said["step"]["step_s"]
        compared = await ask("compare", a="before", b="after")
        assert compared["comparison"]["step"]["ratio"] < 0.7
        refused = await client.call_tool("report", {"run": "../secret"})
        assert field(refused, "is_error")
        assert "list_runs" in refused.content[0].text

    session(runs, talk)


def test_nothing_outside_of_the_folder_is_read(runs: Path) -> None:
    two_steps().write(runs.parent / "outside.json")
    (runs / "linked.json").symlink_to(runs.parent / "outside.json")
    tools = Tools(runs)
    for name in ("../secret", str(runs.parent / "secret"), "link", "..", "", "before/../../secret"):
        with pytest.raises(UsageError, match="no run"):
            tools.report(name)
    for path in (
        "../outside.json",
        str(runs.parent / "outside.json"),
        "linked.json",
        "file:///etc/passwd",
        "a\0",
    ):
        with pytest.raises(UsageError, match="inside the folder"):
            tools.trace_tables(path, "kernels")
    assert "link" not in [run["name"] for run in tools.list_runs()["runs"]]


def test_no_link_inside_of_a_run_leads_out(runs: Path, tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    (folder / "run").mkdir(parents=True)
    (folder / "traces" / "deeper").mkdir(parents=True)
    shutil.copytree(runs / "after", folder / "own")
    (folder / "run" / "rank0.hrseg").symlink_to(runs.parent / "secret" / "rank0.hrseg")
    (folder / "traces" / "deeper" / "trace.json").symlink_to(two_steps().write(tmp_path / "outside.json"))
    tools = Tools(folder)
    assert [run["name"] for run in tools.list_runs()["runs"]] == ["own"]
    with pytest.raises(UsageError, match="no run"):
        tools.report("run")
    with pytest.raises(UsageError, match="inside the folder"):
        tools.trace_tables("traces", "kernels")
    (folder / "again").symlink_to(folder / "own")
    assert tools.report("again")["loader"] == "train"


def test_parts_of_a_report_and_their_limits(runs: Path) -> None:
    tools = Tools(runs)
    operators = tools.report("before", part="operators")["operators"]
    assert "decode" in [one["name"] for one in operators]
    for part in ("diagnosis", "sink", "operators", "queues", "windows", "host", "steps"):
        assert len(json.dumps(tools.report("before", part=part))) < MAX_CHARACTERS + 1000
    with pytest.raises(UsageError, match="there are diagnosis"):
        tools.report("before", part="everything")
    with pytest.raises(UsageError, match="decode"):
        tools.what_if("before", {"nothing.workers": 2})


def test_tables_of_a_trace(runs: Path) -> None:
    two_steps().write(runs / "trace.json")
    tools = Tools(runs)
    assert "time_breakdown" in tools.trace_tables("trace.json")["tables"]
    found = tools.trace_tables("trace.json", "time_breakdown")
    assert found["of_rows"] == 1
    assert found["rows"][0]["idle_s"] > 0
    with pytest.raises(UsageError, match="no table 'secrets'"):
        tools.trace_tables("trace.json", "secrets")


def test_without_the_sdk_it_says_what_to_do(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from headrace.show.mcp.server import make_server

    monkeypatch.setitem(sys.modules, "mcp.types", None)
    with pytest.raises(UsageError, match=r"pip install 'headrace\[mcp\]'"):
        make_server(Tools(runs))
