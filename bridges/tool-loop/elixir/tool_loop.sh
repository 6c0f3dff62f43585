#!/usr/bin/env bash
# A tool loop in Elixir:   bash bridges/tool-loop/elixir/tool_loop.sh MESSAGE SYSTEM TOOLS [MAX]     (or source it and call tool_loop)
#
# MESSAGE: the question, "-" reads it from stdin. SYSTEM: the system prompt. TOOLS: what --tools takes (a JSON file, a folder, "default").
# MAX: rounds of tool calls, 5 when absent. The answer goes to stdout. Exit: 0 answered, 1 error, 2 too many rounds.
#
# The escript is built once, by `mix escript.build`, into the home of BraidClaw; it needs Elixir 1.14 with OTP 25 and no packages.
# Every call goes back through `braidclaw tool run`: the same gate, the same sandbox, a receipt of channel "tool-loop".
#
# ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL   the Messages API
# TOOL_LOOP_MODEL                         the model; BRAIDCLAW_MODEL or SHELLCLAW_MODEL without it
# TOOL_LOOP_MAX_TOKENS                    of one reply, 4096 when absent
# TOOL_LOOP_AGENT                         whose agent.jsonl the loop is logged in; the configured one without it
# TOOL_LOOP_ESCRIPT                       an escript that is built already
# LOG_FILE                                a file that takes the iterations instead
# BRAIDCLAW                               the executable, when it is not on the PATH

tool_loop_say() { printf 'tool-loop elixir: %s\n' "$*" >&2; }

# By braidclaw itself, which knows where the log lies and takes secrets out. @returns 2 for an agent that is not there
tool_loop_said() {
  [[ ${TOOL_LOOP_QUIET-} ]] && return
  local code
  "$BRAIDCLAW" log ${TOOL_LOOP_AGENT:+--agent "$TOOL_LOOP_AGENT"} -- "$1" "$(head -c 30000 "$2" | tr -d '\000')" >&2 ||
    { code=$?; tool_loop_say "could not log $1"; return "$code"; }
}

# Prints the path of the escript, and builds it first when the sources are others.
tool_loop_escript() {
  local sources made draft
  sources=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd) || return 1
  made=${BRAIDCLAW_HOME:-${SHELLCLAW_HOME:-$HOME/.braidclaw}}/run/tool-loop-elixir
  made+=-$(cat "$sources"/mix.exs "$sources"/lib/*.ex | cksum | tr -c '0-9\n' -)
  if [[ ! -x $made ]]; then
    draft=$made.$$
    mkdir -p "$draft" || return 1
    if (cd "$sources" && TOOL_LOOP_BUILD=$draft MIX_ENV=prod mix escript.build) </dev/null >"$draft/log" 2>&1; then
      mv "$draft/shellclaw-tool-loop" "$made" && rm -rf "$draft" || return 1
    else
      tool_loop_say "mix escript.build failed in $sources:"
      cat "$draft/log" >&2
      rm -rf "$draft"
      return 1
    fi
  fi
  printf '%s\n' "$made"
}

# Ends the tool that runs, which leaves its receipt, and then the loop. After Ctrl-C a tool has heard it already.
tool_loop_stop() {
  trap '' INT TERM HUP
  [[ $1 == INT && $child ]] && sleep 0.2
  [[ -s $TOOL_LOOP_DIR/child ]] && kill "$(<"$TOOL_LOOP_DIR/child")" 2>/dev/null
  [[ $child ]] && kill -STOP "$child" 2>/dev/null
  while [[ -s $TOOL_LOOP_DIR/child ]] && kill -0 "$(<"$TOOL_LOOP_DIR/child")" 2>/dev/null; do sleep 0.05; done
  [[ $child ]] && kill -KILL "$child" 2>/dev/null && wait "$child" 2>/dev/null
  tool_loop_say cancelled
  exit 1
}

# In a subshell of its own, so that its folder goes with it whatever happens.
tool_loop() { (tool_loop_run "$@"); }

tool_loop_run() {
  set -u +e
  if (($# < 3 || $# > 4)) || [[ ! ${4:-5} =~ ^[0-9]{1,9}$ ]]; then
    tool_loop_say 'usage: tool_loop MESSAGE SYSTEM TOOLS [MAX]'
    return 1
  fi
  local program child='' code escript
  for program in elixir mix escript; do
    command -v "$program" >/dev/null || { tool_loop_say "$program is missing; install it (apt install elixir, brew install elixir)"; return 1; }
  done
  export BRAIDCLAW=${BRAIDCLAW:-braidclaw} TOOL_LOOP_AGENT=${TOOL_LOOP_AGENT:-${SHELLCLAW_AGENT_ID:-}} LC_ALL=C.UTF-8
  export TOOL_LOOP_MODEL=${TOOL_LOOP_MODEL:-${TOOL_LOOP_CONFIGURED_MODEL:-${BRAIDCLAW_MODEL:-${SHELLCLAW_MODEL:-}}}}
  export TOOL_LOOP_CALLER=${TOOL_LOOP_QUIET:+$PPID}
  [[ $TOOL_LOOP_AGENT =~ ^[a-z0-9-]{0,64}$ ]] || { tool_loop_say "TOOL_LOOP_AGENT: \"$TOOL_LOOP_AGENT\" is no id (a-z, 0-9, -)"; return 1; }
  command -v "$BRAIDCLAW" >/dev/null || { tool_loop_say "\"$BRAIDCLAW\" is no command; set BRAIDCLAW to the braidclaw executable"; return 1; }
  if [[ ${TOOL_LOOP_WIRE:-messages} != messages || -z ${ANTHROPIC_API_KEY-}${ANTHROPIC_BASE_URL-} ]]; then
    tool_loop_say 'no model: this loop speaks the Messages API; set ANTHROPIC_API_KEY, or configure a provider of kind "anthropic"'
    return 1
  fi
  [[ $TOOL_LOOP_MODEL ]] || { tool_loop_say 'no model: set TOOL_LOOP_MODEL'; return 1; }
  umask 077
  escript=${TOOL_LOOP_ESCRIPT:-$(tool_loop_escript)} && [[ -f $escript ]] || return 1
  TOOL_LOOP_DIR=$(mktemp -d) || return 1
  export TOOL_LOOP_DIR
  trap 'rm -rf "$TOOL_LOOP_DIR"' EXIT
  trap 'tool_loop_stop INT' INT
  trap 'tool_loop_stop TERM' TERM HUP

  if [[ $1 == - ]]; then cat >"$TOOL_LOOP_DIR/message"; else printf %s "$1" >"$TOOL_LOOP_DIR/message"; fi
  LC_ALL=C grep -q '[^[:space:]]' "$TOOL_LOOP_DIR/message" || { tool_loop_say 'nothing to answer: the message is empty'; return 1; }
  tool_loop_said user_input "$TOOL_LOOP_DIR/message" || (($? != 2)) || return 1
  escript "$escript" --system "$2" --tools "$3" --max "${4:-5}" --log-file "${LOG_FILE-}" <"$TOOL_LOOP_DIR/message" >"$TOOL_LOOP_DIR/text" &
  child=$!
  wait "$child"
  code=$? child=''
  ((code == 0)) || return "$((code == 2 ? 2 : 1))"
  tool_loop_said llm_response "$TOOL_LOOP_DIR/text"
  # What a model says must not steer the terminal.
  if [[ -t 1 ]]; then LC_ALL=C tr -d '\000-\010\013-\037\177' <"$TOOL_LOOP_DIR/text" | LC_ALL=C sed $'s/\xc2[\x80-\x9f]//g'; else cat "$TOOL_LOOP_DIR/text"; fi
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then tool_loop_run "$@"; fi
