# shellcheck shell=dash
# Reads the configuration of BraidClaw into the shell. Needs jq for agents.json. To be sourced; sh, dash and bash read it.
#
# config_init                  sets SHELLCLAW_HOME, SHELLCLAW_MODEL, SHELLCLAW_DEFAULT_AGENT, SHELLCLAW_TOOL_BACKEND and a BRAIDCLAW_ variable for
#                              each setting, and SHELLCLAW_AGENT_ID and LOG_FILE where they are not set yet. shellclaw.env is read, never run.
# config_get KEY               prints a value: config_get SHELLCLAW_MODEL, config_get model, config_get limits.max_tool_rounds
# config_agent ID KEY          prints what agents.json says of an agent, nothing where it is silent: config_agent coder soul

export SHELLCLAW_HOME

config_init() {
  local assignments
  assignments=$("${BRAIDCLAW:-braidclaw}" config --env </dev/null) || return 1
  eval "$assignments"
  : "${SHELLCLAW_AGENT_ID:=$SHELLCLAW_DEFAULT_AGENT}"
  : "${LOG_FILE:=$SHELLCLAW_HOME/agents/$SHELLCLAW_AGENT_ID/agent.jsonl}"
}

config_get() {
  local name value
  name=$(printf %s "${1-}" | tr 'a-z.-' 'A-Z__')
  case $name in
    [0-9]* | '' | *[!A-Z0-9_]*) echo "config_get: \"${1-}\" is not the name of a setting, such as SHELLCLAW_MODEL" >&2; return 1 ;;
  esac
  for name in "$name" "SHELLCLAW_$name" "BRAIDCLAW_$name"; do
    eval "value=\${$name-}"
    if [ -n "$value" ]; then printf '%s\n' "$value"; return; fi
  done
  echo "config_get: $1 has no value; config_init reads the configuration" >&2
  return 1
}

config_agent() {
  local home=${SHELLCLAW_HOME:-${BRAIDCLAW_HOME:-$HOME/.braidclaw}} file
  for file in "$home/agents.json" "$home/config/agents.json" /dev/null; do [ -f "$file" ] && break; done
  jq -n -r --arg id "${1-}" --arg key "${2-}" '
    ([inputs][0] // {}) as $agents
    | if $agents | has($id) then $agents[$id][$key] // empty elif $id == "default" then empty
      else error("no agent \"\($id)\" in agents.json") end' "$file"
}
