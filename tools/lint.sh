#!/usr/bin/env bash
# Every formatter and linter, no change: PY_DIRS="FOLDER..." tools/lint.sh C++-FILES...
set -euo pipefail
cd "$(dirname "$0")/.."
read -ra python_folders <<<"$PY_DIRS"
echo "clang-format: $# files"  # not their names
.venv/bin/clang-format --dry-run -Werror "$@"
# A comment begins with its subject.
! grep -rnE '//+<? *(What|Of|Where|Who|Which|The same) ' include src python/bindings || exit 1
set -x
.venv/bin/ruff check "${python_folders[@]}"
.venv/bin/ruff format --check "${python_folders[@]}"
.venv/bin/mypy
.venv/bin/python tools/check_floors.py
.venv/bin/python tools/ceilings.py --check
