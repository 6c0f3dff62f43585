# shellcheck shell=dash
# Runs a turn with tools. To be sourced; sh, dash and bash read it.
#
# tool_loop MESSAGE SYSTEM TOOLS [MAX]    prints the answer; returns 0 answered, 1 error, 2 too many rounds.
#
# SHELLCLAW_TOOL_BACKEND names who runs the loop: native, bash, llm or elixir. SHELLCLAW_SKILLS_DIR is the folder of the executables that TOOLS
# names. LOG_FILE takes a line for each iteration; without it the agent.jsonl of the agent $SHELLCLAW_AGENT_ID does.

export SHELLCLAW_HOME SHELLCLAW_LLM_BACKEND SHELLCLAW_TOOL_BACKEND SHELLCLAW_SKILLS_DIR

tool_loop() {
  if [ $# -lt 3 ]; then echo 'tool_loop: usage: tool_loop MESSAGE SYSTEM TOOLS [MAX]' >&2; return 1; fi
  LOG_FILE=${LOG_FILE-} "${BRAIDCLAW:-braidclaw}" tool loop ${SHELLCLAW_AGENT_ID:+--agent "$SHELLCLAW_AGENT_ID"} -- "$@"
}
