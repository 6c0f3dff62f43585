#!/usr/bin/env sh
# Runs the four shared tests of the tool loops for the backend $SHELLCLAW_TOOL_BACKEND, or for all that are installed.
root=$(cd "$(dirname "$0")/../.." && pwd) || exit 1
cd "$root" && exec node_modules/.bin/bun --config=/dev/null --no-env-file test --timeout 60000 test/filter/tool-loop/shared.test.ts
