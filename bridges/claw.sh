#!/bin/sh
# The claw bridge: answers list_tools with what it can do, and name<TAB>{json} by doing it. An answer ends at an empty line. Add your own
# tools to the list and to the case. Needs nothing but a shell and /proc.
#
#   PLANCKCLAW_FIFOS   folder of the six FIFOs, default /tmp/planckclaw
set -u

fifos=${PLANCKCLAW_FIFOS:-/tmp/planckclaw}
tab=$(printf '\t')

tools='[{"name":"get_time","description":"The current time in seconds since 1970","input_schema":{"type":"object","properties":{}}},'
tools=$tools'{"name":"system_status","description":"Uptime, load and memory of this machine","input_schema":{"type":"object","properties":{}}}]'

# $1 is the name, $2 the input as JSON.
run() {
  case $1 in
    get_time) date +%s ;;
    system_status)
      read -r up _ </proc/uptime
      read -r load _ </proc/loadavg
      echo "uptime: $up s"
      echo "load: $load"
      grep -E '^(MemTotal|MemAvailable):' /proc/meminfo
      ;;
    *) echo "error: no tool is called $1" ;;
  esac
}

# Open for reading and writing: nothing waits for the agent, and its death does not end us.
exec 3<>"$fifos/claw_in" 4<>"$fifos/claw_out" || exit 1

while IFS= read -r line <&3; do
  case $line in
    list_tools | __list_tools__) result=$tools ;;
    *"$tab"*) result=$(run "${line%%"$tab"*}" "${line#*"$tab"}" 2>&1) ;;
    *) result="error: write list_tools, or name, tab, JSON" ;;
  esac
  # An empty line inside would end the answer early: it gets a space.
  printf '%s\n\n' "$(printf '%s' "$result" | sed 's/^$/ /')" >&4
done
