"""What `import headrace` costs, over an interpreter that imports nothing."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from timing import bar, interleaved, median, paired

ROUNDS = 15


def run(code: str) -> float:
    """ms of a fresh interpreter."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return (time.perf_counter() - began) * 1e3


def main() -> int:
    check = "import headrace, sys; assert 'torch' not in sys.modules and 'numpy' not in sys.modules"
    times = interleaved({"nothing": lambda: run("pass"), "headrace": lambda: run(check)}, ROUNDS)
    print(
        f"  interpreter {median(times['nothing']):.0f} ms, with headrace {median(times['headrace']):.0f} ms"
    )
    over = paired(times["nothing"], times["headrace"], lambda a, b: b - a)
    return 0 if bar("import headrace", over, "ms", 60) else 1


if __name__ == "__main__":
    sys.exit(main())
