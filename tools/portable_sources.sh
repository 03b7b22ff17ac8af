#!/usr/bin/env bash
# The sources of the libraries in a portable wheel, from Debian's source packages: build/portable/sources/NAME.
#
# For a machine that reaches a Debian mirror and not the addresses in cmake/dependencies.cmake. The releases are the
# same; Debian's archives lack some files that are not needed here, so their sums differ.
set -euo pipefail
cd "$(dirname "$0")/.."
sources=$PWD/build/portable/sources
apt=$PWD/build/portable/apt

# This machine's own mirrors, asked for sources; its settings stay as they are.
apt_options=(-qq -o Dir::Etc::sourcelist="$apt/none" -o Dir::Etc::sourceparts="$apt/parts" -o Dir::State::lists="$apt/lists"
  -o APT::Sandbox::User="$(id -un)")

update() {
  local file
  mkdir -p "$apt/parts" "$apt/lists/partial"
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
    [ -e "$file" ] || continue
    sed -E 's/^Types:.*/Types: deb-src/; s/^deb /deb-src /' "$file" >"$apt/parts/${file##*/}"
  done
  # Mirrors of other vendors may have no sources.
  apt-get "${apt_options[@]}" update 2>/dev/null || true
}

# fetch NAME PACKAGE RELEASE ARCHIVE SHA256
fetch() {
  [ ! -d "$sources/$1" ] || return 0
  [ -d "$apt/parts" ] || update
  mkdir -p "$apt/archives" "$sources"
  local version
  version=$(apt-cache "${apt_options[@]}" showsrc "$2" | sed -n "s/^Version: \($3-.*\)/\1/p" | head -1)
  [ -n "$version" ] || { echo "no source package $2 $3: Debian 12 has it" >&2; exit 1; }
  (cd "$apt/archives" && apt-get "${apt_options[@]}" source --download-only "$2=$version")
  echo "$5  $apt/archives/$4" | sha256sum --check --quiet
  rm -rf "$sources/$1.new" && mkdir "$sources/$1.new"
  tar -xf "$apt/archives/$4" -C "$sources/$1.new" --strip-components=1
  mv "$sources/$1.new" "$sources/$1"
}

fetch tbb onetbb 2021.8.0 onetbb_2021.8.0.orig.tar.xz 7e9111b8bb59c8800bf6d0b06afe7b0891937443d2dae1ee1101c8e2ede6a7ef
fetch nlohmann_json nlohmann-json3 3.11.2 nlohmann-json3_3.11.2.orig.tar.gz \
  d69f9deb6a75e2580465c6c4c5111b89c4dc2fa94e3a85fcd2ffcd9a143d9273
fetch simdjson simdjson 3.0.1 simdjson_3.0.1.orig.tar.gz 156b1bc5eb0561b2bd166b46d191fd3d95a3e709cc63761477d3b7aec2b6e9ed
fetch fmt fmtlib 9.1.0+ds1 fmtlib_9.1.0+ds1.orig.tar.gz 84ce1c2d0be3a9863935137969dcec6970125caac032f82474640bfc81463583
fetch isal libisal 2.30.0 libisal_2.30.0.orig.tar.xz f363f1be3d657d5676cef5253ee2233e60116e2fa9c9de86881185bf81e0e4b8
fetch boost boost1.74 1.74.0+ds1 boost1.74_1.74.0+ds1.orig.tar.xz 192f5df504d282cb81288f88232d8af45b64a9ab531e1c7cf8ae955f16f6bb28
fetch sqlite3-tree sqlite3 3.40.1 sqlite3_3.40.1.orig.tar.xz aaa776260ab4dc976db34aa7891819484c8676b5b2783123ebc6301e2ca5d655

# SQLite is compiled as one file, which its own makefile writes.
if [ ! -d "$sources/sqlite3" ]; then
  rm -rf "$sources/sqlite3.new" && mkdir "$sources/sqlite3.new"
  (cd "$sources/sqlite3.new" && ../sqlite3-tree/configure --disable-tcl && make sqlite3.c) >"$apt/sqlite3.log" 2>&1
  mv "$sources/sqlite3.new" "$sources/sqlite3"
fi
