# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# What the scripts share: packages, builds, OCaml. Sourced, not run.

set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# Outside the tree, so that OCaml is built once and not for every clone.
cache=${RTEV_CACHE:-/var/cache/rtev-bpf}
ocaml_version=5.3.0
ocaml_prefix=$cache/ocaml-$ocaml_version
export RTEV_OCAML_PREFIX=$ocaml_prefix  # for tests/CMakeLists.txt

say() { printf '==> %s\n' "$*" >&2; }

die() {
  printf 'error: %s\n' "$1" >&2
  [ -z "${2-}" ] || printf 'hint: %s\n' "$2" >&2
  exit 1
}

need_root() {
  [ "$(id -u)" -eq 0 ] || die "${0##*/} installs packages and loads eBPF programs, which needs root" "sudo $0"
}

# progress WHAT: shows how far a command is. Its lines that begin with a percentage become one line that changes on a
# terminal, and a line for each tenth elsewhere. Its other lines go to stdout.
progress() {
  local line percent shown=-1
  while IFS= read -r line; do
    if [[ ! $line =~ ^\ *([0-9]+)% ]]; then
      printf '%s\n' "$line"
      continue
    fi
    percent=${BASH_REMATCH[1]}
    if [ -t 2 ]; then
      printf '\r==> %s: %d %%\e[K' "$1" "$percent" >&2
    elif [ $((percent / 10)) -ne $((shown / 10)) ] || [ "$shown" -lt 0 ]; then
      say "$1: $percent %"
    else
      continue
    fi
    shown=$percent
  done
  [ ! -t 2 ] || [ "$shown" -lt 0 ] || echo >&2
}

# apt_install WHAT ARGUMENT...: apt-get install, with its progress.
apt_install() {
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends -o APT::Status-Fd=3 "${@:2}" 3>&1 >/dev/null |
    sed -unE 's/^(dl|pm)status:.*:([0-9]+)(\.[0-9]+)?:.*/\2%/p' | progress "$1"
}

# install_packages PACKAGE...: installs the Debian packages that are missing. A command of its name from elsewhere will do.
install_packages() {
  local package size missing=()
  for package; do
    dpkg-query -W -f='${Status}\n' "$package" 2>/dev/null | grep -q '^install ok installed' ||
      command -v "$package" >/dev/null || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  command -v apt-get >/dev/null || die "this is not Debian: cannot install ${missing[*]}" "see docs/install.md, From source elsewhere"
  [ "$(id -u)" -eq 0 ] || die "missing packages: ${missing[*]}" "sudo apt-get install ${missing[*]}"
  apt-get update -qq
  size=$(LC_ALL=C apt-get install --assume-no --no-install-recommends "${missing[@]}" |
    sed -n 's/^Need to get \(.*\) of archives.*/ (\1 to download)/p') || true
  say "installing ${missing[*]}$size"
  apt_install "downloading packages" --download-only "${missing[@]}"
  apt_install "installing packages" "${missing[@]}"
}

# listed LIST...: prints the packages of lists in scripts/packages/.
listed() {
  local lists=("${@/#/$root/scripts/packages/}")
  sed -e 's/ *#.*//' -e '/^$/d' "${lists[@]/%/.txt}"
}

# install_lists LIST...: installs the packages of lists that are missing.
install_lists() {
  local packages
  mapfile -t packages < <(listed "$@")
  install_packages "${packages[@]}"
}

# use_compiler_cache: lets builds of all clones share what is compiled, in the cache. Prints CMake's options for it; none
# without ccache.
use_compiler_cache() {
  local folder=${CCACHE_DIR:-$cache/ccache}
  command -v ccache >/dev/null && { mkdir -p "$folder" && [ -w "$folder" ]; } 2>/dev/null || return 0
  printf '%s\n' -DCMAKE_{C,CXX}_COMPILER_LAUNCHER=ccache
}

# build PRESET [TARGET...]: configures a preset of CMakePresets.json, also with the options in `configure_options`, and
# builds the targets, or everything. In CI a warning is an error in every preset. What the build prints goes to
# build/PRESET/build.log, and is shown if it fails.
configure_options=()
build() {
  local preset=$1 with_cache
  local log=$root/build/$preset/build.log
  shift
  say "building preset $preset${*:+: $*}"
  mapfile -t with_cache < <(use_compiler_cache)
  rm -f "$log"
  (
    # Paths below the tree are made relative, so that another clone finds the same. What is not found is not preprocessed
    # for the cache: the compiler names the headers.
    export CCACHE_DIR=${CCACHE_DIR:-$cache/ccache} CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=true CCACHE_DEPEND=true
    cd "$root" && cmake --preset "$preset" ${CI:+-DRTEV_WERROR=ON} "${with_cache[@]}" "${configure_options[@]}" >/dev/null &&
      NINJA_STATUS='%p ' cmake --build --preset "$preset" ${1+--target "$@"} | progress "building preset $preset" >"$log"
  ) || {
    [ ! -s "$log" ] || cat "$log" >&2
    die "the $preset build failed"
  }
}

# run_tests PRESET [CTEST_OPTION...]: runs the tests of a preset. GoogleTest's results go to build/PRESET/results.
run_tests() {
  local preset=$1
  shift
  say "tests of preset $preset${*:+ ($*)}"
  rm -rf "$root/build/$preset/results"
  (cd "$root" && ctest --preset "$preset" --parallel "$(nproc)" --no-tests=error "$@")
}

# ocaml_sources VERSION SHA512: downloads the sources of OCaml, which are an npm package, and unpacks them into the
# folder `package`.
ocaml_sources() {
  npm pack --silent "ocaml@$1" >/dev/null
  echo "$2  ocaml-$1.tgz" | sha512sum --check --quiet || die "ocaml-$1.tgz has a wrong checksum"
  tar xzf "ocaml-$1.tgz"
}

# once PREFIX SCRIPT [ARGUMENT...]: fills the folder PREFIX of the cache by running scripts/lib/SCRIPT PREFIX ARGUMENT... in
# an empty folder, unless an earlier run completed it. The script's output goes to PREFIX.log.
once() {
  local prefix=$1 script=$2
  shift 2
  [ ! -e "$prefix/.complete" ] || return 0
  mkdir -p "$cache"
  (
    flock 9
    [ ! -e "$prefix/.complete" ] || exit 0
    work=$(mktemp -d "$cache/build.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    rm -rf "$prefix"
    (cd "$work" && "$root/scripts/lib/$script" "$prefix" "$@") >"$prefix.log" 2>&1 ||
      die "cannot install ${prefix##*/}: $(tail -n 1 "$prefix.log")" "see $prefix.log"
    touch "$prefix/.complete"
  ) 9>"$prefix.lock"
}

# get_ocaml: builds OCaml into the cache.
get_ocaml() {
  [ -e "$ocaml_prefix/.complete" ] || say "building OCaml $ocaml_version into $ocaml_prefix (once, about four minutes)"
  once "$ocaml_prefix" build-ocaml
}

# get_other_ocamls: installs the other versions of OCaml that some tests use. Without one of them, its tests skip.
get_other_ocamls() {
  [ -e "$cache/ocaml-5.1/.complete" ] || say "building OCaml 5.1 into $cache/ocaml-5.1 (once, about two minutes)"
  once "$cache/ocaml-5.1" build-ocaml-5.1 || true
  [ -e "$cache/ocaml-5.4/.complete" ] || say "unpacking OCaml 5.4 into $cache/ocaml-5.4 (once, some seconds)"
  once "$cache/ocaml-5.4" unpack-ocaml sid 5.4 || true
}

# get_databases: unpacks ClickHouse and DuckDB, which tests load recordings into. Without one of them, its test skips.
get_databases() {
  [ -e "$cache/clickhouse/.complete" ] || say "unpacking ClickHouse into $cache/clickhouse (once, some seconds)"
  once "$cache/clickhouse" unpack-clickhouse || true
  [ -e "$cache/duckdb/.complete" ] || say "unpacking DuckDB into $cache/duckdb (once, some seconds)"
  once "$cache/duckdb" unpack-duckdb || true
}

# get_axe: unpacks axe-core, with which a test checks pages in a browser. Without it, this test skips, or fails in CI.
get_axe() {
  [ -e "$cache/axe-core/.complete" ] || say "unpacking axe-core into $cache/axe-core (once, some seconds)"
  once "$cache/axe-core" unpack-axe || true
}

# get_prometheus: unpacks Prometheus and VictoriaMetrics, which some tests use. Without them, these tests skip, or fail in
# CI.
get_prometheus() {
  [ -e "$cache/prometheus/.complete" ] || say "unpacking Prometheus into $cache/prometheus (once, some seconds)"
  once "$cache/prometheus" unpack-prometheus || true
  [ -e "$cache/victoriametrics/.complete" ] ||
    say "unpacking VictoriaMetrics into $cache/victoriametrics (once, some seconds)"
  once "$cache/victoriametrics" unpack-victoriametrics || true
}
