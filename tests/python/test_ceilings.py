"""tools/ceilings.py on a small tree: what fails, what is counted, and that ceilings only fall."""

import importlib
import shutil
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"


class Tree:
    """A repository whose one room has 1000 lines, and the tools that measure it."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.root = root
        self._capsys = capsys
        self.write("cmake/install.cmake", "set(headrace_public_headers\n  profile/public.h)  # comment\n")
        self.write("src/profile/large.cc", "//\n" * 1000)
        self.write("tools/ceilings.toml", "")

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def run(self, tool: str, *options: str) -> tuple[int | None, list[str]]:
        """Exit status and output of a tool."""
        status = importlib.import_module(tool).main(self.root, *options)
        return status, self._capsys.readouterr().out.splitlines()

    def ceilings(self) -> list[str]:
        return (self.root / "tools/ceilings.toml").read_text(encoding="utf-8").splitlines()


@pytest.fixture
def tree(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Tree:
    monkeypatch.syspath_prepend(TOOLS)
    tree = Tree(tmp_path, capsys)
    assert tree.run("ceilings", "--reset") == (0, [])
    return tree


def test_a_figure_above_its_ceiling_fails(tree: Tree) -> None:
    assert tree.run("ceilings", "--check")[0] == 0
    tree.write("src/profile/more.cc", "//\n")
    status, lines = tree.run("ceilings", "--check")
    assert status == 1
    assert "src/profile: 1001 lines, ceiling 1000: take 1 out of it" in lines


def test_a_ceiling_far_above_fails_until_it_is_lowered(tree: Tree) -> None:
    tree.write("src/profile/large.cc", "//\n" * 981)  # 1.9 % below
    assert tree.run("ceilings", "--check")[0] == 0
    tree.write("src/profile/large.cc", "//\n" * 979)
    status, lines = tree.run("ceilings", "--check")
    assert status == 1
    assert "src/profile: 979 lines, ceiling 1000: lower the ceiling: make ceilings" in lines
    assert tree.run("ceilings") == (0, [])
    assert '"src/profile" = 979' in tree.ceilings()
    assert tree.run("ceilings", "--check")[0] == 0


def test_lowering_raises_nothing(tree: Tree) -> None:
    before = tree.ceilings()
    tree.write("src/profile/more.cc", "//\n" * 100)
    tree.write("src/trace/new.cc", "//\n")
    tree.run("ceilings")
    assert tree.ceilings() == before
    status, lines = tree.run("ceilings", "--check")
    assert status == 1
    assert any(line.startswith("src/trace: 1 lines, ceiling 0: name the room") for line in lines)


def test_small_figures_have_slack_and_rooms_that_are_gone_have_none(tree: Tree) -> None:
    tree.write("src/trace/few.cc", "//\n" * 10)
    tree.run("ceilings", "--reset")
    tree.write("src/trace/few.cc", "//\n" * 7)  # three units
    assert tree.run("ceilings", "--check")[0] == 0
    shutil.rmtree(tree.root / "src/trace")
    assert any(
        line.startswith("src/trace: 0 lines, ceiling 10") for line in tree.run("ceilings", "--check")[1]
    )
    tree.run("ceilings")
    assert not any("src/trace" in line for line in tree.ceilings())


def test_rooms(tree: Tree) -> None:
    """A header counts in the room of its source; the analysis has rooms of the second level."""
    tree.write("include/headrace/profile/public.h", "//\n")
    tree.write("src/analysis/verdict/causes/one.cc", "//\n" * 2)
    tree.write("python/headrace/loaders/kit/base.py", "#\n" * 3)
    tree.write("python/headrace/errors.py", "#\n" * 4)
    tree.write("python/bindings/module.cc", "//\n" * 5)
    tree.write("tests/profile/one_test.cc", "//\n" * 6)
    tree.write("src/profile/notes.txt", "is no code\n")
    tree.run("ceilings", "--reset")
    lines = tree.ceilings()
    assert {
        '"src/profile" = 1001',
        '"src/analysis/verdict" = 2',
        '"python/headrace/loaders" = 3',
        '"python/headrace" = 4',
        '"python/bindings" = 5',
        '"tests" = 6',
        '"product" = 1015',
    } <= set(lines)
    assert ["product", "1,015"] in [line.split() for line in tree.run("sizes")[1]]


def test_headers_imports_and_circles(tree: Tree) -> None:
    tree.write("include/headrace/profile/public.h", '#include "headrace/profile/included.h"\n')
    tree.write("include/headrace/profile/included.h", "//\n")
    tree.write("include/headrace/profile/inner.h", '#include "headrace/profile/other.h"\n')
    tree.write("include/headrace/profile/other.h", "//\n")
    tree.write(
        "src/profile/other.cc", '#include "headrace/profile/other.h"\n#include "headrace/profile/inner.h"\n'
    )
    of_types = "import re\nif TYPE_CHECKING:\n    import os\n"
    inside = "def f():\n    import os\n    def g():\n        from headrace import quick, round\n"
    tree.write("python/headrace/late.py", of_types + inside)
    tree.write("python/headrace/round.py", "from headrace.late import f\n")
    tree.write("python/headrace/quick.py", "def g():\n    from headrace.late import f\n")
    lines = tree.run("sizes")[1]
    assert "headers that are not installed: 2" in lines
    kinds = [line.partition("(")[2] for line in lines if line.startswith("imports inside functions")]
    assert kinds == ["library): 1", "circle): 1", "time): 2"]
    circle = lines.index("units whose includes lead back to them:")
    assert lines[circle + 1 :] == ["  include/headrace/profile/inner", "  include/headrace/profile/other"]


def test_numbers_of_cxx(tree: Tree) -> None:
    tree.write(
        "src/analysis/verdict/rule.cc",
        """\
#include "file_7.5.h"
// 0.3 in a comment, and 'a quote
constexpr double kShare = 0.3, kOne = 1;
constexpr int kNowhere = -1;
constexpr std::size_t kMaxPhases = 64;
constexpr int kBuffer = 1 << 20;
constexpr std::size_t kSteps[] = {0, 15,
                                  60};
constexpr std::array<std::string_view, 6> kWords{"a 0.7", "b"};
struct GateThresholds {
  double starved = 0.05;  ///< 5 %
  int fewest = 8;
  int none = 0;
};
double judge(std::array<double, 4> x, int count) {
  if (count >= 12 || count > 2) return x[3] * 0.5 + 1e9;
  return f(0.7) * 3;
}
""",
    )
    found = [
        line.removeprefix("src/analysis/verdict/rule.cc:")
        for line in tree.run("hand_set_numbers", "--list")[1]
    ]
    assert found == [
        *(
            "3: kShare = 0.3",
            "3: kShare kOne = 1",
            "5: kMaxPhases = 64  (cap)",
            "6: kBuffer = 1 << 20  (cap)",
        ),
        *("7: kSteps 15", "7: kSteps 60", "11: starved = 0.05", "12: fewest = 8"),
        *("16: >= 12", "17: 0.7", "17: * 3"),
    ]
    assert "src/analysis/verdict                     9       2" in tree.run("hand_set_numbers")[1]


def test_numbers_of_python(tree: Tree) -> None:
    tree.write(
        "python/headrace/watch/rule.py",
        '''\
"""0.3 in a docstring."""
_SHARE = 0.3
_MAX_CALLS = 2000
_MAX_SHARE = 0.4
_FIRST, LATER = 50, -1
RATES: dict[str, float] = {"a": 0.1, "b": 1 / 255}
_PARTS = range(7)
lower = 9
class Rule:
    LEAST_BYTES = 64 << 20
    def judge(self, x):
        return x * 0.5 > 12 or x[4] < 1.5
''',
    )
    found = [
        line.removeprefix("python/headrace/watch/rule.py:")
        for line in tree.run("hand_set_numbers", "--list")[1]
    ]
    assert found == [
        *("2: _SHARE = 0.3", "3: _MAX_CALLS = 2000  (cap)", "4: _MAX_SHARE = 0.4", "5: (_FIRST, LATER) = 50"),
        *("6: RATES = 0.1", "6: RATES = 1 / 255", "10: LEAST_BYTES = 64 << 20  (cap)", "12: 12", "12: 1.5"),
    ]
