# shellcheck shell=dash
# Writes logs as JSON lines. Needs jq. To be sourced; sh, dash and bash read it.
#
# log_event EVENT [MESSAGE]    appends {"ts","agent","event","message"} to the file $LOG_FILE, in the name of $SHELLCLAW_AGENT_ID ("default").
#                              Without LOG_FILE the line goes to the agent.jsonl of that agent.

log_event() {
  if [ -z "${1-}" ]; then echo 'log_event: usage: log_event EVENT [MESSAGE]' >&2; return 1; fi
  if [ -z "${LOG_FILE-}" ]; then
    "${BRAIDCLAW:-braidclaw}" log ${SHELLCLAW_AGENT_ID:+--agent "$SHELLCLAW_AGENT_ID"} -- "$1" "${2-}" </dev/null
    return
  fi
  printf %s "${2-}" | jq -R -s -c --arg agent "${SHELLCLAW_AGENT_ID:-default}" --arg event "$1" \
    '{ts: (now | floor | todate), agent: $agent, event: $event, message: .}' >>"$LOG_FILE"
}

# In bash, `source lib/log.sh lib/llm.sh lib/compose.sh` reads the first file and hands it the names of the others, which this loop reads.
# shellcheck disable=SC1090,SC2128,SC3028
case ${BASH_SOURCE-} in
  lib/log.sh | */lib/log.sh)
    for shellclaw_file in "$@"; do
      case ${shellclaw_file#"${BASH_SOURCE%log.sh}"} in config.sh | session.sh | llm.sh | compose.sh | shellclaw.sh) . "$shellclaw_file" ;; esac
    done
    unset shellclaw_file
    ;;
esac
