# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# What the scripts share: packages, the build, OCaml. Sourced, not run.

set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# Outside the tree, so that a clean checkout does not build OCaml again.
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
  [ "$(id -u)" -eq 0 ] || die "${0##*/} installs packages and loads eBPF programs, which only root may" "sudo $0"
}

# install_packages LIST: installs the packages of a list file that are not there yet.
install_packages() {
  local package missing=()
  while read -r package; do
    dpkg-query -W -f='${Status}\n' "$package" 2>/dev/null | grep -q '^install ok installed' || missing+=("$package")
  done < <(sed -e 's/#.*//' -e 's/[[:space:]]*$//' -e '/^$/d' "$1")
  [ ${#missing[@]} -gt 0 ] || return 0
  say "installing ${missing[*]}"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# build PRESET [TARGET]: configures one of CMakePresets.json's presets and builds all of it, or a target.
build() {
  say "building ($*)"
  (cd "$root" && cmake --preset "$1" >/dev/null && cmake --build --preset "$1" ${2+--target "$2"} >&2) ||
    die "the $1 build failed"
}

# ocaml_sources VERSION SHA512: unpacks the sources in an npm package of OCaml, into the folder package.
ocaml_sources() {
  command -v npm >/dev/null || {
    say "installing npm, which brings the sources of OCaml"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends npm >/dev/null
  }
  npm pack --silent "ocaml@$1" >/dev/null
  echo "$2  ocaml-$1.tgz" | sha512sum --check --quiet || die "ocaml-$1.tgz is not the file it should be"
  tar xzf "ocaml-$1.tgz"
}

# once PREFIX SCRIPT: fills a folder of the cache with a script of this one's folder, which gets PREFIX and runs in an
# empty folder; not if that was done before. What is said goes to PREFIX.log.
once() {
  local prefix=$1 script=$2
  [ ! -e "$prefix/.complete" ] || return 0
  mkdir -p "$cache"
  (
    flock 9
    [ ! -e "$prefix/.complete" ] || exit 0
    work=$(mktemp -d "$cache/build.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    rm -rf "$prefix"
    (cd "$work" && "$root/scripts/lib/$script" "$prefix") >"$prefix.log" 2>&1 ||
      die "cannot get ${prefix##*/}: $(tail -n 1 "$prefix.log")" "see $prefix.log"
    touch "$prefix/.complete"
  ) 9>"$prefix.lock"
}

# get_ocaml: builds OCaml once, into the cache.
get_ocaml() {
  [ -e "$ocaml_prefix/.complete" ] || say "building OCaml $ocaml_version into $ocaml_prefix (once, about four minutes)"
  once "$ocaml_prefix" build-ocaml
}

# get_other_ocamls: the versions that some tests want as well. The tests say so, too, if one could not be had.
get_other_ocamls() {
  [ -e "$cache/ocaml-5.1/.complete" ] || say "building OCaml 5.1 into $cache/ocaml-5.1 (once, about two minutes)"
  once "$cache/ocaml-5.1" build-ocaml-5.1 || true
  [ -e "$cache/ocaml-5.4/.complete" ] || say "unpacking OCaml 5.4 into $cache/ocaml-5.4 (once, some seconds)"
  once "$cache/ocaml-5.4" unpack-ocaml-5.4 || true
}
