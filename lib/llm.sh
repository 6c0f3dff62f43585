# shellcheck shell=dash
# Asks a model: text in, text out. To be sourced; sh, dash and bash read it.
#
# llm_call [MESSAGE] [--system PROMPT] [--model MODEL] [--continue]    prints the answer; without MESSAGE the question is on stdin.
#                                                                      Returns 0 when there is an answer, else 1.
# llm_call_stub [MESSAGE]                                              prints "stub response N" and asks no model
#
# SHELLCLAW_LLM_BACKEND=stub makes llm_call answer the same way. The turn belongs to the agent $SHELLCLAW_AGENT_ID ("default"), is kept in its
# session and can be replayed. The system prompt is PROMPT alone: llm_call --system "$(compose_system agents/default)".

export SHELLCLAW_HOME SHELLCLAW_LLM_BACKEND

llm_call() {
  local message='' system='' model='' onwards=''
  while [ $# -gt 0 ]; do
    case $1 in
      --system | --model)
        if [ $# -eq 1 ]; then echo "llm_call: $1 needs a value" >&2; return 1; fi
        if [ "$1" = --system ]; then system=$2; else model=$2; fi
        shift
        ;;
      --continue) onwards=yes ;;
      *) message=${message:+$message }$1 ;;
    esac
    shift
  done
  set -- filter --system "$system" ${model:+--model "$model"} ${onwards:+--continue} ${SHELLCLAW_AGENT_ID:+--agent "$SHELLCLAW_AGENT_ID"}
  if [ -n "$message" ]; then
    printf '%s\n' "$message" | "${BRAIDCLAW:-braidclaw}" "$@" || return 1
  else
    "${BRAIDCLAW:-braidclaw}" "$@" || return 1
  fi
}

llm_call_stub() { (export SHELLCLAW_LLM_BACKEND=stub && llm_call "$@"); }
