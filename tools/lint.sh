#!/usr/bin/env bash
# Every formatter and linter, no change: tools/lint.sh C++-FILES...
set -euo pipefail
cd "$(dirname "$0")/.."
python_folders=(python tests tools benchmarks samples)
set -x
{ set +x; .venv/bin/clang-format --dry-run -Werror "$@"; set -x; } 2>/dev/null
.venv/bin/ruff check "${python_folders[@]}"
.venv/bin/ruff format --check "${python_folders[@]}"
.venv/bin/mypy
.venv/bin/python tools/check_floors.py
.venv/bin/python tools/ceilings.py --check
