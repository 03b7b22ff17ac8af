"""The report as a page: what it writes, and how it looks in headless Chromium."""

import html
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from chromium import Browser

CORPUS = Path(__file__).parent.parent / "verdicts" / "corpus"
RECORDED = {
    "healthy": "healthy_epochs_500",
    "bound": "loader_too_few_workers_100",
    "alternating": "alternating_500",
    "slow worker": "loader_slow_worker_400",
    "in the loop": "loader_in_loop_400",
}
HOSTILE = (
    "</script><script>alert(1)</script>",
    "\" onmouseover=\"document.title='broken'",
    "'><img src=http://198.51.100.1/x.png onerror=alert(1)>",
    "</style><style>*{display:none}</style>",
    "\u202eevil\u2066 \x1b[31m \x00 " + "x" * 10_000,
)


def recorded_profile(name: str) -> Any:
    return json.loads((CORPUS / f"{RECORDED[name]}.json").read_text(encoding="utf-8"))["profile"]


def hostile_profile() -> Any:
    """Every string that a user may choose is one of HOSTILE."""
    profile = recorded_profile("slow worker")
    named = {op["name"]: HOSTILE[at % len(HOSTILE)] + str(at) for at, op in enumerate(profile["operators"])}
    text = json.dumps(profile)
    for before, after in named.items():
        text = text.replace(json.dumps(before), json.dumps(after))
    profile = json.loads(text)
    profile["loader"] = HOSTILE[0]
    for at, queue in enumerate(profile["queues"]):
        queue["name"] = HOSTILE[at % len(HOSTILE)]
    profile["settings"] = {name: name for name in HOSTILE}
    profile["notes"] = list(HOSTILE)
    return profile


def large_profile() -> Any:
    """64 workers, their 64 index queues, a queue of 10,000 levels."""
    profile = recorded_profile("slow worker")
    for op in profile["operators"]:
        first = op["per_worker"][0]
        if first["worker_id"] is not None and first["worker_id"] >= 0:
            op["per_worker"] = [{**first, "worker_id": number, "name": str(number)} for number in range(64)]
            op["workers"] = 64
    index, *others = (queue for queue in profile["queues"] if queue["name"] not in ("index[1]", "index[2]"))
    profile["queues"] = [{**index, "name": f"index[{number}]"} for number in range(64)] + others[-2:]
    profile["queues"][-1].update(capacity=10_000, occupancy=[1 / 10_001] * 10_001)
    for window in profile["windows"]:
        window["queues"] = []
    return profile


PROFILES: dict[str, Callable[[], Any]] = {
    **{name: (lambda name=name: recorded_profile(name)) for name in RECORDED},
    "empty": dict,
    "hostile": hostile_profile,
    "large": large_profile,
}


def report_of(name: str) -> hr.Report:
    return hr.Report.from_profile_json(json.dumps(PROFILES[name]()))


# --- what is written ----------------------------------------------------------------------------------------


def test_it_is_written_to_a_path(tmp_path: Path) -> None:
    report = report_of("bound")
    assert report.to_html(tmp_path / "report.html") is None  # type: ignore[func-returns-value]
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page == report.to_html()
    assert page.startswith("<!doctype html>\n")
    report.to_html(str(tmp_path / "again.html"))
    assert (tmp_path / "again.html").read_text(encoding="utf-8") == page


def test_a_saved_report_gives_the_same_page(tmp_path: Path) -> None:
    report = report_of("alternating")
    report.save(tmp_path / "report.json")
    assert hr.Report.load(tmp_path / "report.json").to_html() == report.to_html()


def test_the_command_writes_it(tmp_path: Path) -> None:
    report = report_of("bound")
    report.save(tmp_path / "report.json")

    def headrace(*arguments: object) -> subprocess.CompletedProcess[str]:
        words = ["-m", "headrace", "report", tmp_path / "report.json", "--format", "html", *arguments]
        return subprocess.run(
            [sys.executable, *map(str, words)], capture_output=True, text=True, timeout=60, check=True
        )

    assert headrace().stdout == report.to_html()
    assert headrace("-o", tmp_path / "report.html").stdout == ""
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == report.to_html()


def test_a_cell_is_the_page_in_a_frame() -> None:
    cell = report_of("bound")._repr_html_()
    page = re.fullmatch(r'<iframe srcdoc="([^"]*)" [^<>]*></iframe>', cell)
    assert page is not None
    assert html.unescape(page[1]) == report_of("bound")._html()


@pytest.mark.parametrize("name", PROFILES)
def test_it_names_no_places(name: str) -> None:
    page = report_of(name).to_html()
    assert str(Path.home()) not in page or str(Path.home()) == "/"
    assert os.getcwd() not in page  # noqa: PTH109
    assert len(page) < 1_000_000


# --- how it looks -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    written = {name: folder / f"{name.replace(' ', '_')}.html" for name in PROFILES}
    for name, path in written.items():
        report_of(name).to_html(path)
    return written


VERDICT = """(heading => {
  const place = heading.getBoundingClientRect();
  return {text: heading.textContent, top: place.top, bottom: place.bottom, shown: heading.checkVisibility()};
})(document.querySelector('h1'))"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("name", PROFILES)
def test_it_shows_the_verdict_and_asks_for_nothing(
    browser: Browser, pages: dict[str, Path], name: str, width: int, scheme: str
) -> None:
    browser.show(pages[name], width, scheme)
    assert browser.messages() == []
    # A browser's own address for its icon is no request: it names the page's empty one.
    assert [url for url in browser.requests() if url != "data:,"] == [pages[name].as_uri()]
    assert browser.ask("document.documentElement.scrollWidth") <= width
    assert browser.ask("document.querySelectorAll('script, img, iframe, object, embed').length") == 0
    verdict = browser.ask(VERDICT)
    assert verdict["shown"]
    assert verdict["top"] >= 0
    assert verdict["bottom"] < 800 or name == "hostile"
    if name != "hostile":
        assert verdict["text"] == report_of(name).to_dict()["diagnosis"]["summary"]


@pytest.mark.parametrize("name", ["bound", "healthy", "alternating"])
@pytest.mark.parametrize("width", [1280, 400])
def test_advice_is_seen_without_scrolling(
    browser: Browser, pages: dict[str, Path], name: str, width: int
) -> None:
    browser.show(pages[name], width)
    tops = browser.ask(
        "[...document.querySelectorAll('.advice .change')].map(e => e.getBoundingClientRect().top)"
    )
    assert len(tops) == len(report_of(name).diagnosis.advice)
    assert all(top < 700 for top in tops[:1])


def luminance(color: list[float]) -> float:
    """Relative luminance of an sRGB colour, as WCAG 2 defines it."""
    linear = [
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4
        for part in (channel / 255 for channel in color)
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


#: [text, its colour, the colour behind it] of every element that has text of its own.
COLORS = """[...document.querySelectorAll('.sheet *')].filter(e => e.checkVisibility() && !e.closest('svg') &&
  [...e.childNodes].some(n => n.nodeType == 3 && n.data.trim())).map(e => {
    const rgb = text => text.match(/[\\d.]+/g).map(Number);
    let back = e;
    while (back && (rgb(getComputedStyle(back).backgroundColor)[3] ?? 1) == 0) back = back.parentElement;
    return [e.textContent.slice(0, 40), rgb(getComputedStyle(e).color).slice(0, 3),
            rgb(getComputedStyle(back).backgroundColor).slice(0, 3)];
  })"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["bound", "healthy", "alternating", "empty"])
def test_every_text_stands_out(browser: Browser, pages: dict[str, Path], name: str, scheme: str) -> None:
    browser.show(pages[name], 1280, scheme)
    found = browser.ask(COLORS)
    assert len(found) > 3
    assert (luminance(found[0][2]) > 0.5) == (scheme == "light")
    for text, color, back in found:
        dark, light = sorted((luminance(color), luminance(back)))
        assert (light + 0.05) / (dark + 0.05) >= 4.5, (text, color, back)


def test_hostile_names_are_text(browser: Browser, pages: dict[str, Path]) -> None:
    browser.show(pages["hostile"], 1280)
    assert "</script><script>alert(1)</script>" in browser.ask("document.querySelector('header').textContent")
    assert "broken" not in browser.driver.title
    assert browser.ask("document.querySelectorAll('style').length") == 2


def test_pictures_have_names(browser: Browser, pages: dict[str, Path]) -> None:
    """What a picture shows is said to those who do not see it."""
    browser.show(pages["bound"], 1280)
    unnamed = (
        "[...document.querySelectorAll('svg')].filter(s => !s.getAttribute('aria-label') && !s.ariaHidden)"
    )
    assert browser.ask(f"{unnamed}.length") == 0
    assert browser.ask("document.querySelectorAll('svg').length") > 10


def test_a_cell_leaves_its_notebook_alone(browser: Browser, tmp_path: Path) -> None:
    host = """<!doctype html><meta charset="utf-8"><title>notebook</title><style>h1{color:rgb(1,2,3)}
      td{color:rgb(4,5,6);text-align:center}</style><body><h1>Notebook</h1><p>Text <b>bold</b></p>
      <table id="own"><tr><td class="number">1</td></tr></table><div class="bar">bar</div>%s</body>"""
    looks = """['h1', 'p', 'b', '#own', '#own td', '.bar', 'body'].map(s => {
      const style = getComputedStyle(document.querySelector(s));
      const names = [...style].filter(name => !/size|height|width|origin/.test(name));
      return names.map(name => style.getPropertyValue(name)).join()})"""
    (tmp_path / "without.html").write_text(host % "", encoding="utf-8")
    (tmp_path / "with.html").write_text(host % report_of("bound")._repr_html_(), encoding="utf-8")
    browser.show(tmp_path / "without.html", 1280)
    before = browser.ask(looks)
    browser.show(tmp_path / "with.html", 1280)
    assert browser.ask(looks) == before
    assert browser.messages() == []
    assert browser.requests() == [(tmp_path / "with.html").as_uri()]
    frame = "document.querySelector('iframe').contentDocument"
    assert (
        browser.ask(f"{frame}.querySelector('.headrace h1').textContent")
        == report_of("bound").to_dict()["diagnosis"]["summary"]
    )
    assert browser.ask(f"getComputedStyle({frame}.querySelector('h1')).color") != "rgb(1, 2, 3)"
    assert browser.ask(f"getComputedStyle({frame}.querySelector('td')).color") != "rgb(4, 5, 6)"
    shown, whole = browser.ask(
        f"[document.querySelector('iframe').clientHeight, {frame}.documentElement.scrollHeight]"
    )
    assert shown >= min(whole - 1, 900), "the frame is as high as a short page"


@pytest.mark.parametrize("name", PROFILES)
def test_the_workers_fit_a_phone(browser: Browser, pages: dict[str, Path], name: str) -> None:
    browser.show(pages[name], 400)
    cut = "[...document.querySelectorAll('.scroll')].filter(box => box.querySelector('table.states')"
    cut += " && !box.closest('details') && box.scrollWidth > box.clientWidth).length"
    assert browser.ask(cut) == 0
