#!/usr/bin/env -S zsh -f
# SPDX-License-Identifier: MIT
# Prints what zsh offers for command lines: an interactive zsh on a terminal of its own completes them, and its compadd,
# which all completions end in, writes down the matches. usage: complete.zsh COMPLETIONS LINES
zmodload zsh/zpty
typeset -gx RTEV_COMPLETIONS=$1 RTEV_MATCHES=$(mktemp)
zpty shell zsh -f -i
cat >$RTEV_MATCHES.setup <<'SETUP'
PS1= PS2= RPS1=
fpath=($RTEV_COMPLETIONS $fpath)
autoload -U compinit
compinit -D -u
compadd() {
  # With these it only computes.
  if [[ -n ${argv[(r)-[OAD]*]} ]]; then
    builtin compadd "$@"
    return
  fi
  local -a matches
  builtin compadd -A matches "$@"
  # The part of the word that stays: other entries of a list; not an option with =.
  (( $#matches )) && print -rl -- ${IPREFIX#--*=}$^matches >>$RTEV_MATCHES
  builtin compadd "$@"
}
# Shows no list: a long one would ask before.
complete_only() {
  _main_complete
  compstate[list]= compstate[insert]=
}
zle -C complete_only list-choices complete_only
complete_and_report() {
  zle complete_only
  BUFFER= CURSOR=0
  zle -I
  print -r -- 'has completed'
}
zle -N complete_and_report
bindkey '^G' complete_and_report
print -r -- 'is ready'
SETUP
zpty -w shell "source $RTEV_MATCHES.setup"
zpty -r -m shell answer '*is ready*'
while IFS= read -r line; do
  : >$RTEV_MATCHES
  zpty -w -n shell "$line"$'\x07'
  zpty -r -m shell answer '*has completed*'
  cat $RTEV_MATCHES
  print
done <$2
zpty -d shell
rm -f $RTEV_MATCHES $RTEV_MATCHES.setup
