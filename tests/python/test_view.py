"""``headrace view``: who may read, what is listed, and a page that follows a run."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

import headrace as hr
from chromium import Browser
from headrace.errors import Error

if not os.environ.get("CI"):
    pytest.importorskip("starlette", reason="needs headrace[view]")
    pytest.importorskip("uvicorn", reason="needs headrace[view]")

from headrace.results.library import Library
from virtual import VirtualTime

pytest_plugins = ["virtual"]

HOSTILE = "<img src=x onerror=alert(1)> \u202e'\""


RECORDS = """
import sys, time, headrace as hr
pipe = hr.source(range(40)).map(lambda item: time.sleep(0.004) or item, name="decode")
for _ in hr.wrap(pipe, run=sys.argv[1]):
    pass
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that has ended."""
    folder = tmp_path_factory.mktemp("recorded") / "run"
    subprocess.run([sys.executable, "-c", RECORDS, str(folder)], check=True)
    return folder


@contextmanager
def viewing(path: Path, *options: str) -> Iterator[str]:
    """The address that the command printed."""
    with subprocess.Popen(
        [sys.executable, "-m", "headrace", "view", str(path), "--no-browser", *options],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def ask(
    address: str, path: str | None = None, method: str = "GET", **headers: str
) -> tuple[HTTPResponse, str]:
    """The answer to a request for ``path``; for the printed address itself without one."""
    parts = urlsplit(address)
    connection = HTTPConnection(parts.hostname or "", parts.port)
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, f"/?{parts.query}" if path is None else path, headers=names)
    response = connection.getresponse()
    return response, response.read().decode()


def cookie_of(address: str) -> str:
    given = ask(address)[0].getheader("set-cookie") or ""
    assert "HttpOnly" in given
    assert "SameSite=Strict" in given
    return given.split(";")[0]


def test_only_who_knows_the_token_may_read(recorded: Path, tmp_path: Path) -> None:
    shutil.copytree(recorded, tmp_path / "a")
    with viewing(tmp_path) as address:
        host = urlsplit(address).netloc
        assert ask(address)[0].status == 200
        cookie = cookie_of(address)
        assert ask(address, "/", cookie=cookie)[0].status == 200
        for refused in (
            ask(address, "/"),
            ask(address, "/?token=wrong"),
            ask(address, "/static/live.js"),
            ask(address, "/", cookie=cookie + "x"),
            ask(address, "/", cookie=cookie, host="evil.example"),
            ask(address, "/", cookie=cookie, host=f"evil.example:{host.rpartition(':')[2]}"),
            ask(address, "/", cookie=cookie, origin="http://evil.example"),
            ask(address, "/", cookie=cookie, origin="null"),
        ):
            assert refused[0].status == 403
            assert "a" not in refused[1].split()
        assert ask(address, "/", method="POST", cookie=cookie)[0].status == 405
        answer, _ = ask(address, "/", cookie=cookie, origin=f"http://{host}")
        assert answer.status == 200
        policy = answer.getheader("content-security-policy") or ""
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe-inline" not in policy.split("script-src")[1].split(";")[0]


def has_ipv6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "::1", "localhost"])
def test_other_addresses_to_listen_on(recorded: Path, tmp_path: Path, host: str) -> None:
    if ":" in host and not has_ipv6():
        pytest.skip("no IPv6 here")
    shutil.copytree(recorded, tmp_path / "a")
    with viewing(tmp_path, "--host", host) as address:
        parts = urlsplit(address)
        local = {"0.0.0.0": "127.0.0.1", "::": "127.0.0.1", "::1": "[::1]"}.get(host, host)
        near = f"http://{local}:{parts.port}/?{parts.query}"
        for name in {parts.hostname if ":" not in str(parts.hostname) else local, local, "localhost"}:
            assert ask(near, host=f"{name}:{parts.port}")[0].status == 200
        port = parts.port
        for name in (
            "evil.example",
            f"127.0.0.1.evil.example:{port}",
            f"evil.example:{port}",
            f"{local}:1",
            "",
        ):
            assert ask(near, host=name)[0].status == 403
        # Another address of the machine is meant only where all of them were asked for.
        elsewhere = ask(near, host=f"192.0.2.7:{port}")[0].status
        assert elsewhere == (200 if host in ("0.0.0.0", "::") else 403)
        assert ask(near, "/", host=f"{local}:{port}")[0].status == 403
        cookie = cookie_of(near)
        assert ask(near, "/", cookie=cookie, origin="http://evil.example")[0].status == 403


def test_an_address_of_another_machine_is_one_line(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "headrace", "view", str(tmp_path), "--no-browser", "--host"]
    for host in ("192.0.2.7", "no such name"):
        done = subprocess.run([*command, host], capture_output=True, text=True, check=False, timeout=60)
        assert (done.returncode in (1, 2), done.stderr.count("\n")) == (True, 1), done.stderr


def test_the_token_is_on_no_command_line(recorded: Path, tmp_path: Path) -> None:
    """The browser is given a file that only its user reads, and that leads to the address."""
    seen, browser = tmp_path / "seen", tmp_path / "browser"
    browser.write_text(
        "#!/bin/sh\nfile=${1#file://}\n"
        f"stat -c '%a %n' $file > {seen}.part\ncat $file >> {seen}.part\nmv {seen}.part {seen}\n"
    )
    browser.chmod(0o755)
    command = [sys.executable, "-m", "headrace", "view", str(recorded)]
    environment = {**os.environ, "BROWSER": f"{browser} %s"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        while not seen.exists() and process.poll() is None:
            time.sleep(0.02)
        assert ask(address)[0].status == 307
        process.terminate()
    mode, file = seen.read_text().splitlines()[0].split(maxsplit=1)
    assert mode == "600"
    assert f'url={address}"' in seen.read_text()
    assert not Path(file).exists()


def test_runs_that_have_not_changed_are_not_looked_into_again(
    recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(300):
        shutil.copytree(recorded, tmp_path / f"{number:03}")
        for file in [*(tmp_path / f"{number:03}").iterdir(), tmp_path / f"{number:03}"]:
            os.utime(file, (1e9 + number, 1e9 + number))
    library = Library(tmp_path)
    runs, older = library.runs()
    assert ([run.name for run in runs], older) == ([f"{number:03}" for number in range(299, 99, -1)], 100)
    looks: list[str] = []
    look = library._folder._look

    def noted(path: Path, *times: int) -> Any:
        looks.append(path.name)
        return look(path, *times)

    monkeypatch.setattr(library._folder, "_look", noted)
    assert library.find("005") is not None
    assert library.runs()[0] == runs
    assert set(looks) <= {tmp_path.name}  # whose own time has just changed
    # What changes is seen: a newer file in an old run, a run more, one less, a folder that becomes one.
    os.utime(tmp_path / "005" / "rank0.hrseg", (2e9, 2e9))
    shutil.copytree(recorded, tmp_path / "new")
    (tmp_path / "later").mkdir()
    shutil.rmtree(tmp_path / "299")
    names = [run.name for run in library.runs()[0]]
    assert names[0] == "005"
    assert "new" in names
    assert not {"299", "later"} & set(names)
    shutil.copy(recorded / "rank0.hrseg", tmp_path / "later")
    assert "later" in [run.name for run in library.runs()[0]]


def test_a_list_does_not_wait_for_slow_runs(
    recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(recorded, tmp_path / "run")
    library = Library(tmp_path)
    go = threading.Event()
    read = library.summary
    monkeypatch.setattr(library, "summary", lambda run: read(run) if go.wait(60) else None)
    runs = library.runs()[0]
    assert [found.problem for found in library.summaries(runs, 0.05)] == ["reading ..."]
    assert [found.problem for found in library.summaries(runs, 0.05)] == ["reading ..."]
    go.set()
    assert [found.operator for found in library.summaries(runs)] == ["decode"]
    library.close()


def test_nothing_outside_of_the_folder_is_read(recorded: Path, tmp_path: Path) -> None:
    shutil.copytree(recorded, tmp_path / "secret")
    shutil.copytree(recorded, tmp_path / "shown" / "run")
    shutil.copytree(recorded, tmp_path / "shown" / "of" / "team" / "run")
    (tmp_path / "shown" / "link").symlink_to(tmp_path)
    library = Library(tmp_path / "shown")
    assert {run.name for run in library.runs()[0]} == {"run", "of/team/run"}
    assert library.find("link/secret") is None
    with viewing(tmp_path / "shown") as address:
        cookie = cookie_of(address)
        for name in ("../secret", "..%2fsecret", "%2e%2e/secret", quote(str(tmp_path / "secret")), "none"):
            answer, page = ask(address, f"/run/{name}", cookie=cookie)
            assert answer.status == 404
            assert "decode" not in page
        answer, page = ask(address, "/run/of/team/run", cookie=cookie)
        assert (answer.status, "decode" in page) == (200, True)
        assert ask(address, "/static/../server.py", cookie=cookie)[0].status == 404
        assert ask(address, "/static/..%2fserver.py", cookie=cookie)[0].status == 404
        assert ask(address, "/run/run?rank=7", cookie=cookie)[0].status == 404
        assert ask(address, "/run/run?rank=x", cookie=cookie)[0].status == 404


def test_runs_are_listed_newest_first(recorded: Path, tmp_path: Path) -> None:
    for at, name in enumerate(("older", HOSTILE, "newest")):
        shutil.copytree(recorded, tmp_path / name)
        for file in (tmp_path / name).iterdir():
            os.utime(file, (at + 1e9, at + 1e9))
    (tmp_path / "notes.json").write_text('{"mine": 1}')
    (tmp_path / "empty").mkdir()
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "rank0.hrseg").write_bytes(b"no segment")
    library = Library(tmp_path)
    names = [run.name for run in library.runs()[0]]
    assert names == ["damaged", "newest", HOSTILE, "older"]
    with viewing(tmp_path) as address:
        page = ask(address)[1]
        assert "<img" not in page
        assert "input-bound: decode" in page
        assert page.index(">newest<") < page.index(">older<")
        assert "damaged" in page
        cookie = cookie_of(address)
        answer, page = ask(address, f"/run/{quote(HOSTILE)}", cookie=cookie)
        assert answer.status == 200
        assert "decode" in page
        answer, page = ask(address, "/compare?a=older&b=newest", cookie=cookie)
        assert answer.status == 200
        assert "decode" in page
        assert ask(address, "/compare?a=older&b=gone", cookie=cookie)[0].status == 404


TUNED = {
    "of": "train.py",
    "changed": {"num_workers": 3},
    "start_step_s": 0.034,
    "best_step_s": 0.01,
    "took_s": 10.0,
    "trials": [
        {
            "parameter": HOSTILE,
            "predicted_step_s": 0.011,
            "low_s": 0.007,
            "high_s": 0.013,
            "measured_step_s": 0.0093,
            "error_s": 0.0002,
        }
    ],
    "notes": [],
}


def test_the_list_says_what_the_reports_say(recorded: Path, tmp_path: Path) -> None:
    shutil.copytree(recorded, tmp_path / "run")
    (tmp_path / "saved.json").write_text(hr.Report.load(recorded).to_json())
    (tmp_path / "none").mkdir()
    with hr.session(tmp_path / "none"):  # nothing is wrapped in it
        pass
    library = Library(tmp_path)
    for run, said in zip(library.runs()[0], library.summaries(library.runs()[0]), strict=True):
        if run.name == "none":
            assert "nothing was wrapped" in said.problem
            continue
        report = hr.Report.load(run.path)
        found, sink = report.diagnosis, report.profile.sink
        assert (said.kind, said.operator, said.cause) == (found.kind, found.operator, found.cause)
        assert (said.wait_share, said.step_s) == (sink.wait_share, sink.step_s)
    assert library.summaries([]) == []


def test_what_tune_left_is_listed_and_shown(recorded: Path, tmp_path: Path) -> None:
    shutil.copytree(recorded, tmp_path / "run")
    (tmp_path / "tuned.json").write_text(json.dumps({"tuning": TUNED}))
    (tmp_path / "damaged.json").write_text(json.dumps({"tuning": []}))
    assert [run.name for run in Library(tmp_path).runs()[0]] == ["run"]  # others want recordings
    with viewing(tmp_path) as address:
        page = ask(address)[1]
        assert "tuned: num_workers=3" in page
        assert "expected a file of" in page
        assert page.count('aria-label="tuned.json as') == 0  # it cannot be compared
        answer, page = ask(address, "/run/tuned.json", cookie=cookie_of(address))
        assert answer.status == 200
        assert "34 ms -&gt; 10 ms a step" in page
        assert 'class="scatter"' in page
        assert "<img" not in page
        assert "all runs" in page
        answer, page = ask(address, "/run/damaged.json", cookie=cookie_of(address))
        assert "expected a file of" in page
    with viewing(tmp_path / "tuned.json") as address:
        page = ask(address, "/run/tuned.json", cookie=cookie_of(address))[1]
        assert 'class="scatter"' in page
        assert "all runs" not in page


def test_one_run_or_one_saved_report_is_shown_at_once(recorded: Path, tmp_path: Path) -> None:
    shutil.copytree(recorded, tmp_path / "run")
    saved = tmp_path / "saved.json"
    saved.write_text(hr.Report.load(tmp_path / "run").to_json())
    for path in (tmp_path / "run", saved):
        with viewing(path) as address:
            answer, _ = ask(address)
            assert answer.status == 307
            assert answer.getheader("location") == f"/run/{path.name}"
            answer, page = ask(address, f"/run/{path.name}", cookie=cookie_of(address))
            assert answer.getheader("x-headrace-status") == "this run has ended"
            assert "all runs" not in page
            stamp = answer.getheader("etag") or ""
            again, nothing = ask(address, f"/run/{path.name}", cookie=cookie_of(address), if_none_match=stamp)
            assert (again.status, nothing) == (304, "")
            assert int(again.getheader("x-headrace-pause") or 0) >= 2000


def test_a_page_that_takes_long_is_made_less_often() -> None:
    from headrace.show.view.server import pause_ms

    assert [pause_ms(cpu_s) for cpu_s in (0.0, 0.1, 0.3)] == [2000, 2000, 6000]


LIVE = """
import sys, time, headrace as hr
pipe = hr.source(range(10**6)).map(lambda item: time.sleep(0.004) or item, name="decode")
for step, _ in enumerate(hr.wrap(pipe, run="run")):
    if step == 50:
        print("going", flush=True)
        if sys.argv[1:] == ["pauses"]:
            time.sleep(60)
"""


def test_a_run_that_falls_silent_is_said(tmp_path: Path, t: VirtualTime) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", LIVE, "pauses"], stdout=subprocess.PIPE, text=True, cwd=tmp_path
    ) as script:
        assert script.stdout is not None
        try:
            assert script.stdout.readline() == "going\n"
            time.sleep(0.5)  # until its queues are full
            library = Library(tmp_path)
            run = library.find("run")
            assert run is not None
            assert run.running
            assert library.state(run).idle_s == 0
            t.sleep(12)
            state = library.state(run)
            assert state.idle_s == pytest.approx(12)
            assert state.status_text == "no change for 12 s"
        finally:
            script.kill()
    run = library.find("run")
    assert run is not None
    assert not run.running
    assert library.state(run).status_text == "this run has ended"


def test_memory_stays_bounded(recorded: Path, tmp_path: Path) -> None:
    shutil.copytree(recorded, tmp_path / "run")
    saved = hr.Report.load(tmp_path / "run").to_json()
    for number in range(40):
        (tmp_path / f"{number}.json").write_text(saved)
    library = Library(tmp_path)
    for run in library.runs()[0]:
        assert library.summary(run).operator == "decode"
        library.state(run)
    assert len(library._seen) == 16
    shutil.rmtree(tmp_path / "run")
    assert library.find("run") is None


def test_bad_use_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(Error, match="no such file or folder"):
        Library(tmp_path / "none")
    script = (
        "import sys; sys.modules['starlette.applications'] = None; from headrace.show.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "view", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "pip install 'headrace[view]'" in done.stderr


def test_the_page_follows_a_run(browser: Browser, tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", LIVE], stdout=subprocess.PIPE, text=True, cwd=tmp_path
    ) as script:
        assert script.stdout is not None
        try:
            assert script.stdout.readline() == "going\n"
            with viewing(tmp_path) as address:
                browser.show(address, 1280)
                assert "recording now" in browser.ask("document.body.textContent")
                browser.driver.find_element("link text", "run").click()
                steps = "Number(document.querySelector('header').textContent.match(/([0-9,]+) steps/)[1])"
                first = browser.ask(steps)
                assert browser.ask("document.querySelector('.now').textContent").startswith("exposed wait ")
                # One that every page has: further ones appear before it as the verdict becomes known.
                operators = (
                    "[...document.querySelectorAll('summary')].find(s => s.textContent === 'Operators')"
                )
                browser.driver.execute_script(f"{operators}.parentElement.open = true")
                for _ in range(100):
                    time.sleep(0.1)
                    if browser.ask(steps) > first:
                        break
                assert browser.ask(steps) > first
                assert browser.ask(f"{operators}.parentElement.open")
                assert browser.ask("document.querySelector('.status').textContent") == "live"
                script.kill()
                script.wait()
                for _ in range(100):
                    time.sleep(0.1)
                    if browser.ask("document.querySelector('.status').textContent") == "this run has ended":
                        break
                assert browser.ask("document.querySelector('.status').textContent") == "this run has ended"
                assert browser.messages() == []
                server = urlsplit(address).netloc
                assert {urlsplit(url).netloc for url in browser.requests() if url != "data:,"} == {server}
                title = browser.ask("document.title")
            assert json.dumps(title) == '"run - headrace"'
        finally:
            script.kill()


def test_lanes_can_be_looked_at_closer(browser: Browser, recorded: Path, tmp_path: Path) -> None:
    shutil.copytree(recorded, tmp_path / "run")
    shown = "['from', 'to', 'end'].map(name => Number(document.getElementById('lanes').dataset[name]))"

    def wait_for_other(before: list[float]) -> list[float]:
        for _ in range(100):
            if browser.ask(shown) != before:
                break
            time.sleep(0.05)
        now: list[float] = browser.ask(shown)
        assert now != before
        return now

    with viewing(tmp_path) as address:
        browser.show(address, 1280)
        browser.driver.find_element("link text", "run").click()
        newest = browser.ask(shown)
        assert 0 < newest[0] < newest[1] == newest[2]
        rows = browser.ask("[...document.querySelectorAll('#lanes > .time .label')].map(e => e.textContent)")
        assert rows == ["training loop", "source", "decode", "source ->", "decode ->", ""]
        browser.driver.find_element("link text", "the whole run").click()
        whole = wait_for_other(newest)
        assert whole == [0, newest[2], newest[2]]

        from selenium.webdriver.common.action_chains import ActionChains

        lane = browser.driver.find_element("css selector", "#lanes > .time svg")
        wide = lane.size["width"]
        mouse = ActionChains(browser.driver)
        mouse.move_to_element_with_offset(lane, -int(wide / 4), 0).click_and_hold()
        mouse.move_by_offset(int(wide / 2), 0).release().perform()
        middle = wait_for_other(whole)
        assert middle[:2] == pytest.approx([whole[2] / 4, 3 * whole[2] / 4], abs=0.02 * whole[2])
        assert "from=" in browser.ask("location.search")
        browser.driver.back()
        assert wait_for_other(middle) == whole
        browser.driver.find_element("css selector", "#lanes details summary").click()
        browser.driver.find_element("link text", "show it above").click()
        close = wait_for_other(whole)
        assert close[1] - close[0] < whole[2] / 4
        assert browser.messages() == []
        # An address of another time, or of nonsense, is a page as well.
        cookie = cookie_of(address)
        for asked in ("from=1e400&to=2", "from=x&to=", "from=5&to=1", "from=nan&to=nan", "from=1e8&to=1e9"):
            assert ask(address, f"/run/run?{asked}", cookie=cookie)[0].status == 200


HOSTILE_PAGE = """<!doctype html><title>hostile</title><script>
const found = [];
async function look() {
  for (const mode of ["cors", "no-cors"]) {
    try {
      const answer = await fetch(TARGET, {mode, credentials: "include"});
      found.push(mode + ":" + answer.status + ":" + (await answer.text()).length);
    } catch (error) { found.push(mode + ":refused"); }
  }
  const frame = document.body.appendChild(document.createElement("iframe"));
  frame.src = TARGET;
  await new Promise((done) => { frame.onload = frame.onerror = done; setTimeout(done, 2000); });
  try { found.push("frame:" + frame.contentDocument.body.textContent.length); }
  catch (error) { found.push("frame:refused"); }
  document.title = "done";
}
</script><body onload="look()">"""


def test_a_hostile_page_in_the_same_browser_reads_nothing(
    browser: Browser, recorded: Path, tmp_path: Path
) -> None:
    shutil.copytree(recorded, tmp_path / "shown" / "run")
    (tmp_path / "site").mkdir()
    with (
        viewing(tmp_path / "shown") as address,
        subprocess.Popen(
            [sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1"],
            cwd=tmp_path / "site",
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as site,
    ):
        assert site.stdout is not None
        try:
            port = site.stdout.readline().split("port ")[1].split()[0]
            browser.show(address, 1280)  # the browser has the cookie from now on
            target = f"http://{urlsplit(address).netloc}/run/run"
            (tmp_path / "site" / "index.html").write_text(HOSTILE_PAGE.replace("TARGET", json.dumps(target)))
            browser.show(f"http://127.0.0.1:{port}/index.html", 1280)
            for _ in range(100):
                if browser.ask("document.title") == "done":
                    break
                time.sleep(0.1)
            assert browser.ask("found") == ["cors:refused", "no-cors:refused", "frame:refused"]
        finally:
            site.kill()


#: Pairs of texts that lie over each other: a visible text node's boxes, cut by what scrolls around it.
OVERLAPS = """(() => {
  const boxes = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const inside = node.parentElement;
    const isText = node.data.trim() && !inside.closest('style, script, title, select');
    if (!isText || !inside.checkVisibility()) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    let [left, top, right, bottom] = [0, 0, 1e9, 1e9];
    for (let around = inside; around && around !== document.body; around = around.parentElement) {
      if (getComputedStyle(around).overflowX === 'visible') continue;
      const box = around.getBoundingClientRect();
      [left, top] = [Math.max(left, box.left + scrollX), Math.max(top, box.top + scrollY)];
      [right, bottom] = [Math.min(right, box.right + scrollX), Math.min(bottom, box.bottom + scrollY)];
    }
    for (const box of range.getClientRects()) {
      const cut = {
        node, left: Math.max(left, box.left + scrollX), right: Math.min(right, box.right + scrollX),
        top: Math.max(top, box.top + scrollY), bottom: Math.min(bottom, box.bottom + scrollY),
      };
      if (cut.right - cut.left > 1 && cut.bottom - cut.top > 1) boxes.push(cut);
    }
  }
  boxes.sort((a, b) => a.top - b.top);
  const found = [];
  for (let i = 0; i < boxes.length; ++i) {
    for (let k = i + 1; k < boxes.length && boxes[k].top < boxes[i].bottom - 4; ++k) {
      const [a, b] = [boxes[i], boxes[k]];
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      if (a.node !== b.node && wide > 2) found.push(`${a.node.data} / ${b.node.data}`.slice(0, 80));
    }
  }
  return found.slice(0, 5);
})()"""

#: 1,000 steps, then as a process that the kernel ends.
KILLED = """
import os, signal, sys, headrace as hr
for _ in hr.wrap(hr.source(range(1000)), run=sys.argv[1]):
    pass
os.kill(os.getpid(), signal.SIGKILL)
"""


def many_operators() -> Any:
    """200 of them, in a row."""
    from test_report_html import recorded_profile

    profile = recorded_profile("alternating")
    first = profile["operators"][0]
    profile["operators"] += [{**first, "name": f"operator {number}"} for number in range(200)]
    return profile


@pytest.fixture(scope="module")
def every_kind(recorded: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a viewer of runs of every kind."""
    from test_report_html import hostile_profile, large_profile, recorded_profile

    folder = tmp_path_factory.mktemp("kinds")
    shutil.copytree(recorded, folder / HOSTILE)
    profiles = {name: recorded_profile(name) for name in ("healthy", "bound", "alternating")}
    profiles |= {"hostile": hostile_profile(), "large": large_profile(), "200 operators": many_operators()}
    for name, profile in profiles.items():
        (folder / f"{name}.json").write_text(hr.Report.from_profile_json(json.dumps(profile)).to_json())
    empty = RECORDS.replace("range(40)", "range(0)")
    subprocess.run([sys.executable, "-c", empty, str(folder / "empty")], check=True)
    killed = subprocess.run([sys.executable, "-c", KILLED, str(folder / "killed")], check=False)
    assert killed.returncode == -signal.SIGKILL
    (folder / "cut").mkdir()
    (folder / "cut" / "rank0.hrseg").write_bytes((recorded / "rank0.hrseg").read_bytes()[:5000])
    with viewing(folder) as address:
        yield address


@pytest.mark.parametrize(("width", "scheme"), [(360, "light"), (1280, "dark"), (2000, "light")])
def test_runs_of_every_kind_are_shown(browser: Browser, every_kind: str, width: int, scheme: str) -> None:
    browser.show(every_kind, width, scheme)
    links = browser.ask("[...document.querySelectorAll('.runs a')].map(link => link.href)")
    assert len(links) == 10
    server = urlsplit(every_kind).netloc
    for link in [every_kind, *links]:
        browser.show(link, width, scheme)
        assert browser.messages() == []
        assert {urlsplit(url).netloc for url in browser.requests() if url != "data:,"} == {server}
        wide = browser.ask("[document.documentElement.scrollWidth, innerWidth]")
        assert wide[0] <= wide[1], link
        assert browser.ask(OVERLAPS) == [], link
