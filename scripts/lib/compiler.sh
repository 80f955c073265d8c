# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Sourced, not run.

# compiler FILE LIBRARY COMMAND...: writes FILE, a script that runs a compiler with the folder of its library.
compiler() {
  local file=$1 library=$2
  shift 2
  mkdir -p "$(dirname "$file")"
  {
    printf '#!/bin/sh\nOCAMLLIB=%q exec' "$library"
    printf ' %q' "$@"
    printf ' "$@"\n'
  } >"$file"
  chmod +x "$file"
}
