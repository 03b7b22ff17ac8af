"""Loops over futures under ``headrace run``: found while they wait."""

from typing import Any


def test_futures_that_are_waited_for_elsewhere_are_left_alone(scripts: Any) -> None:
    result = scripts.run(
        scripts.write("""
            import time
            from concurrent.futures import ThreadPoolExecutor
            result = None
            with ThreadPoolExecutor(1) as pool:
                answer = pool.submit(time.sleep, 1).result()
            print(answer)
        """)
    )
    assert (result.status, result.out) == (0, b"None\n")
    assert "nothing was recorded" in result.err
