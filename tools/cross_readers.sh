#!/usr/bin/env bash
# The native module that only reads, compiled and linked on Linux for a system that this machine cannot run: what breaks
# there is noticed here.
#
#     tools/cross_readers.sh aarch64-macos|x86_64-macos|x86_64-windows-gnu PYTHON [SETTING OF CMAKE...]
#
# Needs the tools and sources of `make portable-wheel` (build/portable). The headers of PYTHON stand for those of the other
# system, so the result is a check and no module to hand out. Windows needs its own: -DPython_INCLUDE_DIR=FOLDER and
# -DPython_LIBRARY=python3XX.lib.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -ge 2 ] || { sed -n '2,10s/^# \?//p' "$0" >&2; exit 2; }
target=$1
python=$2
shift 2
portable=$PWD/build/portable
build=$portable/$target

include() { "$python" -c "import sysconfig; print(sysconfig.get_path('include'))"; }
settings=(-DHEADRACE_ZIG="$portable/tools/ziglang/zig" -DHEADRACE_ZIG_TARGET="$target" -DHEADRACE_FETCH_DEPENDENCIES=ALL)
for folder in "$portable"/sources/*; do
  [ ! -d "$folder" ] || settings+=("-DFETCHCONTENT_SOURCE_DIR_$(basename "${folder^^}")=$folder")
done
cmake -G Ninja -S . -B "$build" --toolchain cmake/zig.cmake -DCMAKE_UNITY_BUILD=ON \
  -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_FLAGS_RELEASE=-O1 -DCMAKE_CXX_FLAGS_RELEASE=-O1 \
  -DHEADRACE_RECORDING=OFF -DHEADRACE_PYTHON=ON -DPython_EXECUTABLE="$python" -DPython_INCLUDE_DIR="$(include)" \
  -Dpybind11_DIR="$("$python" -m pybind11 --cmakedir)" "${settings[@]}" "$@"
cmake --build "$build" --target _core
ls -l "$build"/python/_core*
