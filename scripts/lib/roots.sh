# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Fresh Debian systems, in which tests/install/check-debian and check-service install the packages. Sourced after common.sh and debian.sh.

roots=${cache:?}/roots
export RTEV_ROOTS=$roots # for tests/CMakeLists.txt

# get_roots NAME...: makes the archives of these systems in the cache, all at once: bookworm, trixie or bookworm-systemd.
# Without one, its test skips, or fails in CI.
get_roots() {
  local name jobs=()
  mkdir -p "$roots"
  for name; do
    [ ! -e "$roots/$name.tar" ] || continue
    say "making a root of Debian: $name (once, about a minute)"
    # The other tests run even if the mirror cannot be reached.
    get_root "$name" >"$roots/$name.log" 2>&1 || say "cannot make a root of Debian: see $roots/$name.log" &
    jobs+=($!)
  done
  [ ${#jobs[@]} -eq 0 ] || wait "${jobs[@]}"
}

# get_root NAME: of the suite NAME, or with SUITE-PACKAGE of a suite and this package.
get_root() (
  suite=${1%%-*}
  exec 9>"$roots/$1.lock"
  flock 9
  [ ! -e "$roots/$1.tar" ] || exit 0
  with=()
  [ "$suite" = "$1" ] || with=(--include="${1#*-}")
  mmdebstrap --variant=apt --aptopt='Acquire::Languages "none"' "${with[@]}" "$suite" "$roots/$1.new.tar" "$(debian_mirror)"
  mv "$roots/$1.new.tar" "$roots/$1.tar"
)
