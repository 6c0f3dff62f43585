/** Holds bridges in shell as the original program describes them, byte for byte as users may have them: they know only /tmp/planckclaw. */

import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Reads until the empty line, posts it with curl, and answers with the response or with {"error":"timeout"}. */
export const curlBrain = `#!/bin/sh
IN=/tmp/planckclaw/brain_in
OUT=/tmp/planckclaw/brain_out
API=\${API_URL:-https://api.anthropic.com/v1/messages}
while true; do
  payload=""
  while IFS= read -r line; do
    [ -z "$line" ] && break
    payload="$payload$line"
  done < "$IN"
  [ -z "$payload" ] && continue
  response=""
  for try in 1 2 3; do
    response=$(printf '%s' "$payload" | curl -sf --max-time 10 "$API" \\
      -H "content-type: application/json" -H "x-api-key: $ANTHROPIC_API_KEY" -H "anthropic-version: 2023-06-01" -d @-) && break
    response=""
  done
  [ -n "$response" ] || response='{"error":"timeout"}'
  printf '%s\\n\\n' "$response" > "$OUT"
done
`

/** Two tools, and a case for each. */
export const claw = `#!/bin/sh
IN=/tmp/planckclaw/claw_in
OUT=/tmp/planckclaw/claw_out
TOOLS='[{"name":"get_time","description":"Get the current time","input_schema":{"type":"object","properties":{}}},{"name":"system_status","description":"Get system status","input_schema":{"type":"object","properties":{}}}]'
while IFS= read -r line; do
  case "$line" in
    list_tools) printf '%s\\n\\n' "$TOOLS" ;;
    get_time*) printf '%s\\n\\n' "$(date +%s)" ;;
    system_status*) printf 'uptime: %s\\nload: %s\\n\\n' "$(cut -d. -f1 /proc/uptime)" "$(cut -d' ' -f1-3 /proc/loadavg)" ;;
    *) printf 'unknown tool\\n\\n' ;;
  esac
done < "$IN" > "$OUT"
`

/** Searches tools.d for lines of "#TOOLS:", and runs the script with that name. It knows only the longer word. */
export const scanner = `#!/bin/sh
IN=/tmp/planckclaw/claw_in
OUT=/tmp/planckclaw/claw_out
TAB=$(printf '\\t')
while true; do
  IFS= read -r line < "$IN" || continue
  if [ "$line" = "__list_tools__" ]; then
    list=$(sed -n 's/^#TOOLS: *//p' tools.d/*.sh | paste -sd, -)
    printf '[%s]\\n\\n' "$list" > "$OUT"
  else
    name=\${line%%"$TAB"*}
    input=\${line#*"$TAB"}
    file=$(grep -l "^#TOOLS:.*\\"name\\":\\"$name\\"" tools.d/*.sh | head -1)
    if [ -n "$file" ]; then result=$(sh "$file" "$input" 2>&1); else result="unknown tool: $name"; fi
    printf '%s\\n\\n' "$result" > "$OUT"
  fi
done
`

export const greeter = `#!/bin/sh
#TOOLS: {"name":"greet","description":"Greets somebody","input_schema":{"type":"object","properties":{"who":{"type":"string"}},"required":["who"]}}
who=$(printf '%s' "$1" | sed 's/.*"who":"\\([^"]*\\)".*/\\1/')
echo "Good day, $who."
`

/** A minimal interact bridge: it appends each message to a file, and sends each line of another file. */
export const interact = `#!/bin/sh
TAB=$(printf '\\t')
( while IFS="$TAB" read -r channel text; do printf '%s says %s\\n' "$channel" "$text" >> heard.txt; done < /tmp/planckclaw/interact_out ) &
while IFS= read -r line; do printf '42\\t%s\\n' "$line" > /tmp/planckclaw/interact_in; done < said.txt
wait
`

/** Writes the script and makes it executable. */
export function script(path: string, text: string): string {
  mkdirSync(join(path, '..'), { recursive: true })
  writeFileSync(path, text)
  chmodSync(path, 0o755)
  return path
}

/** Passes curl's output from echo to echo, as scripts do whose author's sh was bash. dash interprets the escapes in it differently. */
export const echoBrain = `
IN=/tmp/planckclaw/brain_in
OUT=/tmp/planckclaw/brain_out
while :; do
  REQUEST=
  while IFS= read -r LINE && [ -n "$LINE" ]; do REQUEST=$REQUEST$LINE; done < "$IN"
  [ -n "$REQUEST" ] || continue
  RESPONSE=$(printf '%s' "$REQUEST" | curl -s --max-time 10 -w '\\n%{http_code}' "$API_URL" -H 'content-type: application/json' -d @-)
  CODE=$(echo "$RESPONSE" | tail -n 1)
  JSON=$(echo "$RESPONSE" | sed '$d')
  if [ "$CODE" = 200 ]; then printf '%s\\n\\n' "$JSON" > "$OUT"; else printf '{"error":"timeout"}\\n\\n' > "$OUT"; fi
done
`

/** As echoBrain, with jq in between: under dash jq receives strings with newlines in them, and rejects them. */
export const jqBrain = echoBrain.replace('JSON=$(echo "$RESPONSE" | sed \'$d\')', 'JSON=$(echo "$RESPONSE" | sed \'$d\' | jq -c .)')

/** As echoBrain, with echo's output going through echo again. */
export const twiceBrain = echoBrain.replace('printf \'%s\\n\\n\' "$JSON" >', '{ echo "$JSON"; echo; } >')
