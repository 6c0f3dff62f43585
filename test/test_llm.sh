#!/usr/bin/env sh
# shellcheck disable=SC1091,SC2154
. "$(dirname "$0")/test_harness.sh"
setup_tmpdir
load_libraries

check_output 'an argument is a question' 'stub response 1' "$(llm_call 'What is 2+2?')"
check_output 'stdin is a question' 'stub response 2' "$(echo Hello | llm_call --system 'Be brief.')"
check_output 'an argument leaves the stdin of a loop alone' 'two' "$(printf 'one\ntwo\n' | { read -r line; llm_call "$line" >/dev/null; cat; })"
check_output 'the flags may stand behind the message' 'stub response 4' "$(llm_call 'And then?' --continue --model local/mock)"
check_output 'the conversation continued' '2' "$("$BRAIDCLAW" memory list --json | jq '[.[].turns] | max')"
unset SHELLCLAW_LLM_BACKEND
check_output 'the stub needs no variable' 'stub response 5' "$(llm_call_stub 'test')"
llm_call 2>"$tmpdir/complaint" </dev/null
check_exit 'no question fails with 1' 1 $?
llm_call hello --model 2>"$tmpdir/complaint"
check_exit 'a flag without its value fails with 1' 1 $?
export SHELLCLAW_AGENT_ID=nobody
llm_call hello 2>"$tmpdir/complaint"
check_exit 'an agent that is not there fails with 1' 1 $?
summary
