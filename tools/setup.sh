#!/usr/bin/env bash
# The steps of `make setup`; each may be called alone, and each does nothing where there is nothing to do.
#
#     tools/setup.sh system          Debian packages of tools/build-packages.txt, test-packages.txt (sudo when not root)
#     tools/setup.sh check           Debian packages of tools/check-packages.txt, and what a browser is driven with
#     tools/setup.sh bench           Debian packages of tools/bench-packages.txt
#     tools/setup.sh lint            formatters and linters, into .venv
#     tools/setup.sh venv            .venv, made with $PYTHON (default: python3)
#     tools/setup.sh requirements    what pyproject.toml asks for, into .venv
#     tools/setup.sh project         the project itself, editable, without build isolation
#     tools/setup.sh torch           PyTorch's CPU build, for the tests
#     tools/setup.sh frameworks      the loaders and trainers that have tests of their own (CI; after torch)
#     tools/setup.sh streaming       MosaicML's streaming, for its tests (CI; after frameworks)
#     tools/setup.sh tensorflow      TensorFlow's CPU build, for its tests
#     tools/setup.sh mindspore       MindSpore, for its tests (CI)
#     tools/setup.sh integrations    Keras, MLflow, W&B, a Jupyter kernel, for their tests
#     tools/setup.sh large-loaders   Ray Data and DALI, for their tests
#     tools/setup.sh more-loaders    batchgenerators, litdata, MONAI, PyG, obstore, for their tests
#     tools/setup.sh cluster-engines  Ray, Dask and mpi4py, for the tests of headrace cluster
#     tools/setup.sh object-store    moto's server and s3fs, for the tests of headrace cluster
#     tools/setup.sh docs            what `make docs` needs: mkdocs, and the Debian packages of tools/docs-packages.txt
#     tools/setup.sh portable        Debian packages of tools/portable-packages.txt
#     tools/setup.sh demo            `make demo`, with the headrace of .venv, a wheel of this version, or a quick build
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'setup: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

# Packages that this release turned out not to have, so that they are not looked for again.
unavailable=.venv/.stamps/unavailable-packages

packages_files=(tools/build-packages.txt tools/test-packages.txt)

# --- system -----------------------------------------------------------------------------------------------------

package_lines() { sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "${packages_files[@]}"; }

# Lines of the list of which no alternative is installed. One dpkg-query for all of them: this runs at every setup.
missing_lines() {
  local installed line name
  installed=" $(dpkg-query -W -f '${db:Status-Status} ${Package}\n' 2>/dev/null | awk '$1 == "installed" {printf "%s ", $2}')"
  package_lines | while IFS= read -r line; do
    for name in ${line//|/ }; do
      [[ $installed == *" $name "* ]] && continue 2
    done
    grep -qxF "$line" "$unavailable" 2>/dev/null || printf '%s\n' "$line"
  done
}

# The first alternative that this release has.
available_package() {
  local name
  for name in "$@"; do
    apt-cache show "$name" >/dev/null 2>&1 && { echo "$name"; return; }
  done
  return 1
}

setup_system() {
  [ -z "${HEADRACE_SKIP_SYSTEM:-}" ] || return 0
  if ! command -v dpkg-query >/dev/null; then
    say "not Debian or Ubuntu, nothing checked: install what ${packages_files[*]} names"
    return 0
  fi
  local missing as_root=() packages=() line package
  missing=$(missing_lines)
  [ -n "$missing" ] || return 0
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || die "Debian packages are missing, and there is no sudo. As root, run:" \
      "apt-get install $(sed 's/ *|.*//' <<<"$missing" | tr '\n' ' ')(or go on without: HEADRACE_SKIP_SYSTEM=1)"
    as_root=(sudo)
  fi
  say "Debian packages missing: $(tr '\n' ',' <<<"$missing" | sed 's/,$//; s/,/, /g')"
  "${as_root[@]}" apt-get update -qq
  while IFS= read -r line; do
    # shellcheck disable=SC2086  # alternatives are words on purpose
    if package=$(available_package ${line//|/ }); then
      packages+=("$package")
    else
      say "this release has no $line: left out"
      mkdir -p "${unavailable%/*}" && echo "$line" >>"$unavailable"
    fi
  done <<<"$missing"
  [ "${#packages[@]}" -gt 0 ] || return 0
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null
}

setup_portable() {
  packages_files=(tools/portable-packages.txt)
  setup_system
}

setup_bench() {
  packages_files=(tools/bench-packages.txt)
  setup_system
}

# --- Python -----------------------------------------------------------------------------------------------------

# An interpreter that can build the module: 3.10 or newer, with venv and with its headers.
usable_python() {
  command -v "$1" >/dev/null && "$1" - <<'PYTHON' >/dev/null 2>&1
import ensurepip, os, sys, sysconfig, venv
sys.exit(not (sys.version_info >= (3, 10) and os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h"))))
PYTHON
}

setup_venv() {
  if [ -x "$venv/bin/python" ] && "$venv/bin/python" -c 'import pip' 2>/dev/null; then return 0; fi
  local python
  for python in "${PYTHON:-python3}" /usr/bin/python3; do
    if usable_python "$python"; then
      say "making $venv with $("$python" --version)"
      "$python" -m venv "$venv"
      return 0
    fi
    say "$python is not Python 3.10 or newer with venv and headers"
  done
  die "no usable Python: set PYTHON, e.g. make setup PYTHON=python3.12"
}

venv=.venv
pip_install() { "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$@"; }

setup_requirements() {
  say "installing the Python packages to build and test"
  .venv/bin/python tools/requirements.py demo mcp prometheus test top view | pip_install -r /dev/stdin
}

setup_lint() {
  .venv/bin/python tools/requirements.py lint | pip_install -r /dev/stdin
}

setup_wheel-tools() {
  .venv/bin/python tools/requirements.py wheel | pip_install -r /dev/stdin
}

setup_check() {
  packages_files=(tools/check-packages.txt)
  setup_system
  .venv/bin/python tools/requirements.py browser | pip_install -r /dev/stdin
}

setup_project() {
  say "building the native module and installing headrace into .venv (editable)"
  pip_install --no-build-isolation --no-deps -e .
}

# The newest PyTorch from the default registry brings several GB of CUDA libraries; the tests need none of them.
setup_torch() {
  [ "${HEADRACE_TORCH:-}" != skip ] || { say "HEADRACE_TORCH=skip: tests that need PyTorch will be skipped"; return 0; }
  .venv/bin/python -c 'import importlib.metadata as m; m.version("torch")' 2>/dev/null && return 0
  say "installing PyTorch 2.13.0 (CPU) for the tests"
  local version
  for version in 2.13.0+cpu 2.13.0; do
    # shellcheck disable=SC2086  # several arguments in one variable
    pip_install ${HEADRACE_TORCH_PIP_ARGS:-} "torch==$version" 2>/dev/null && return 0
  done
  die "PyTorch 2.13.0 cannot be installed; give pip the CPU index in HEADRACE_TORCH_PIP_ARGS, or set HEADRACE_TORCH=skip"
}

setup_frameworks() {
  [ "${HEADRACE_TORCH:-}" != skip ] || return 0
  say "installing the loaders and trainers that have tests of their own"
  .venv/bin/python tools/requirements.py frameworks | pip_install -r /dev/stdin
}

# Without what it asks for: it wants older releases of packages that others test with, and clouds that no test needs.
setup_streaming() {
  [ "${HEADRACE_TORCH:-}" != skip ] || return 0
  .venv/bin/python -c 'import importlib.metadata as m; m.version("mosaicml-streaming")' 2>/dev/null && return 0
  say "installing MosaicML's streaming for its tests"
  .venv/bin/python tools/requirements.py streaming | pip_install --no-deps -r /dev/stdin ||
    say "MosaicML's streaming cannot be installed here: its tests will be skipped"
}

# Large: its tests are skipped where it is not installed.
setup_tensorflow() {
  .venv/bin/python -c 'import importlib.metadata as m; m.version("tensorflow-cpu")' 2>/dev/null && return 0
  say "installing TensorFlow (CPU) for its tests"
  .venv/bin/python tools/requirements.py tensorflow | pip_install -r /dev/stdin
}

# Large, and not for every platform: its tests are skipped where it cannot be had.
setup_mindspore() {
  .venv/bin/python -c 'import importlib.metadata as m; m.version("mindspore")' 2>/dev/null && return 0
  say "installing MindSpore for its tests"
  .venv/bin/python tools/requirements.py mindspore | pip_install -r /dev/stdin 2>/dev/null ||
    say "MindSpore cannot be installed here: its tests will be skipped"
}

setup_integrations() {
  say "installing Keras, MLflow, W&B and a Jupyter kernel for the tests of integrations"
  .venv/bin/python tools/requirements.py keras mlflow notebook wandb | pip_install -r /dev/stdin
}

setup_large-loaders() {
  say "installing Ray Data and DALI for their tests"
  .venv/bin/python tools/requirements.py large-loaders | pip_install -r /dev/stdin
}

setup_more-loaders() {
  say "installing batchgenerators, litdata, MONAI, PyG and obstore for their tests"
  # litdata asks for a torchvision, which asks for a torch of its own.
  .venv/bin/python tools/requirements.py more-loaders | grep -v litdata | pip_install "torch==2.13.0" -r /dev/stdin
  .venv/bin/python tools/requirements.py more-loaders | grep litdata | pip_install --no-deps -r /dev/stdin
}

setup_cluster-engines() {
  say "installing Ray, Dask and mpi4py for the tests of headrace cluster"
  # Without an MPI library mpi4py raises an error of its own when it is imported, which stops Lightning's trainer.
  packages_files=(tools/cluster-packages.txt)
  setup_system
  .venv/bin/python tools/requirements.py cluster-engines | pip_install -r /dev/stdin
}

setup_object-store() {
  say "installing moto's server and s3fs for the tests of headrace cluster"
  .venv/bin/python tools/requirements.py object-store | pip_install -r /dev/stdin
}

setup_docs() {
  packages_files=(tools/docs-packages.txt)
  setup_system
  .venv/bin/python -c 'import mkdocs, material, mkdocstrings_handlers.python' 2>/dev/null && return 0
  say "installing MkDocs for the documentation"
  .venv/bin/python tools/requirements.py docs | pip_install -r /dev/stdin
}

# A wheel of this very version: in dist, or a release on the package index. It needs neither compiler nor libraries.
setup_wheel() {
  local version python
  version=$(sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
  # No 0.x is ever published: one on the index would be somebody else's.
  compgen -G "dist/headrace-$version-*.whl" >/dev/null || [[ $version != 0.* ]] || return 1
  for python in "${PYTHON:-python3}" /usr/bin/python3; do
    "$python" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || continue
    [ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
    pip_install --no-index --find-links dist --no-deps "headrace==$version" 2>/dev/null ||
      { [[ $version != 0.* ]] && pip_install --only-binary headrace --no-deps "headrace==$version" 2>/dev/null; } ||
      return 1
    say "headrace $version is installed from a wheel"
    "$venv/bin/python" tools/requirements.py demo | pip_install -r /dev/stdin
    return 0
  done
  return 1
}

# For the demo only: without optimisation it compiles in a third of the time, and recording costs more.
quick_build() {
  packages_files=(tools/build-packages.txt)
  setup_system
  setup_venv
  "$venv/bin/python" tools/requirements.py demo | pip_install -r /dev/stdin
  say "building the native module for the demo, not optimised (make setup builds the real one)"
  pip_install --no-build-isolation --no-deps -C build-dir=build/demo/cmake -C cmake.define.CMAKE_CXX_FLAGS_RELEASE=-O0 .
}

setup_demo() {
  if ! .venv/bin/headrace --version >/dev/null 2>&1; then
    venv=build/demo/venv
    "$venv/bin/headrace" --version >/dev/null 2>&1 || setup_wheel || quick_build
  fi
  exec "$venv/bin/headrace" demo
}

case "${1:-}" in
  system | venv | requirements | project | lint | check | bench | wheel-tools | torch | frameworks | streaming | mindspore | tensorflow | large-loaders | more-loaders | integrations | cluster-engines | object-store | docs | portable | demo) "setup_$1" ;;
  *) die "usage: tools/setup.sh system|venv|requirements|project|lint|check|bench|wheel-tools|torch|frameworks|streaming|mindspore|tensorflow|large-loaders|more-loaders|integrations|cluster-engines|object-store|docs|portable|demo" ;;
esac
