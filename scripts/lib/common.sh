# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# What the scripts share: packages, the build, OCaml. Sourced, not run.

set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# Outside the tree, so that a clean checkout does not build OCaml again.
cache=${RTEV_CACHE:-/var/cache/rtev-bpf}
ocaml_version=5.3.0
ocaml_sha512=0f4b86e38437afa2d8e304b38416691defaad72309e101e09394753acbfba8b5818163d0da313ad2f63aad7809ada2ff1fd7efb16385dca65222ba3f6d2f99f0
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

# get_ocaml: builds OCaml once, into the cache, from the sources in its npm package (about four minutes).
get_ocaml() {
  [ ! -e "$ocaml_prefix/.complete" ] || return 0
  mkdir -p "$cache"
  (
    flock 9
    [ ! -e "$ocaml_prefix/.complete" ] || exit 0
    command -v npm >/dev/null || {
      say "installing npm, which brings the sources of OCaml"
      apt-get update -qq
      DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends npm >/dev/null
    }
    say "building OCaml $ocaml_version into $ocaml_prefix (once, about four minutes)"
    local work
    work=$(mktemp -d "$cache/build.XXXXXX")
    # shellcheck disable=SC2064  # the folder's name is wanted as it is now
    trap "rm -rf '$work'" EXIT
    cd "$work"
    npm pack --silent "ocaml@$ocaml_version" >/dev/null
    echo "$ocaml_sha512  ocaml-$ocaml_version.tgz" | sha512sum --check --quiet || die "ocaml-$ocaml_version.tgz is not the file it should be"
    tar xzf "ocaml-$ocaml_version.tgz"
    cd package
    rm -rf "$ocaml_prefix"
    {
      ./configure --prefix="$ocaml_prefix" --disable-ocamldoc --disable-ocamltest --disable-debugger --disable-stdlib-manpages
      make -j"$(nproc)"
      make install
    } >"$cache/ocaml-build.log" 2>&1 || die "OCaml did not build" "see $cache/ocaml-build.log"
    touch "$ocaml_prefix/.complete"
  ) 9>"$cache/lock"
}
