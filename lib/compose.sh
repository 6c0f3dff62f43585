# shellcheck shell=dash
# Composes the system prompt of an agent. To be sourced; sh, dash and bash read it.
#
# compose_system FOLDER    prints soul.md and, after an empty line each, context/*.md in the order of their names

compose_system() {
  local file
  if [ -z "${1-}" ]; then echo 'compose_system: usage: compose_system FOLDER' >&2; return 1; fi
  cat -- "$1/soul.md" || return 1
  for file in "$1"/context/*.md; do
    if [ -f "$file" ]; then printf '\n' && cat -- "$file" || return 1; fi
  done
}
