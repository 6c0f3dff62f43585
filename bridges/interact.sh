#!/bin/sh
# The interaction bridge for a terminal: each line you type is a message, its answer is printed below. Ends at the end of input.
#
#   PLANCKCLAW_FIFOS   folder of the six FIFOs, default /tmp/planckclaw
set -u

fifos=${PLANCKCLAW_FIFOS:-/tmp/planckclaw}
# Answers to others, or to a session before this one, are not ours.
channel=$$
tab=$(printf '\t')
mark=$(printf '\001')

# Open for reading and writing: nothing waits for the agent, and its death does not end us.
exec 3<>"$fifos/interact_in" 4<>"$fifos/interact_out" || exit 1

escape() {
  printf '%s' "$1" | sed "s/\\\\/\\\\\\\\/g; s/$tab/\\\\t/g"
}

unescape() {
  printf '%s\n' "$1" | sed "s/\\\\\\\\/$mark/g; s/\\\\n/\\
/g; s/\\\\t/$tab/g; s/$mark/\\\\/g"
}

prompt() {
  if [ -t 0 ]; then printf '> '; fi
}

prompt
while IFS= read -r text || [ -n "$text" ]; do
  case $text in *[![:space:]]*) ;; *) prompt; continue ;; esac
  printf '%s\t%s\n' "$channel" "$(escape "$text")" >&3
  while IFS= read -r line <&4; do
    if [ "${line%%"$tab"*}" = "$channel" ]; then
      unescape "${line#*"$tab"}"
      break
    fi
    echo "interact: left out an answer for channel ${line%%"$tab"*}" >&2
  done
  prompt
done
