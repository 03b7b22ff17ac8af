"""README and docs/: their Python and commands run or at least parse, their links and names lead somewhere.

The Python of a page runs as one script, in a folder with recordings (`place`). A block that cannot run has
`<!-- not run: why -->` on the line before it, and is compiled only.
"""

from __future__ import annotations

import ast
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from device_traces import two_steps
from docs_stand_ins import NEEDS, SCRIPT, WORDS, stand_ins
from headrace.show.cli import main

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", *(str(path.relative_to(ROOT)) for path in sorted((ROOT / "docs").rglob("*.md")))]
ROOT_PAGES = [path.name for path in sorted(ROOT.glob("*.md"))]
#: Each has its own test: test_pipeline_page.py runs both halves as one script.
TESTED_ELSEWHERE = {"docs/pipeline.md", "docs/pipeline_bodies.md"}

FENCE = re.compile(r"(<!-- not run: [^\n]+ -->\n)?^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HEADRACE = [sys.executable, "-m", "headrace"]
#: Commands that end by themselves, in seconds. Of the others, the options are parsed.
RUN = ("run", "report", "compare", "check", "timeline", "cluster", "trace")


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def python_of(page: str) -> list[tuple[bool, str]]:
    return [(not skip, code) for skip, kind, code in FENCE.findall(text_of(page)) if kind == "python"]


def commands_of(page: str) -> list[list[str]]:
    """The words of each line that begins with `headrace`, without its comment."""
    text = FENCE.sub(lambda fence: "" if fence[1] else fence[0], text_of(page))
    lines = re.findall(r"^(?: {4})?(headrace [a-z].*)$", text, re.MULTILINE)
    cut = [re.split(r" +#|   +", line)[0] for line in lines if "─" not in line]
    words = [[WORDS.get(word, word) for word in shlex.split(line) if word != "ARGS"] for line in cut]
    return [each[1:] for each in words]


COMMANDS = sorted({shlex.join(words) for page in PAGES for words in commands_of(page)})


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a script, its recordings and device traces."""
    folder = tmp_path_factory.mktemp("docs")
    (folder / "train.py").write_text(SCRIPT)
    for out in ("runs/a", "runs/b"):
        done = execute(folder, [*HEADRACE, "run", "--out", out, "train.py"])
        assert done.returncode == 0, done.stderr
    done = execute(folder, [*HEADRACE, "report", "runs/a", "--format", "json", "-o", "report.json"])
    assert done.returncode == 0, done.stderr
    for rank in (0, 1):
        trace = two_steps(rank, late=100 * rank)
        trace.host("user_annotation", "conv1", 1015, 50).host("user_annotation", "conv1", 2015, 50)
        for name in (
            f"rank{rank}.json",
            f"rank{rank}.json.gz",
            f"traces/rank{rank}.json",
            f"runs/job/rank{rank}.json",
        ):
            (folder / name).parent.mkdir(exist_ok=True)
            trace.write(folder / name)
    two_steps().write(folder / "trace.json.gz")
    (folder / "docs").symlink_to(ROOT / "docs")
    return folder


def execute(folder: Path, command: list[str]) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=100, check=False
    )


@pytest.mark.parametrize("page", [page for page in PAGES if python_of(page) and page not in TESTED_ELSEWHERE])
def test_python_runs(page: str, place: Path) -> None:
    for module in NEEDS.get(page, []):
        pytest.importorskip(module)
    blocks = python_of(page)
    for _, code in blocks:
        compile(code, page, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    script = place / (page.replace("/", "_") + ".py")
    run = [code for runs, code in blocks if runs]
    script.write_text("\n".join([stand_ins(page), *run]), encoding="utf-8")
    done = execute(place, [sys.executable, str(script)])
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.parametrize("page", PAGES)
def test_every_block_of_code_runs_or_says_why_not(page: str) -> None:
    blocks = FENCE.findall(text_of(page))
    assert [code[:60] for skip, kind, code in blocks if kind in ("", "cpp") and not skip] == []


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_runs(line: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    name, *arguments = shlex.split(line)
    command = main.commands[name]
    if name in RUN and any((place / word).exists() for word in arguments) and "gallery" not in line:
        done = execute(place, [*HEADRACE, name, *arguments])
        assert done.returncode in ((0, 3) if name == "check" else (0,)), done.stderr
    else:
        with command.make_context(name, arguments, resilient_parsing=False):
            pass


# --- links and names ----------------------------------------------------------------------------------------

LINK = re.compile(r"\]\((?!https?:)([^)\s#]*)(?:#([^)\s]*))?\)")


def slug(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


@pytest.mark.parametrize("page", sorted({*PAGES, *ROOT_PAGES}))
def test_links_lead_somewhere(page: str) -> None:
    prose = re.sub(r"^ {4}.*$", "", FENCE.sub("", text_of(page)), flags=re.MULTILINE)
    for path, anchor in LINK.findall(prose):
        target = (ROOT / page).parent / path if path else ROOT / page
        assert target.exists(), path
        if anchor and target.suffix == ".md":
            headings = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in map(slug, headings), f"{path}#{anchor}"


def test_commands_of_make_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", text_of("Makefile"), re.MULTILINE))
    text = "\n".join(map(text_of, PAGES))
    assert set(re.findall(r"(?:^    |`)make ([a-z-]+)", text, re.MULTILINE)) <= targets


def test_what_the_security_page_names_exists() -> None:
    page = text_of("SECURITY.md")
    tests = [*(ROOT / "tests/python").rglob("*.py"), *(ROOT / "tests/profile").glob("*.cc")]
    source = "\n".join(path.read_text(encoding="utf-8") for path in tests)
    for name in re.findall(r"`(?:\w+\.)?(test_\w+)`", page):
        assert f"def {name}(" in source
    for suite, name in re.findall(r"`([A-Z]\w+)\.([A-Z]\w+)`", page):
        assert f"TEST({suite}, {name})" in source
    (targets,) = re.findall(r"fuzz targets (.*?);", page)
    fuzzed = {path.name.removesuffix("_fuzz.cc") for path in (ROOT / "fuzz").glob("*_fuzz.cc")}
    assert set(re.findall(r"`(\w+)`", targets)) == fuzzed


def test_every_script_of_the_gallery_is_shown() -> None:
    for script in (ROOT / "samples" / "gallery").glob("*.py"):
        assert f"(images/gallery/{script.stem}.png)" in text_of("docs/gallery.md")
