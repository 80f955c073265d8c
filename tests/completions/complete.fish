#!/usr/bin/env -S fish --no-config
# SPDX-License-Identifier: MIT
# Prints what fish offers for command lines. usage: complete.fish COMPLETIONS LINES
for file in $argv[1]/*.fish
    source $file
end
while read --line line
    # Behind an option with = fish replaces the whole word.
    complete -C $line | string replace -r '\t.*' '' | string replace -r -- '^--[^=]*=' ''
    echo
end <$argv[2]
