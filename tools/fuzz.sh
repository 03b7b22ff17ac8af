#!/usr/bin/env bash
# Runs one libFuzzer program for some seconds, from its corpus on; prints its log when it found something.
#
#     tools/fuzz.sh build/fuzz/fuzz/trace_fuzz 60 [seed; 0 draws one]
#
# New inputs are kept in build/corpus/<name>, an input that crashes in build/corpus/<name>.crash-*.
set -euo pipefail
cd "$(dirname "$0")/.."

name=$(basename "$1" _fuzz)
found=build/corpus/$name
mkdir -p "$found"
if "$1" -max_total_time="$2" -seed="${3:-0}" -artifact_prefix="$found." "$found" "fuzz/corpus/$name" >"$found.log" 2>&1; then
  echo "fuzz $name: $(sed -n 's/^Done //p' "$found.log")"
else
  cat "$found.log"
  echo "fuzz $name: failed; see above and $found.*"
  exit 1
fi
