# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# A fresh Debian system in a folder, in which packages are installed. Sourced.

set -euo pipefail

fail() {
  echo "error: $1" >&2
  exit 1
}

# require FILE...: skips the test if one is missing; in CI that is a failure.
require() {
  local file
  for file; do
    [ ! -e "$file" ] || continue
    echo "$file does not exist: scripts/test makes it"
    [ -z "${CI-}" ] || exit 1
    exit 77
  done
  [ "$(id -u)" -eq 0 ] || {
    echo "to install packages needs root"
    exit 77
  }
}

# own_mounts SCRIPT ARGUMENT...: runs the script again, with mounts of its own. They vanish with the last process.
own_mounts() {
  [ -n "${RTEV_IN_NAMESPACE-}" ] || RTEV_IN_NAMESPACE=yes exec unshare --mount --propagation private -- "$@"
}

# open_root ARCHIVE: unpacks a system into $root, with the kernel's file systems of this one. $enter runs a command there.
open_root() {
  local folder
  work=$(mktemp -d)
  root=$work/root
  enter=(chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive)
  trap close_root EXIT
  mkdir "$root"
  mount --bind "$root" "$root"
  tar -x -C "$root" -f "$1"
  for folder in proc sys dev; do mount --rbind "/$folder" "$root/$folder"; done
}
close_root() {
  umount --recursive --lazy "$root" || true
  rm -rf --one-file-system -- "$work"
}

in_root() { "${enter[@]}" "$@"; }

# apt ARGUMENT...: its output is shown if it fails.
apt() {
  in_root apt-get -qq -o Dpkg::Use-Pty=0 -o APT::Sandbox::User=root "$@" >"$work/log" 2>&1 || {
    cat "$work/log"
    fail "apt-get $*"
  }
  ! grep -i 'warning\|error\|not empty' "$work/log" || fail "apt-get $* is not silent"
}

# files: what is in the root, without what apt and dpkg keep for themselves.
files() {
  (cd "$root" && find . -xdev \( -path ./proc -o -path ./sys -o -path ./dev -o -path ./tmp -o -path ./var/cache/apt \
    -o -path ./var/cache/debconf -o -path ./var/lib/apt -o -path ./var/log/apt \) -prune -o -print) |
    grep -vxF -e ./var/log/dpkg.log -e ./var/log/alternatives.log -e ./var/lib/dpkg/status-old \
      -e ./var/lib/dpkg/lock-frontend -e ./var/lib/dpkg/lock -e ./var/lib/dpkg/triggers/Unincorp | LC_ALL=C sort
}
