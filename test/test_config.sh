#!/usr/bin/env sh
# shellcheck disable=SC1091,SC2154
. "$(dirname "$0")/test_harness.sh"
setup_tmpdir
load_libraries

"$BRAIDCLAW" init --agent-files >"$tmpdir/steps" 2>/dev/null
check_exit 'init succeeds' 0 $?
check_file_exists 'init makes agents.json' "$SHELLCLAW_HOME/config/agents.json"
check_file_exists 'init makes shellclaw.env' "$SHELLCLAW_HOME/config/shellclaw.env"
printf 'SHELLCLAW_MODEL="%s"\n' "it's \$(touch owned); a; model" >>"$SHELLCLAW_HOME/config/shellclaw.env"
printf '{"default": {"soul": "agents/default/soul.md", "model": null}, "coder": {"model": "local/coder"}}' >"$SHELLCLAW_HOME/config/agents.json"
config_init
check_exit 'config_init succeeds' 0 $?
check_output 'a value is exactly that of shellclaw.env' "it's \$(touch owned); a; model" "$(config_get SHELLCLAW_MODEL)"
check_output 'and nothing in it ran' absent "$(if [ -e owned ]; then echo ran; else echo absent; fi)"
check_output 'a setting has a short name' default "$(config_get default_agent)"
check_output 'and its name in the configuration' 100 "$(config_get limits.max_tool_rounds)"
check_output 'LOG_FILE is that of the agent' "$SHELLCLAW_HOME/agents/default/agent.jsonl" "${LOG_FILE-}"
config_get 'x; touch owned' 2>"$tmpdir/complaint"
check_exit 'what is not a name is refused' 1 $?
config_get no_such_setting 2>"$tmpdir/complaint"
check_exit 'an unknown name fails' 1 $?
check_output 'an agent has a model' local/coder "$(config_agent coder model)"
check_output 'an agent has a soul' agents/default/soul.md "$(config_agent default soul)"
check_output 'null prints nothing' '' "$(config_agent default model)"
config_agent nobody soul 2>"$tmpdir/complaint"
check_exit 'an agent that is not there fails' 5 $?
check_contains 'and the message names it' 'no agent "nobody"' "$(cat "$tmpdir/complaint")"
mv "$SHELLCLAW_HOME/config/agents.json" "$SHELLCLAW_HOME/agents.json"
"$BRAIDCLAW" init --agent-files >"$tmpdir/steps" 2>/dev/null
check_output 'init keeps an agents.json at its other place' kept "$(if [ -e "$SHELLCLAW_HOME/config/agents.json" ]; then echo 'a second one'; else echo kept; fi)"
check_output 'and config_agent reads it' local/coder "$(config_agent coder model)"
rm "$SHELLCLAW_HOME/agents.json"
echo '{broken' >"$SHELLCLAW_HOME/config/agents.json"
check_output 'a broken agents.json fails' failed "$(config_agent default soul 2>/dev/null || echo failed)"
config_init 2>"$tmpdir/complaint"
check_exit 'config_init fails where the configuration is broken' 1 $?
summary
