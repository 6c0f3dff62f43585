#!/usr/bin/env sh
# Runs each test/test_*.sh: in sh with the files of lib/, and in bash with what `braidclaw shell-init` prints.
cd "$(dirname "$0")" || exit 1
failed=0
for file in test_*.sh; do
  [ "$file" = test_harness.sh ] && continue
  echo "$file"
  sh "$file" || failed=1
  SHELLCLAW_LOAD=init bash "$file" || failed=1
done
exit "$failed"
