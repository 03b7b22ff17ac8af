"""packaging/: what a recipe asks for is what pyproject.toml and CMake ask for."""

import re
from pathlib import Path
from typing import Any

import pytest

from headrace.show.cli import main

tomllib = pytest.importorskip("tomllib", reason="needs Python 3.11")

ROOT = Path(__file__).resolve().parents[2]
#: conda-forge's names of what cmake/dependencies.cmake looks for.
CONDA_NAMES = {
    "Boost": "libboost-headers",
    "PkgConfig": "pkg-config",
    "SQLite3": "sqlite",
    "TBB": "tbb-devel",
    "libisal": "isa-l",
}


@pytest.fixture(scope="module")
def recipe() -> dict[str, Any]:
    yaml = pytest.importorskip("yaml", reason="needs pyyaml: pip install headrace[test]")
    text = (ROOT / "packaging/conda/recipe.yaml").read_text(encoding="utf-8")
    read: dict[str, Any] = yaml.safe_load(text)
    return read


@pytest.fixture(scope="module")
def settings() -> dict[str, Any]:
    read: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return read


def as_pip_writes(requirements: list[str]) -> set[str]:
    return {requirement.replace(" ", "") for requirement in requirements}


def test_it_describes_this_project(recipe: dict[str, Any], settings: dict[str, Any]) -> None:
    project = settings["project"]
    assert recipe["context"]["version"] == project["version"]
    assert recipe["about"]["summary"] == project["description"]
    assert recipe["about"]["license"] == project["license"]
    assert recipe["about"]["license_file"] == project["license-files"]
    entries = [f"{name} = {place}" for name, place in project["scripts"].items()]
    assert recipe["build"]["python"]["entry_points"] == entries


def test_it_needs_what_pip_needs(recipe: dict[str, Any], settings: dict[str, Any]) -> None:
    project = settings["project"]
    wanted = {*project["dependencies"], f"python{project['requires-python']}"}
    assert as_pip_writes(recipe["requirements"]["run"]) == wanted
    demo = next(test for test in recipe["tests"] if "script" in test)
    assert as_pip_writes(demo["requirements"]["run"]) == set(project["optional-dependencies"]["demo"])
    assert {line.split()[1] for line in demo["script"] if "--" not in line} <= set(main.commands)


def test_it_builds_with_what_cmake_looks_for(recipe: dict[str, Any], settings: dict[str, Any]) -> None:
    cmake = (ROOT / "cmake/dependencies.cmake").read_text(encoding="utf-8")
    found = re.findall(r"find_package\((\w+) ?([\d.]*).*headrace_required", cmake)
    found += [(name, "") for name in re.findall(r"pkg_check_modules\(.* (\w+)\)", cmake)]
    libraries = {CONDA_NAMES.get(name, name) + (f">={version}" if version else "") for name, version in found}
    wanted = {*settings["build-system"]["requires"], *libraries}
    given = {*recipe["requirements"]["host"], *recipe["requirements"]["build"]}
    lists = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    (oldest,) = re.findall(r"cmake_minimum_required\(VERSION ([\d.]+)\)", lists)
    tools = {"python", "pip", "ninja", f"cmake>={oldest}"}
    assert {each for each in as_pip_writes(list(given)) if "$" not in each} == wanted | tools
