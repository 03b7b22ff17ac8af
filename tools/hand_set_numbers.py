"""Count the numbers that somebody chose by hand in the code that judges; `make numbers` prints them by room.

    python tools/hand_set_numbers.py --list  # each of them, with its file and line

In C++ (the rooms `CXX`) and in Python (`PYTHON`) these count:

- each value of a constant: `constexpr ... kName`, or a name in capitals of a module or class;
- each default value in a struct `...Thresholds` or `...Options` of C++;
- any other floating-point literal, and any other integer from 3 on beside a comparison, `*`, `/` or `%`.

A value that is an expression counts once. Outside of constants the numbers in `PLAIN` do not count: halves,
doubles, percent and units. Integers from -2 to 1 never count, because they name places and states. An integer
constant whose name or shift says that it limits a size is a cap; all others are answers.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from sizes import ROOT, code_under

CXX = ("read", "model", "simulate", "verdict", "what_if")  # of the analysis
PYTHON = ("watch", "loaders", "record/budget", "results")

PLAIN = {0.0, 0.5, 1.0, 2.0, 10.0, 100.0, 1024.0, *(10.0**n for n in (-9, -6, -3, 3, 6, 9))}
LEAST = 3  # smaller integers beside an operator are signs, halves and doubles
PLACE = re.compile(r"[=\s]*(-?[01]|-2)\s*")
CAP = re.compile(r"BYTES|SIZE|MAX_|MAX$|MOST_|MOST$|DEEPEST|LIMIT|^k(Max|Longest|Largest)")
SHIFT = re.compile(r"<< ?[123]0\b")

NUMBER = r"(?<![\w.])\d[\d']*(?:\.\d*)?(?:e[-+]?\d+)?[fFuUlLzZ]*\b"
NOT_CODE = re.compile(
    r"""//[^\n]*|/\*.*?\*/|^\s*\#[^\n]*|R"\(.*?\)"|"(?:\\.|[^"\\\n])*"|(?<!\w)'(?:\\.|[^'\\])'""",
    re.DOTALL | re.MULTILINE,
)
DECLARED = r"(?P<name>\w+)\s*(?:\[\w*\])?\s*(?P<value>[={][^;]*);"
CONSTANT = re.compile(r"\bconst(?:expr)? (?P<type>[^;={}()]*?)\b(?=k[A-Z])" + DECLARED)
CHOICES = re.compile(r"\bstruct \w*(?:Thresholds|Options) \{.*?^\};", re.DOTALL | re.MULTILINE)
MEMBER = re.compile(r"^ +(?P<type>[\w:<>]+) " + DECLARED, re.MULTILINE)
INLINE = re.compile(
    rf"(?P<before> (?:[<>=!]=|[<>*/%]) -?)?(?P<number>{NUMBER})(?P<after> (?:[<>=!]=|[<>*/%]) )?"
)


class Number(NamedTuple):
    line: int
    text: str
    cap: bool = False


def is_float(literal: str) -> bool:
    return "." in literal or "e" in literal


def is_cap(name: str, value: str) -> bool:
    return bool(CAP.search(name) or SHIFT.search(value))


def in_cxx(source: str) -> Iterator[Number]:
    code = NOT_CODE.sub(lambda match: "\n" * match[0].count("\n"), source)

    def line_of(match: re.Match[str], group: str) -> int:
        return code.count("\n", 0, match.start(group)) + 1

    def blank(match: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", match[0])

    declared = list(CONSTANT.finditer(code))
    for choices in CHOICES.finditer(code):
        declared += MEMBER.finditer(code, *choices.span())
    for match in declared:
        for value in re.split(r"[,{}]", match["value"]):
            literals = re.findall(NUMBER, value)
            if literals and ("double" in match["type"] or not PLACE.fullmatch(value)):
                cap = is_cap(match["name"], value) and not any(map(is_float, literals))
                yield Number(line_of(match, "name"), f"{match['name']} {value.strip()}", cap)
    for match in INLINE.finditer(CHOICES.sub(blank, CONSTANT.sub(blank, code))):
        value = float(re.sub(r"['fFuUlLzZ]", "", match["number"]))
        operand = match["before"] or match["after"]
        if (is_float(match["number"]) or (operand and value >= LEAST)) and value not in PLAIN:
            yield Number(line_of(match, "number"), match[0].strip())


def literals_in(value: ast.AST) -> list[int | float]:
    """The literals of an expression that is made of numbers only; of another none."""
    if isinstance(value, ast.Constant):
        return [value.value] if type(value.value) in (int, float) else []
    if isinstance(value, ast.UnaryOp):
        return literals_in(value.operand)
    if isinstance(value, ast.BinOp):
        left, right = literals_in(value.left), literals_in(value.right)
        return left + right if left and right else []
    return []


def values_in(value: ast.AST) -> Iterator[ast.expr]:
    """The numbers that a constant holds: itself, or those of its tuples, lists, sets and dictionaries."""
    if isinstance(value, ast.expr) and literals_in(value):
        yield value
    elif isinstance(value, (ast.Tuple, ast.List, ast.Set, ast.Dict)):
        for each in value.values if isinstance(value, ast.Dict) else value.elts:
            yield from values_in(each)


def in_python(source: str) -> Iterator[Number]:
    nodes = list(ast.walk(ast.parse(source)))
    operands: set[ast.AST] = set()
    for node in nodes:
        if isinstance(node, ast.Compare):
            operands |= {node.left, *node.comparators}
        elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div, ast.FloorDiv, ast.Mod)):
            operands |= {node.left, node.right}
    constants: set[ast.AST] = set()
    bodies = (node.body for node in nodes if isinstance(node, (ast.Module, ast.ClassDef)))
    for node in (statement for body in bodies for statement in body):
        if not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.value is None:
            continue
        name = ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target)
        if not re.fullmatch(r"[A-Z0-9_, ()]+", name):
            continue
        constants.update(ast.walk(node.value))
        for value in values_in(node.value):
            if not PLACE.fullmatch(text := ast.unparse(value)):
                whole = all(isinstance(literal, int) for literal in literals_in(value))
                yield Number(value.lineno, f"{name} = {text}", whole and is_cap(name.strip("()"), text))
    for node in nodes:
        if isinstance(node, ast.Constant) and node not in constants and type(node.value) in (int, float):
            chosen = isinstance(node.value, float) or (node in operands and node.value >= LEAST)
            if chosen and float(node.value) not in PLAIN:
                yield Number(node.lineno, str(node.value))


def numbers_by_room(root: Path) -> dict[str, dict[Path, list[Number]]]:
    """Numbers of each file, by room."""
    rooms: dict[str, dict[Path, list[Number]]] = {}
    for room in CXX:
        tops = (root / "include/headrace/analysis" / room, root / "src/analysis" / room)
        files = [path for top in tops for path in code_under(top)]
        rooms[f"src/analysis/{room}"] = {
            path: list(in_cxx(path.read_text(encoding="utf-8"))) for path in files
        }
    for room in PYTHON:
        files = [path for path in code_under(root / "python/headrace" / room) if path.suffix == ".py"]
        rooms[f"python/headrace/{room}"] = {
            path: list(in_python(path.read_text(encoding="utf-8"))) for path in files
        }
    return rooms


def answers_and_caps(root: Path) -> tuple[dict[str, int], dict[str, int]]:
    """How many of either kind each room has."""
    answers, caps = {}, {}
    for room, files in numbers_by_room(root).items():
        kinds = [number.cap for numbers in files.values() for number in numbers]
        answers[room], caps[room] = kinds.count(False), kinds.count(True)
    return answers, caps


def main(root: Path, option: str = "") -> None:
    if option == "--list":
        for files in numbers_by_room(root).values():
            for path, numbers in files.items():
                for number in numbers:
                    kind = "  (cap)" if number.cap else ""
                    print(f"{path.relative_to(root)}:{number.line}: {number.text}{kind}")
        return
    answers, caps = answers_and_caps(root)
    print(f"{'':<34}{'answers':>8}{'caps':>8}")
    for room, count in answers.items():
        print(f"{room:<34}{count:>8}{caps[room]:>8}")
    print(f"{'':<34}{sum(answers.values()):>8}{sum(caps.values()):>8}")


if __name__ == "__main__":
    main(ROOT, *sys.argv[1:])
