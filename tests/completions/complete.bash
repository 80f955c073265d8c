#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Prints what bash offers for command lines, as it would call the functions. usage: complete.bash COMPLETIONS LINES
for file in "$1"/*; do
  # shellcheck source=/dev/null
  . "$file"
done
while IFS= read -r line; do
  split=${line//=/ = } # as bash does
  read -ra COMP_WORDS <<<"$split"
  [[ $split != *' ' || $split == *'= ' ]] || COMP_WORDS+=('')
  # shellcheck disable=SC2034
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
  registered=$(complete -p "${COMP_WORDS[0]}") # complete -F FUNCTION PROGRAM
  read -r _ _ function _ <<<"$registered"
  "$function"
  [ ${#COMPREPLY[@]} -eq 0 ] || printf '%s\n' "${COMPREPLY[@]}"
  echo
done <"$2"
