"""Minutes that each stage of the gate took here when it last ran, beside its ceiling.

    python tools/times.py                      # `make times`: the table; exit 1 where a stage takes half more
    python tools/times.py stage NAME COMMAND   # run a stage, keep how long it took; its exit status

Ceilings stand in tools/ceilings.toml under [minutes], measured on two quiet cores from an empty clone with
an empty compiler cache. They are looser than others, because a clock is no counter of instructions.
"""

from __future__ import annotations

import subprocess
import sys
import time
from xml.etree import ElementTree

from requirements import tomllib
from sizes import ROOT

KEPT = ROOT / "build/times"
#: A stage may take so many times its ceiling: other programs run on the machine, too.
SLACK = 1.5
#: A Python test is named above so many seconds. So many tests may be, and none longer than LONGEST_TEST_S.
LONG_TEST_S, LONG_TESTS, LONGEST_TEST_S = 3.0, 20, 20.0


def run_stage(name: str, command: list[str]) -> int:
    KEPT.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()
    status = subprocess.run(command, check=False).returncode
    (KEPT / name).write_text(f"{time.monotonic() - begun:.1f}\n", encoding="utf-8")
    return status


def long_tests() -> list[tuple[float, str]]:
    """Seconds and name of each Python test of the last run above LONG_TEST_S, longest first."""
    results = KEPT / "pytest.xml"
    if not results.exists():
        return []
    cases = ElementTree.parse(results).iter("testcase")
    timed = [(float(case.get("time", 0)), f"{case.get('classname')}::{case.get('name')}") for case in cases]
    return sorted((row for row in timed if row[0] > LONG_TEST_S), reverse=True)


def main() -> int:
    limits = tomllib.loads((ROOT / "tools/ceilings.toml").read_text(encoding="utf-8"))["minutes"]
    wrong = []
    print(f"{'stage':<16}{'minutes':>8}{'ceiling':>9}")
    for name, limit in limits.items():
        kept = KEPT / name
        minutes = float(kept.read_text(encoding="utf-8")) / 60 if kept.exists() else None
        print(f"{name:<16}{'-' if minutes is None else f'{minutes:.1f}':>8}{limit:>9}")
        if minutes is not None and minutes > SLACK * limit:
            wrong.append(
                f"{name} took {minutes:.1f} minutes, ceiling {limit}: make it quicker, or say why not"
            )
    tests = long_tests()
    for seconds, name in tests:
        print(f"{seconds:7.1f} s  {name}")
    if len(tests) > SLACK * LONG_TESTS:
        wrong.append(f"{len(tests)} tests took more than {LONG_TEST_S:.0f} s: {LONG_TESTS} may")
    wrong += [f"{name} took {seconds:.0f} s" for seconds, name in tests if seconds > SLACK * LONGEST_TEST_S]
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["stage"]:
        sys.exit(run_stage(sys.argv[2], sys.argv[3:]))
    sys.exit(main())
