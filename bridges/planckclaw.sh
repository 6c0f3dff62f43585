#!/bin/sh
# The launcher: reads config.env of the current folder, makes the six FIFOs and the three files of the memory, and runs brain.sh, claw.sh,
# the agent and an interaction bridge until that bridge ends: Discord when there is a token, else this terminal.
#
#   ANTHROPIC_API_KEY    see brain.sh, which alone gets it
#   DISCORD_BOT_TOKEN    with DISCORD_CHANNEL_ID: Discord in place of the terminal; no other process gets it
#   PLANCKCLAW_FIFOS     folder of the six FIFOs, default /tmp/planckclaw
#   PLANCKCLAW_DIR       folder of soul.md, summary.md and history.jsonl, default ./memory
#   PLANCKCLAW_AGENT     the agent, default dist/planck.js of this package ("npm run planck")
set -eu
umask 077

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
# shellcheck source=/dev/null
[ ! -f ./config.env ] || . ./config.env
export PLANCKCLAW_FIFOS="${PLANCKCLAW_FIFOS:-/tmp/planckclaw}" PLANCKCLAW_DIR="${PLANCKCLAW_DIR:-./memory}"
agent=${PLANCKCLAW_AGENT:-$here/../dist/planck.js}
: "${ANTHROPIC_API_KEY:?is missing; write it into config.env}"
[ -x "$agent" ] || { echo "$agent is missing; run: npm run planck" >&2; exit 1; }

mkdir -p "$PLANCKCLAW_FIFOS" "$PLANCKCLAW_DIR"
for name in interact brain claw; do
  for fifo in "$PLANCKCLAW_FIFOS/${name}_in" "$PLANCKCLAW_FIFOS/${name}_out"; do [ -p "$fifo" ] || mkfifo "$fifo"; done
done
[ -f "$PLANCKCLAW_DIR/soul.md" ] || echo 'You are a helpful personal assistant.' > "$PLANCKCLAW_DIR/soul.md"
[ -f "$PLANCKCLAW_DIR/history.jsonl" ] || : > "$PLANCKCLAW_DIR/history.jsonl"
[ -f "$PLANCKCLAW_DIR/summary.md" ] || : > "$PLANCKCLAW_DIR/summary.md"

pids=
trap 'trap - EXIT; kill $pids 2>/dev/null || :' EXIT
trap 'exit 0' INT TERM
(unset DISCORD_BOT_TOKEN; exec "$here/brain.sh") & pids="$pids $!"
unset ANTHROPIC_API_KEY
(unset DISCORD_BOT_TOKEN; exec "$here/claw.sh") & pids="$pids $!"
(unset DISCORD_BOT_TOKEN; exec "$agent") & pids="$pids $!"
if [ -n "${DISCORD_BOT_TOKEN:-}" ]; then
  "$here/../bin/braidclaw" bridge discord & pids="$pids $!"
  wait "$!"
else
  "$here/interact.sh"
fi
