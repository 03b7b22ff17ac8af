#!/usr/bin/env bash
# Runs every benchmark in turn: the C++ programs of build/native/bench, then benchmarks/*/bench_*.py.
# Machine, compiler and commit come first: a figure without them cannot be compared with anything.
#
#     make bench                       all of them
#     benchmarks/run.sh record queue   scenarios whose name contains "record" or "queue"
set -euo pipefail
cd "$(dirname "$0")/.."

python=.venv/bin/python
programs=build/native/bench/benchmarks

wanted() { # scenario: true when no filter was given or one of them matches
  local scenario=$1 filter
  [ "${#filters[@]}" -eq 0 ] && return 0
  for filter in "${filters[@]}"; do
    [[ $scenario == *"$filter"* ]] && return 0
  done
  return 1
}
filters=("$@")

commit=$(git rev-parse --short HEAD 2>/dev/null || echo none)
[ -z "$(git status --porcelain 2>/dev/null)" ] || commit+=" with uncommitted changes"
echo "machine   $(awk -F': ' '/model name/ {print $2; exit}' /proc/cpuinfo), $(nproc) cores, $(awk '/MemTotal/ {printf "%.0f GiB", $2 / 1048576}' /proc/meminfo)"
echo "system    $(. /etc/os-release && echo "$PRETTY_NAME"), Linux $(uname -r)"
echo "compiler  $(c++ --version | head -n 1)"
[ -x "$python" ] && echo "python    $("$python" -c 'import platform; print(platform.python_version())')"
echo "commit    $commit"
echo "load      $(cut -d' ' -f1-3 /proc/loadavg)"

status=0
for program in "$programs"/bench_*; do
  [ -x "$program" ] && [ -f "$program" ] || continue
  scenario=${program##*/bench_}
  wanted "$scenario" || continue
  printf '\n== %s (C++)\n' "$scenario"
  "$program" || status=1
done
for script in benchmarks/*/bench_*.py; do
  [ -f "$script" ] || continue
  scenario=$(basename "$(dirname "$script")")
  wanted "$scenario" || continue
  printf '\n== %s (%s)\n' "$scenario" "$(basename "$script")"
  "$python" "$script" || status=1
done
exit $status
