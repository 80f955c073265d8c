# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Fresh Debian systems, in which tests/install/check-debian installs the packages. Sourced after common.sh and debian.sh.

roots=${cache:?}/roots
export RTEV_ROOTS=$roots # for tests/CMakeLists.txt

# get_roots: makes the archives of the systems in the cache, two at a time. Without one, its test skips, or fails in CI.
get_roots() {
  local suite jobs=()
  mkdir -p "$roots"
  for suite in bookworm trixie; do
    [ ! -e "$roots/$suite.tar" ] || continue
    say "making a root of Debian $suite (once, about a minute)"
    # The other tests run even if the mirror cannot be reached.
    get_root "$suite" >"$roots/$suite.log" 2>&1 || say "cannot make a root of Debian $suite: see $roots/$suite.log" &
    jobs+=($!)
  done
  [ ${#jobs[@]} -eq 0 ] || wait "${jobs[@]}"
}

# get_root SUITE
get_root() (
  exec 9>"$roots/$1.lock"
  flock 9
  [ ! -e "$roots/$1.tar" ] || exit 0
  mmdebstrap --variant=apt --aptopt='Acquire::Languages "none"' "$1" "$roots/$1.new.tar" "$(debian_mirror)"
  mv "$roots/$1.new.tar" "$roots/$1.tar"
)
