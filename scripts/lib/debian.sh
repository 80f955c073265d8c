# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Downloads Debian packages of another release or architecture without installing them, from the mirror of this machine's
# apt configuration. Package lists and caches are separate from those of the machine. Sourced after common.sh.

: "${cache:?}"

# private_apt TOOL SUITE ARCHITECTURE ARGUMENT...: runs apt-get or apt-cache with that suite as the only source.
private_apt() {
  local tool=$1 architecture=$3 state=$cache/apt/$2-$3
  shift 3
  "$tool" -qq -o APT::Architecture="$architecture" -o APT::Architectures="$architecture" -o APT::Sandbox::User=root \
    -o APT::Install-Recommends=false -o Dir::State="$state" -o Dir::State::status=/dev/null -o Dir::Cache="$state" \
    -o Dir::Etc::sourcelist="$state/sources.list" -o Dir::Etc::sourceparts=/dev/null \
    -o Dir::Etc::preferences=/dev/null -o Dir::Etc::preferencesparts=/dev/null "$@"
}

# debian_mirror: prints the mirror of this machine.
debian_mirror() {
  local mirror
  # shellcheck disable=SC2016  # apt expands it
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' 'Component: main' | head -n1)
  [ -n "$mirror" ] || die "the apt configuration of this machine has no Debian mirror" "run on Debian, after apt-get update"
  echo "$mirror"
}

# open_suite SUITE ARCHITECTURE: downloads the package lists of a suite for private_apt.
open_suite() {
  local state=$cache/apt/$1-$2 mirror
  mirror=$(debian_mirror)
  mkdir -p "$state/lists/partial" "$state/archives/partial"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $1 main" >"$state/sources.list"
  private_apt apt-get "$1" "$2" update >&2
}
