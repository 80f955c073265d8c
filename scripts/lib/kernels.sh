# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Debian's kernels for the live tests under QEMU. Sourced after common.sh and debian.sh.

kernels=${cache:?}/kernels
export RTEV_KERNELS=$kernels # for tests/live/guest.cpp
# Version, and the suite whose current kernel has it.
kernel_suites='6.1 bookworm
6.12 bookworm-backports'

# get_kernels: downloads the kernel images and the modules that guests load (modules/, empty if FUSE is built in) into the
# cache. Without an image, its tests skip, or fail in CI.
get_kernels() {
  local version suite
  mkdir -p "$kernels"
  while read -r version suite; do
    [ ! -e "$kernels/$version/modules" ] || continue
    say "downloading Linux $version (once)"
    # In a subshell: the other tests run even if the mirror cannot be reached.
    (get_kernel "$version" "$suite") || say "cannot download Linux $version"
  done <<<"$kernel_suites"
}

# get_kernel VERSION SUITE
get_kernel() {
  exec 9>"$kernels/lock"
  flock 9
  [ ! -e "$kernels/$1/modules" ] || return 0
  local work package
  work=$(mktemp -d "$kernels/get.XXXXXX")
  # shellcheck disable=SC2064  # expands now, as it should
  trap "rm -rf '$work'" EXIT
  open_suite "$2" amd64
  # The package of this name is empty and depends on the current kernel.
  package=$(private_apt apt-cache "$2" amd64 depends --important linux-image-cloud-amd64 | sed -n 's/^ *Depends: //p')
  [ -n "$package" ] || die "$2 has no kernel package"
  (cd "$work" && private_apt apt-get "$2" amd64 download "$package") || return
  dpkg-deb --fsys-tarfile "$work"/*.deb | tar -x -C "$work" --wildcards './boot/vmlinuz-*' '*/kernel/fs/fuse/*' || return
  mkdir -p "$kernels/$1" "$work/modules"
  find "$work" -name fuse.ko -exec mv {} "$work/modules/" \;
  mv "$work"/boot/vmlinuz-* "$kernels/$1/vmlinuz"
  mv "$work/modules" "$kernels/$1/"
}
