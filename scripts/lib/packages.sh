# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Makes packages of a build. Sourced after common.sh.

# What must be built before.
# shellcheck disable=SC2034  # for the scripts
package_targets=(rtev-bpf rtev-load rtev rtev-manual-pages rtev-completions)

# package_version TREE: the version, as CMake reads it.
package_version() {
  sed -n 's/^#define RTEV_VERSION_\(MAJOR\|MINOR\|PATCH\) //p' "$1/include/rtev/version.hpp" | paste -sd .
}

# make_packages TREE BUILD FOLDER: writes the Debian packages and the tarball. All times in them are the date of the version
# in CHANGELOG.md: the same sources give the same files.
make_packages() {
  local tree=$1 build=$2 folder=$3 version date work name
  version=$(package_version "$tree")
  date=$(sed -n "s/^## ${version//./\\.} (\(.*\))\$/\1/p" "$tree/CHANGELOG.md")
  [ -n "$date" ] || die "CHANGELOG.md has no date for version $version" "give its heading the form '## $version (YYYY-MM-DD)'"
  work=$(mktemp -d)
  name=rtev-bpf-$version-$(uname -m)
  (
    # shellcheck disable=SC2064  # expands now, as it should
    trap "rm -rf -- '$work'" EXIT
    umask 022
    LC_ALL=C SOURCE_DATE_EPOCH=$(date -u -d "$date" +%s)
    export LC_ALL SOURCE_DATE_EPOCH
    cpack --config "$build/CPackConfig.cmake" -B "$work/cpack" >"$work/log" || die "cpack failed: $(tail -n 3 "$work/log")"
    cmake --install "$build" --strip --component tool --prefix "$work/$name" >"$work/log"
    sed -e "s/@VERSION@/$version/" -e "s/@NAME@/$name/" "$tree/packaging/tarball-README" >"$work/$name/README"
    # Where its README installs the program.
    sed -i 's,=/usr/bin/,=/usr/local/bin/,' "$work/$name"/lib/systemd/system/*.service
    mkdir -p "$folder"
    mv "$work"/cpack/*.deb "$folder"
    tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -c "$name" |
      gzip -9n >"$folder/$name.tar.gz"
  )
}
