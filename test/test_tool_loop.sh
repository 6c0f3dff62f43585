#!/usr/bin/env sh
# shellcheck disable=SC1091,SC2154
. "$(dirname "$0")/test_harness.sh"
setup_tmpdir
load_libraries

echo '[{"name": "file_read"}]' >tools.json
check_output 'without LOG_FILE a question is answered' 'stub response 1' "$(tool_loop 'Hello' 'Be brief.' tools.json 3)"
check_output 'and the agent logs the iteration' iteration "$(jq -r .event "$SHELLCLAW_HOME/agents/default/agent.jsonl" | grep iteration)"
LOG_FILE=$tmpdir/iterations.jsonl
tool_loop 'Hello' 'Be brief.' tools.json >/dev/null
check_exit 'an answer is 0' 0 $?
check_json_field 'LOG_FILE takes the iterations' "$(cat "$LOG_FILE")" '.event + " " + .message' 'iteration 1'
tool_loop 'Hello' 'Be brief.' no-such-list.json 2>/dev/null
check_exit 'a list that is not there is 1' 1 $?
export SHELLCLAW_TOOL_BACKEND=perl
tool_loop 'Hello' 'Be brief.' tools.json 2>"$tmpdir/complaint"
check_exit 'a backend that is not there is 1' 1 $?
check_contains 'and the message names those that are' 'native' "$(cat "$tmpdir/complaint")"
tool_loop 'Hello' 2>/dev/null
check_exit 'too few arguments are 1' 1 $?
summary
