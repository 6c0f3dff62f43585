#!/usr/bin/env sh
# shellcheck disable=SC1091,SC2154
. "$(dirname "$0")/test_harness.sh"
setup_tmpdir
load_libraries

odd=$(printf 'a "quote", a \\ and\ntwo lines \303\274')
LOG_FILE=$tmpdir/agent.jsonl
log_event user_input "$odd"
export SHELLCLAW_AGENT_ID=coder
log_event note
check_output 'two events are two lines' 2 "$(grep -c . "$LOG_FILE")"
check_output 'the keys are those of the specification' '["agent","event","message","ts"]' "$(head -n 1 "$LOG_FILE" | jq -c keys)"
check_json_field 'quotes, backslashes and line feeds arrive' "$(head -n 1 "$LOG_FILE")" .message "$odd"
check_json_field 'without an id the agent is "default"' "$(head -n 1 "$LOG_FILE")" .agent default
check_json_field 'SHELLCLAW_AGENT_ID names the agent' "$(tail -n 1 "$LOG_FILE")" .agent coder
check_json_field 'the time is UTC without fractions' "$(tail -n 1 "$LOG_FILE")" '.ts | fromdate | todate' "$(tail -n 1 "$LOG_FILE" | jq -r .ts)"
log_event 2>"$tmpdir/complaint"
check_exit 'an event needs a name' 1 $?
check_contains 'and the message says how' 'usage: log_event EVENT' "$(cat "$tmpdir/complaint")"

unset LOG_FILE SHELLCLAW_AGENT_ID
log_event deploy 'to staging'
check_json_field 'without LOG_FILE the agent logs it' "$(tail -n 1 "$SHELLCLAW_HOME/agents/default/agent.jsonl")" .message 'to staging'
summary
