#!/usr/bin/env bash
# Wheels for every Linux with glibc 2.28 or newer, without a container: Zig's compiler links for that glibc, and all
# libraries are inside, statically.
#
#     tools/portable_wheel.sh x86_64|aarch64 PYTHON...      interpreters of this machine, the oldest one first
#
# Everything is in build/portable: the tools, the sources (fetched beforehand by tools/portable_sources.sh, or by CMake),
# and a CMake build per target. The library is compiled once per target, the bindings once per interpreter. For another
# processor than this machine's, an interpreter gives its headers: CPython's are the same for both.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -ge 2 ] || { sed -n '2,10s/^# \?//p' "$0" >&2; exit 2; }
arch=$1
shift
portable=$PWD/build/portable
build=$portable/$arch

# One copy of the build's tools for all interpreters: scikit-build-core empties a build that another copy of it made.
# The oldest interpreter's, because it needs packages that the newer ones have built in.
tools=$portable/tools
if [ ! -d "$tools" ]; then
  "$1" tools/requirements.py wheel portable-wheel |
    "$1" -m pip install --quiet --disable-pip-version-check --target "$tools" -r /dev/stdin
fi
export PYTHONPATH=$tools PATH=$tools/bin:$PATH

define() { settings+=(-C "cmake.define.$1=$2"); }
settings=(-C "build-dir=$build/cmake" -C install.strip=false)
define CMAKE_TOOLCHAIN_FILE "$PWD/cmake/zig.cmake"
define HEADRACE_ZIG "$tools/ziglang/zig"
define HEADRACE_ZIG_TARGET "$arch-linux-gnu.2.28"
define HEADRACE_FETCH_DEPENDENCIES ALL
for folder in "$portable"/sources/*; do
  [ ! -d "$folder" ] || define "FETCHCONTENT_SOURCE_DIR_$(basename "${folder^^}")" "$folder"
done

rm -rf "$build/wheels"
for interpreter in "$@"; do
  abi=$("$interpreter" -c 'import sys; print(f"cpython-{sys.version_info[0]}{sys.version_info[1]}")')
  echo "portable wheel: $abi $arch" >&2
  # What sysconfig would say on that processor.
  _PYTHON_HOST_PLATFORM=linux-$arch SETUPTOOLS_EXT_SUFFIX=.$abi-$arch-linux-gnu.so \
    "$interpreter" -m pip wheel --quiet --disable-pip-version-check --no-build-isolation --no-deps \
    -w "$build/wheels" "${settings[@]}" .
done
mkdir -p dist
# auditwheel knows the platforms of its own processor by name; of another one it finds out.
platform=auto
[ "$arch" != "$(uname -m)" ] || platform=manylinux_2_28_$arch
"$1" -m auditwheel repair --plat "$platform" -w dist "$build"/wheels/*.whl
