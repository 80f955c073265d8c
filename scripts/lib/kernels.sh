# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Kernels of Debian for the live tests that run under QEMU. Sourced after common.sh and debian.sh.

kernels=${cache:?}/kernels
export RTEV_KERNELS=$kernels # for tests/live/guest.cpp
# What to call it, and the suite whose current kernel it is.
kernel_suites='6.1 bookworm
6.12 bookworm-backports'

# get_kernels: gets the images, once. Where they cannot be had, says so: the tests then skip, or fail in CI.
get_kernels() {
  local version suite
  mkdir -p "$kernels"
  while read -r version suite; do
    [ ! -e "$kernels/$version/vmlinuz" ] || continue
    say "getting Linux $version (once)"
    # In a shell of its own: a mirror out of reach is no reason not to run the other tests.
    (get_kernel "$version" "$suite") || say "there is no Linux $version"
  done <<<"$kernel_suites"
}

# get_kernel VERSION SUITE
get_kernel() {
  exec 9>"$kernels/lock"
  flock 9
  [ ! -e "$kernels/$1/vmlinuz" ] || return 0
  local work package
  work=$(mktemp -d "$kernels/get.XXXXXX")
  # shellcheck disable=SC2064  # the folder's name is wanted as it is now
  trap "rm -rf '$work'" EXIT
  open_suite "$2" amd64
  # The package of this name is empty and needs the one that is current.
  package=$(private_apt apt-cache "$2" amd64 depends --important linux-image-cloud-amd64 | sed -n 's/^ *Depends: //p')
  [ -n "$package" ] || die "$2 has no kernel"
  (cd "$work" && private_apt apt-get "$2" amd64 download "$package") || return
  dpkg-deb --fsys-tarfile "$work"/*.deb | tar -x -C "$work" --wildcards './boot/vmlinuz-*' || return
  mkdir -p "$kernels/$1"
  mv "$work"/boot/vmlinuz-* "$kernels/$1/vmlinuz"
}
