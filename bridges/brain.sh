#!/bin/sh
# The brain bridge: takes requests of the Messages API from brain_in, one JSON line ended by an empty line, sends them with curl, and writes
# the answers to brain_out in the same form. {"error":"timeout"} when it could not get one, {"error":"fatal"} from the third time in a row
# on, or when the request itself is refused. Needs curl.
#
#   ANTHROPIC_API_KEY    the key; it appears on no command line and in no child's environment
#   ANTHROPIC_BASE_URL   default https://api.anthropic.com
#   PLANCKCLAW_FIFOS     folder of the six FIFOs, default /tmp/planckclaw
#   BRAIN_TRIES          per request, default 3
#   BRAIN_TIMEOUT        seconds per try, default 120
set -u
umask 077

fifos=${PLANCKCLAW_FIFOS:-/tmp/planckclaw}
url=${ANTHROPIC_BASE_URL:-https://api.anthropic.com}/v1/messages
tries=${BRAIN_TRIES:-3}
key=${ANTHROPIC_API_KEY:?set it to your key}
unset ANTHROPIC_API_KEY
newline='
'

# Open for reading and writing: nothing waits for the agent, and its death does not end us.
exec 3<>"$fifos/brain_in" 4<>"$fifos/brain_out" || exit 1

# Sets $body and $status. The body goes through stdin, the key through a descriptor of its own.
post() {
  reply=$(printf '%s' "$payload" | curl -sS -K /dev/fd/5 --data-binary @- -w '\n%{http_code}' "$url" 5<<END
max-time = ${BRAIN_TIMEOUT:-120}
header = "content-type: application/json"
header = "anthropic-version: 2023-06-01"
header = "x-api-key: $key"
END
  )
  status=${reply##*"$newline"}
  body=${reply%"$newline"*}
}

# Only what may pass on another try is tried again: no answer at all (000), too many requests, trouble of the server.
ask() {
  try=1
  while :; do
    post
    case $status in
      408 | 409 | 429 | 5?? | 000 | '') ;;
      *) return ;;
    esac
    echo "brain: HTTP ${status:-none} from $url, try $try of $tries" >&2
    [ "$try" -ge "$tries" ] && return
    sleep "$try"
    try=$((try + 1))
  done
}

failed=0
payload=
while IFS= read -r line <&3; do
  if [ -n "$line" ]; then
    payload=$payload$line
    continue
  fi
  [ -n "$payload" ] || continue
  ask
  payload=
  case $status in
    200)
      failed=0
      # Newlines in JSON are white space: without them it is one line.
      printf '%s\n\n' "$(printf '%s' "$body" | tr '\r\n' '  ')" >&4
      ;;
    408 | 409 | 429 | 5?? | 000 | '')
      failed=$((failed + 1))
      if [ "$failed" -ge 3 ]; then printf '{"error":"fatal"}\n\n' >&4; else printf '{"error":"timeout"}\n\n' >&4; fi
      ;;
    *)
      echo "brain: HTTP $status from $url: $body" >&2
      printf '{"error":"fatal"}\n\n' >&4
      ;;
  esac
done
