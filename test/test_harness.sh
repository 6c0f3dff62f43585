# shellcheck shell=dash
# Helpers of the tests in sh: each check prints one line. SHELLCLAW_LOAD=init takes the functions from `braidclaw shell-init`, else from lib/.

root=$(cd "$(dirname "$0")/.." && pwd)
checks=0 failures=0
BRAIDCLAW=${BRAIDCLAW:-$root/bin/braidclaw}

# Begins an empty home, so that no test reads or writes the home of a person.
setup_tmpdir() {
  tmpdir=$(mktemp -d) || exit 1
  trap 'rm -rf "$tmpdir"' EXIT
  mkdir "$tmpdir/home"
  export HOME="$tmpdir/home" SHELLCLAW_HOME="$tmpdir/home/.braidclaw" BRAIDCLAW_WORKSPACE="$tmpdir" SHELLCLAW_LLM_BACKEND=stub
  cd "$tmpdir" || exit 1
}

load_libraries() {
  if [ "${SHELLCLAW_LOAD-}" = init ]; then
    eval "$("$BRAIDCLAW" shell-init)"
    return
  fi
  # shellcheck disable=SC1090
  for library in "$root"/lib/*.sh "$root"/lib/tool_loop/*.sh; do . "$library"; done
}

check() {
  checks=$((checks + 1))
  if [ "$2" = ok ]; then echo "ok    $1"; return; fi
  failures=$((failures + 1))
  echo "FAIL  $1: $2"
}

check_exit() { check "$1" "$(if [ "$2" -eq "$3" ]; then echo ok; else echo "expected exit $2, got $3"; fi)"; }
check_output() { check "$1" "$(if [ "$2" = "$3" ]; then echo ok; else echo "expected [$2], got [$3]"; fi)"; }
check_contains() { check "$1" "$(case $3 in *"$2"*) echo ok ;; *) echo "[$2] is not in [$3]" ;; esac)"; }
check_json_field() { check_output "$1" "$4" "$(printf '%s\n' "$2" | jq -r "$3")"; }
check_file_exists() { check "$1" "$(if [ -f "$2" ]; then echo ok; else echo "$2 does not exist"; fi)"; }

summary() {
  echo "$checks checks, $failures failed"
  [ "$failures" -eq 0 ]
}
