"""The repaired wheel, installed and run in an empty virtual environment.

`make wheel` builds it and `make test` hands its path over; without that there is nothing to test here.
"""

import json
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

# Runs in the new environment: one pass over a wrapped iterator, then which libraries came from where.
PROGRAM = """
import json, sys
import headrace as hr
import headrace._core as core

items = list(hr.wrap(range(10), run=sys.argv[1]))
with open("/proc/self/maps") as maps:
    mapped = sorted({line.split()[-1] for line in maps if ".so" in line})
print(json.dumps({"items": items, "package": hr.__file__, "core": core.__file__, "mapped": mapped}))
"""

# Libraries beyond what the wheel's platform tag promises: loaded at all, they must come from the wheel.
CARRIED = ("libtbb", "libsimdjson", "libisal")


@pytest.fixture(scope="module")
def wheel() -> Path:
    path = os.environ.get("HEADRACE_WHEEL")
    if not path:
        pytest.skip("no wheel: `make wheel` builds one, HEADRACE_WHEEL names it")
    return Path(path).resolve(strict=True)


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty virtual environment with the wheel, and what its metadata asks for, in it."""
    folder = tmp_path_factory.mktemp("wheel") / "venv"
    venv.create(folder, with_pip=False)  # this interpreter's pip installs into it: two seconds saved
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python")]
    subprocess.run([*pip, "install", "--quiet", str(wheel)], check=True, timeout=110)
    return folder


def run(environment: Path, *command: str, cwd: Path) -> str:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "HEADRACE", "LD_"))}
    arguments = [environment / "bin" / command[0], *command[1:]]
    result = subprocess.run(arguments, cwd=cwd, env=clean, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_platform_tag_is_manylinux(wheel: Path) -> None:
    assert "manylinux" in wheel.name


def test_command_says_the_wheels_version(wheel: Path, environment: Path, tmp_path: Path) -> None:
    version = wheel.name.split("-")[1]
    assert version in run(environment, "headrace", "--version", cwd=tmp_path)


def test_scripts_and_templates_of_pages_are_in_it(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {f"headrace/show/view/static/{name}" for name in ("live.js", "idiomorph.min.js")} <= names
    assert {f"headrace/pages/templates/{name}" for name in ("report.html.j2", "style.css")} <= names


def test_wraps_an_iterable_with_the_libraries_it_carries(environment: Path, tmp_path: Path) -> None:
    result = json.loads(run(environment, "python", "-c", PROGRAM, str(tmp_path / "run"), cwd=tmp_path))

    assert result["items"] == list(range(10))
    for file in (result["package"], result["core"]):
        assert Path(file).is_relative_to(environment)
    foreign = [
        p
        for p in result["mapped"]
        if Path(p).name.startswith(CARRIED) and not Path(p).is_relative_to(environment)
    ]
    assert foreign == []
