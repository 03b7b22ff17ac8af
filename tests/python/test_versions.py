"""The table of tested versions in docs/install.md: what is pinned, what other pages say, what is there."""

import importlib.metadata
import re
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

tomllib = pytest.importorskip("tomllib", reason="needs Python 3.11")

ROOT = Path(__file__).resolve().parents[2]
#: Extras of pyproject.toml with loaders and trainers, and packages in them that are neither.
EXTRAS = ("frameworks", "streaming", "tensorflow", "keras", "mindspore", "large-loaders")
TOOLS = {
    "ipython",
    "opentelemetry-exporter-otlp-proto-http",
    "opentelemetry-sdk",
    "tensorboard",
}
NEEDED_BY_STREAMING = {"brotli", "catalogue", "cramjam", "filelock", "python-snappy", "xxhash", "zstd"}
#: Names on other pages.
ALIASES = {"tensorflow": "tensorflow-cpu", "nvidia-dali": "nvidia-dali-cuda120"}


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def listed() -> dict[str, list[str]]:
    _, _, table = text_of("docs/install.md").partition("## Tested versions")
    rows = re.findall(r"^\| `([\w-]+)` \| ([\d., ]+) \|", table.partition("\n## ")[0], re.MULTILINE)
    return {name: versions.split(", ") for name, versions in rows}


def pinned() -> dict[str, Requirement]:
    extras = tomllib.loads(text_of("pyproject.toml"))["project"]["optional-dependencies"]
    found = [Requirement(each) for name in EXTRAS for each in extras[name]]
    (torch,) = set(re.findall(r"installing PyTorch ([\d.]+)", text_of("tools/setup.sh")))
    found.append(Requirement(f"torch=={torch}"))
    return {each.name: each for each in found if each.name.lower() not in TOOLS | NEEDED_BY_STREAMING}


def same_release(version: str, shown: str) -> bool:
    return f"{version}.".startswith(f"{shown}.")


def test_it_has_what_the_tests_install() -> None:
    assert set(listed()) == set(pinned())


@pytest.mark.parametrize("name", sorted(listed()))
def test_the_newest_is_the_one_that_is_pinned(name: str) -> None:
    newest = max(listed()[name], key=Version)
    pin = pinned()[name].specifier
    # A pin of one release, or from one release on.
    assert pin.contains(newest) or any(same_release(each.version, newest) for each in pin), pin


@pytest.mark.parametrize("name", sorted(listed()))
def test_what_is_installed_was_tested(name: str) -> None:
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("not installed")
    version = version.partition("+")[0]
    assert any(same_release(version, each) for each in listed()[name]), f"add {version} to docs/install.md"


def test_other_pages_name_the_same_versions() -> None:
    table = listed()
    for line in text_of("docs/loaders.md").splitlines():
        if line.startswith("|") and line.count("|") >= 5:
            cell = line.split("|")[2]
            for name, versions in re.findall(r"([a-z][\w-]+) ((?:\d[\d.]*(?:, )?)+)", cell):
                known = table.get(ALIASES.get(name, name))
                if known is not None:
                    assert set(re.findall(r"[\d.]+", versions)) <= set(known), line
    _, _, trainers = text_of("docs/integrations.md").partition("## Tested versions")
    rows = re.findall(r"^\| (\w+)(?:, with PyTorch)? \| ([\d.]+) \| ([\d.]+) \|$", trainers, re.MULTILINE)
    shown = {name.lower(): versions for name, *versions in rows}
    for name in ("lightning", "transformers", "accelerate", "keras"):
        pairs = zip(shown[name], table[name], strict=True)
        assert all(same_release(version, listed) for version, listed in pairs), name


def test_the_nightly_job_installs_the_oldest() -> None:
    yaml = pytest.importorskip("yaml", reason="needs pyyaml: pip install headrace[test]")
    jobs = yaml.safe_load(text_of(".github/workflows/nightly.yml"))["jobs"]
    oldest, newest = jobs["versions"]["strategy"]["matrix"]["include"]
    table = listed()
    for requirement in map(Requirement, oldest["packages"].split()):
        (pin,) = requirement.specifier
        assert pin.version.removesuffix(".*") == min(table[requirement.name], key=Version)
    assert set(newest["packages"].split()) - {"--upgrade"} <= set(table)
    project = tomllib.loads(text_of("pyproject.toml"))
    assert oldest["python"] == project["project"]["requires-python"].removeprefix(">=")
    build = project["tool"]["cibuildwheel"]["build"].split()[-1]
    assert f"cp{newest['python'].replace('.', '')}-*" == build
