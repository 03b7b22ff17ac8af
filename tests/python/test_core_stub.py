"""The stub of the native module, which is made at build, describes what the module has."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace import _core

ROOT = Path(__file__).parents[2]
STUB = ROOT / "python/headrace/_core.pyi"

CONFIGURED = ("--mypy-config-file", "pyproject.toml")

# What mypy.stubtest reports and a stub cannot say.
KNOWN = (
    r"\w+ is inconsistent, metaclass differs",  # pybind11's classes have a metaclass of their own
    r'\w+\.__init__ is inconsistent, stub does not have \*args parameter "args"',  # no constructor for Python
    r"\w+\.__getattr__ is not present at runtime",  # attributes are forwarded by a slot of the type
    r"SlotLease\.__buffer__ is not present at runtime",  # before Python 3.12
    r"Queue is a disjoint base at runtime, .*",  # the decorator needs a newer typing_extensions
)


@pytest.mark.timeout(300)  # it type-checks what the stub imports
def test_stubtest_agrees() -> None:
    pytest.importorskip("mypy.stubtest")
    found = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "headrace._core", "--concise", *CONFIGURED],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    known = re.compile(rf"headrace\._core\.(?:{'|'.join(KNOWN)})")
    lines = found.stdout.splitlines()
    assert found.stderr == ""
    assert any(known.fullmatch(line) for line in lines), found.stdout  # it did compare
    assert [line for line in lines if not known.fullmatch(line)] == []


# stubtest does not see the signatures of functions that pybind11 made.

Parameter = tuple[str, bool]  # its name, and whether it has a default


def of_docstring(line: str) -> list[Parameter] | None:
    """The parameters in a docstring's first line, as pybind11 writes it; None for another text."""
    if re.fullmatch(r"\w+\(.*\) -> .*", line) is None:
        return None
    # Defaults that are objects, and classes that are bound later, are not written as Python.
    line = re.sub(r"<[^<>]*>", "...", line).replace("::", ".")
    arguments = ast.parse(f"def {line}: ...").body[0].args  # type: ignore[attr-defined]
    return of_arguments(arguments)


def of_arguments(arguments: ast.arguments) -> list[Parameter]:
    places = arguments.posonlyargs + arguments.args
    without = len(places) - len(arguments.defaults)
    found = [(place.arg, index >= without) for index, place in enumerate(places)]
    found += [
        (k.arg, d is not None) for k, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    ]
    return found


def functions(
    body: list[ast.stmt], owner: Any, prefix: str = ""
) -> Iterator[tuple[str, ast.FunctionDef, Any]]:
    """Each function of the stub, with what the module has under its name."""
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from functions(node.body, getattr(_core, node.name), f"{node.name}.")
        elif isinstance(node, ast.FunctionDef) and not any(
            isinstance(d, ast.Name) and d.id == "property" for d in node.decorator_list
        ):
            yield f"{prefix}{node.name}", node, getattr(owner, node.name, None)


def same(stub: list[Parameter], module: list[Parameter]) -> bool:
    """pybind11 calls a parameter without a name arg0, arg1 ...: any name stands for it in the stub."""
    return len(stub) == len(module) and all(
        had == has and (name == real or re.fullmatch(r"arg\d+", real) is not None)
        for (name, had), (real, has) in zip(stub, module, strict=True)
    )


def test_parameters_are_those_of_the_bindings() -> None:
    compared = 0
    differing = []
    for name, node, function in functions(ast.parse(STUB.read_text(encoding="utf-8")).body, _core):
        module = of_docstring((getattr(function, "__doc__", None) or "").split("\n")[0])
        if module is None:
            continue
        stub = of_arguments(node.args)
        compared += 1
        if not same(stub, module):
            differing.append(f"{name}: {stub} in the stub, {module} in the module")
    assert differing == []
    assert compared > 150
