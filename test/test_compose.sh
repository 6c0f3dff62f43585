#!/usr/bin/env sh
# shellcheck disable=SC1091,SC2154
. "$(dirname "$0")/test_harness.sh"
setup_tmpdir
load_libraries

agent=$SHELLCLAW_HOME/agents/default
mkdir -p "$agent/context"
echo 'You are brief.' >"$agent/soul.md"
check_output 'the soul is the system prompt' 'You are brief.' "$(compose_system "$agent")"
echo 'The project is called Ada.' >"$agent/context/b.md"
echo 'It is Monday.' >"$agent/context/a.md"
check_output 'context follows in the order of its names' "$(printf 'You are brief.\n\nIt is Monday.\n\nThe project is called Ada.')" "$(compose_system "$agent")"
check_output 'the same as braidclaw compose' "$("$BRAIDCLAW" compose)" "$(compose_system "$agent")"
compose_system "$tmpdir/none" 2>/dev/null
check_exit 'a folder without a soul fails' 1 $?
summary
