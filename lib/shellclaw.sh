# shellcheck shell=dash
# The command of the specification as a function. To be sourced; sh, dash and bash read it.
#
# shellclaw …    the same as braidclaw …; `shellclaw init` also makes the files of the agent (braidclaw init --agent-files)

shellclaw() {
  if [ "${1-}" = init ]; then shift && set -- init --agent-files "$@"; fi
  "${BRAIDCLAW:-braidclaw}" "$@"
}
