"""Tests that need the machine for themselves: threads, processes and cores in real time.

They are no part of `make test`: what they find depends on what else runs. Fixtures are those of tests/python.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

_PYTHON = Path(__file__).parents[1] / "python"
sys.path.insert(0, str(_PYTHON))
_spec = importlib.util.spec_from_file_location("python_conftest", _PYTHON / "conftest.py")
assert _spec is not None
assert _spec.loader is not None
_shared = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = _shared
_spec.loader.exec_module(_shared)

clean_environment = _shared.clean_environment
run = _shared.run
execute = _shared.execute
start = _shared.start
