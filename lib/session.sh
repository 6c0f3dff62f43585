# shellcheck shell=dash
# Keeps conversations in files of JSON lines. Needs jq. To be sourced; sh, dash and bash read it.
#
# session_append FILE ROLE CONTENT    appends {"ts","role","content"}
# session_load FILE [LIMIT]           prints the entries, or the last LIMIT of them, as text; leaves out lines that are not entries
# session_count FILE                  prints the number of entries
# session_clear FILE                  moves the file to TIME.jsonl beside it and begins an empty one

session_append() {
  if [ $# -ne 3 ] || [ -z "$2" ]; then echo 'session_append: usage: session_append FILE ROLE CONTENT' >&2; return 1; fi
  printf %s "$3" | jq -R -s -c --arg role "$2" '{ts: (now | floor | todate), role: $role, content: .}' >>"$1"
}

# Control characters must not steer the terminal.
session_load() {
  [ -f "${1-}" ] || return 0
  tail -n "${2:-+1}" -- "$1" | jq -R -r 'fromjson? | objects | "\(.ts) \(.role): \(.content)" | split("\n") | join("\n  ")
    | explode | map(select((. > 31 and (. < 127 or . > 159)) or . == 9 or . == 10)) | implode'
}

session_count() {
  [ -f "${1-}" ] || { echo 0; return; }
  jq -R -n '[inputs | fromjson? | objects] | length' "$1"
}

session_clear() {
  if [ -z "${1-}" ]; then echo 'session_clear: usage: session_clear FILE' >&2; return 1; fi
  local stamp archive number=1
  stamp=$(dirname -- "$1")/$(date -u +%Y-%m-%dT%H-%M-%SZ) archive=$stamp.jsonl
  while [ -e "$archive" ]; do number=$((number + 1)) && archive=$stamp-$number.jsonl; done
  if [ -s "$1" ]; then mv -- "$1" "$archive" || return 1; fi
  : >"$1"
}
