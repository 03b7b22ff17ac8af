"""What a wheel weighs and holds, and what it says of the machines that it runs on.

`make wheel` builds one and `make test` hands its path over. One of `make portable-wheel` is checked by

    HEADRACE_WHEEL=dist/headrace-0.1.0-...whl python -m pytest tests/python/test_wheel_contents.py
"""

import io
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent.parent / "python" / "headrace"
LARGEST = 6_000_000

# What any Linux with glibc has. A wheel whose own libraries are inside needs nothing else.
EVERYWHERE = re.compile(
    r"(libc|libm|libdl|libpthread|librt|libgcc_s|ld-linux-x86-64|ld-linux-aarch64)\.so\.\d"
)


@pytest.fixture(scope="module")
def wheel() -> Path:
    path = os.environ.get("HEADRACE_WHEEL")
    if not path:
        pytest.skip("no wheel: `make wheel` builds one, HEADRACE_WHEEL names it")
    return Path(path).resolve(strict=True)


@pytest.fixture(scope="module")
def archive(wheel: Path) -> Iterator[zipfile.ZipFile]:
    with zipfile.ZipFile(wheel) as opened:
        yield opened


@pytest.fixture(scope="module")
def names(archive: zipfile.ZipFile) -> set[str]:
    return {name for name in archive.namelist() if not name.endswith("/")}


@pytest.fixture(scope="module")
def portable(wheel: Path) -> Path:
    if "manylinux_2_28" not in wheel.name:
        pytest.skip("not a wheel of `make portable-wheel`")
    return wheel


def test_a_portable_wheel_is_small(portable: Path) -> None:
    assert portable.stat().st_size <= LARGEST


def test_holds_the_package_and_one_module(names: set[str]) -> None:
    modules = {n for n in names if re.fullmatch(r"headrace/_core\.cpython-\d+-\w+-linux-gnu\.so", n)}
    files = {
        f"headrace/{path.relative_to(PACKAGE).as_posix()}"
        for path in PACKAGE.rglob("*")
        if path.is_file() and path.suffix not in {".so", ".pyc"}
    }

    assert len(modules) == 1
    assert {n for n in names - modules if n.startswith("headrace/")} == files


def test_holds_nothing_beside_it_but_libraries_and_metadata(names: set[str]) -> None:
    packages = r"headrace/|headrace_pytest/__init__\.py"
    expected = re.compile(rf"{packages}|headrace\.libs/[^/]+\.so|headrace-[^/]+\.dist-info/")

    assert {n for n in names if not expected.match(n)} == set()


def test_is_stripped(archive: zipfile.ZipFile, names: set[str]) -> None:
    elf_file = pytest.importorskip("elftools.elf.elffile")
    for name in names:
        if ".so" in Path(name).suffixes:
            elf = elf_file.ELFFile(io.BytesIO(archive.read(name)))
            assert elf.get_section_by_name(".symtab") is None, name
            assert elf.get_section_by_name(".debug_info") is None, name


def test_a_portable_wheel_needs_glibc_alone(
    portable: Path, archive: zipfile.ZipFile, names: set[str]
) -> None:
    elf_file = pytest.importorskip("elftools.elf.elffile")
    assert not [name for name in names if name.startswith("headrace.libs/")]
    (module,) = [name for name in names if name.endswith(".so")]
    elf = elf_file.ELFFile(io.BytesIO(archive.read(module)))
    needed = [tag.needed for tag in elf.get_section_by_name(".dynamic").iter_tags("DT_NEEDED")]

    assert [library for library in needed if not EVERYWHERE.fullmatch(library)] == []


def test_a_portable_wheel_unwinds_with_glibcs_own_unwinder(
    portable: Path, archive: zipfile.ZipFile, names: set[str]
) -> None:
    """Another one could not walk the frames of a thread that glibc ends (cmake/zig.cmake)."""
    elf_file = pytest.importorskip("elftools.elf.elffile")
    (module,) = [name for name in names if name.endswith(".so")]
    elf = elf_file.ELFFile(io.BytesIO(archive.read(module)))
    undefined = {
        s.name for s in elf.get_section_by_name(".dynsym").iter_symbols() if s["st_shndx"] == "SHN_UNDEF"
    }

    assert {"_Unwind_RaiseException", "_Unwind_Resume", "_Unwind_GetLanguageSpecificData"} <= undefined


def test_a_module_exports_one_function(archive: zipfile.ZipFile, names: set[str]) -> None:
    elf_file = pytest.importorskip("elftools.elf.elffile")
    (module,) = [name for name in names if name.startswith("headrace/_core.cpython")]
    elf = elf_file.ELFFile(io.BytesIO(archive.read(module)))
    symbols = elf.get_section_by_name(".dynsym").iter_symbols()

    assert [s.name for s in symbols if s.name and s["st_shndx"] != "SHN_UNDEF"] == ["PyInit__core"]


def test_auditwheel_agrees_with_a_portable_wheels_tag(portable: Path) -> None:
    pytest.importorskip("auditwheel")
    shown = subprocess.run(
        [sys.executable, "-m", "auditwheel", "show", str(portable)],
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert shown.returncode == 0, shown.stderr
    consistent = re.search(r'platform tag:\s+"manylinux_2_(\d+)_\w+"', shown.stdout)
    assert consistent, shown.stdout
    assert int(consistent[1]) <= 28


def test_what_headrace_run_puts_in_front_of_a_scripts_path(names: set[str]) -> None:
    packed = {name for name in names if name.startswith("headrace/run/inject/")}
    assert packed == {f"headrace/run/inject/{file.name}" for file in (PACKAGE / "run/inject").glob("*.py")}
