#!/usr/bin/env sh
# shellcheck disable=SC1091,SC2154
. "$(dirname "$0")/test_harness.sh"
setup_tmpdir
load_libraries

file=$tmpdir/current.jsonl
check_output 'a session that does not exist has no entries' 0 "$(session_count "$file")"
session_append "$file" user "$(printf 'one "quoted"\ntwo \\n three')"
session_append "$file" assistant "$(printf 'red \033[31mtext')"
big=$(head -c 200000 /dev/zero | tr '\0' x)
session_append "$file" user "$big"
check_output 'three entries are counted' 3 "$(session_count "$file")"
check_output 'an entry has the keys of the specification' '["content","role","ts"]' "$(head -n 1 "$file" | jq -c keys)"
check_output 'a long entry is whole' 200000 "$(tail -n 1 "$file" | jq '.content | length')"
check_contains 'the first entry is shown with its lines indented' "$(printf ' user: one "quoted"\n  two \\n three')" "$(session_load "$file")"
check_output 'a limit shows the last entries' 1 "$(session_load "$file" 1 | grep -c .)"
check_contains 'control characters do not reach the terminal' 'assistant: red [31mtext' "$(session_load "$file" 2)"
printf '{"ts":"torn\n"no entry"\n' >>"$file"
session_append "$file" user after
check_output 'lines that are not entries are not counted' 4 "$(session_count "$file")"
check_output 'nor shown' 4 "$(session_load "$file" | grep -c ' user: \| assistant: ')"
check_output 'and nothing complains of them' '' "$(session_load "$file" 2>&1 >/dev/null)"
session_clear "$file"
check_exit 'clearing succeeds' 0 $?
check_output 'the session is empty' 0 "$(session_count "$file")"
check_file_exists 'and there' "$file"
session_append "$file" user again
session_clear "$file"
check_output 'each clearing has an archive of its own' 2 "$(find "$tmpdir" -maxdepth 1 -name '20*.jsonl' | grep -c .)"
session_append "$file" user 2>"$tmpdir/complaint"
check_exit 'an entry needs a content' 1 $?
summary
