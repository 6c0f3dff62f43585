#!/bin/sh
# Counts the lines, words and bytes of a file in the workspace, or of a text. sh and jq.
set -eu

if [ "${1-}" = --describe ]; then
  cat <<'JSON'
{
  "name": "wordcount",
  "description": "Counts lines, words and bytes of a file in the workspace, or of a text.",
  "parameters": {
    "type": "object",
    "properties": {
      "path": { "type": "string", "description": "A file, relative to the workspace" },
      "text": { "type": "string", "description": "Or a text" }
    },
    "additionalProperties": false
  }
}
JSON
  exit 0
fi

command -v jq >/dev/null || { echo "wordcount needs jq; install it" >&2; exit 1; }
path=$(printf %s "$1" | jq -r '.path // ""')

if [ -n "$path" ]; then
  [ -f "$path" ] || { echo "wordcount: there is no file \"$path\"" >&2; exit 1; }
  counts=$(wc <"$path")
else
  counts=$(printf %s "$1" | jq -j '.text // ""' | wc)
fi

# shellcheck disable=SC2086
set -- $counts
printf '%s lines, %s words, %s bytes\n' "$1" "$2" "$3"
