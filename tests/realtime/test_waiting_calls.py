"""Loops over futures and generators under ``headrace run``: found while they wait."""

import re
from pathlib import Path
from typing import Any

import headrace as hr

MAPPED = """
    import time
    from concurrent.futures import ThreadPoolExecutor
    def load(number):
        time.sleep(0.02)
        return number
    with ThreadPoolExecutor(2) as pool:
        got = []
        for item in pool.map(load, range(300)):
            got.append(item)
            time.sleep(0.003)
    print(got == list(range(300)))
"""


def test_a_loop_that_hardly_waits_is_healthy(scripts: Any, tmp_path: Path) -> None:
    healthy = MAPPED.replace("sleep(0.02)", "sleep(0.004)").replace("sleep(0.003)", "sleep(0.01)")
    result = scripts.run("--out", "run", scripts.write(healthy))
    assert result.status == 0, result.err
    # Looks hardly ever find it waiting, so it may not be found; what is recorded is not the input's fault.
    if "nothing was recorded" not in result.err:
        assert hr.Report.load(tmp_path / "run").diagnosis.kind != "input_bound"


def test_a_loop_over_a_generator_is_named_with_its_cure(scripts: Any) -> None:
    result = scripts.run(
        scripts.write("""
            import time
            def read():
                for number in range(400):
                    time.sleep(0.004)
                    yield number
            def batches(numbers):
                yield from zip(*[iter(numbers)] * 2)
            def main():
                for batch in batches(read()):
                    time.sleep(0.004)
            main()
        """)
    )
    assert result.status == 0
    text = result.err
    assert re.search(
        r"the loop in main spends about \d+% of its time in the generator batches \(script.py:\d+\)", text
    )
    assert text.count("for batch in hr.wrap(batches(...))") == 1
