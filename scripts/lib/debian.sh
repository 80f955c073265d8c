# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Packages of Debian that are looked into and not installed: of another release, or for another processor. The mirror is
# the one in this machine's apt configuration; lists and caches are kept apart, so that the machine's own apt does not
# change. Sourced after common.sh.

: "${cache:?}"

# private_apt TOOL SUITE ARCHITECTURE ARGUMENT...: apt-get or apt-cache, as if only that suite existed.
private_apt() {
  local tool=$1 architecture=$3 state=$cache/apt/$2-$3
  shift 3
  "$tool" -qq -o APT::Architecture="$architecture" -o APT::Architectures="$architecture" -o APT::Sandbox::User=root \
    -o APT::Install-Recommends=false -o Dir::State="$state" -o Dir::State::status=/dev/null -o Dir::Cache="$state" \
    -o Dir::Etc::sourcelist="$state/sources.list" -o Dir::Etc::sourceparts=/dev/null \
    -o Dir::Etc::preferences=/dev/null -o Dir::Etc::preferencesparts=/dev/null "$@"
}

# open_suite SUITE ARCHITECTURE: gets the lists of a suite, for private_apt.
open_suite() {
  local state=$cache/apt/$1-$2 mirror
  # shellcheck disable=SC2016  # apt fills it in
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' 'Component: main' | head -n1)
  [ -n "$mirror" ] || die "apt on this machine knows no mirror of Debian" "run on Debian, after apt-get update"
  mkdir -p "$state/lists/partial" "$state/archives/partial"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $1 main" >"$state/sources.list"
  private_apt apt-get "$1" "$2" update >&2
}
