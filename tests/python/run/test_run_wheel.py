"""What ``headrace run`` puts in front of a script's path is in the wheel.

`make wheel` builds it and `make test` hands its path over; without that there is nothing to test here.
"""

import os
import zipfile
from pathlib import Path

import pytest

from headrace.run.environment import INJECT

# Absolute before a test changes its folder.
WHEEL = os.environ.get("HEADRACE_WHEEL") and Path(os.environ["HEADRACE_WHEEL"]).resolve()


def test_the_injected_files_are_in_the_wheel() -> None:
    if not WHEEL:
        pytest.skip("no wheel: `make wheel` builds one, HEADRACE_WHEEL names it")
    with zipfile.ZipFile(WHEEL) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/")]
    packed = {name for name in names if name.startswith("headrace/run/inject/")}
    assert packed == {f"headrace/run/inject/{file.name}" for file in Path(INJECT).glob("*.py")}
