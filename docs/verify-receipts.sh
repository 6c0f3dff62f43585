#!/bin/sh
# A second verifier for BraidClaw's receipts, sharing no code with the first: POSIX sh and awk, sha256sum (or openssl in its place).
#
#   verify-receipts.sh LOG HEAD KEY [--segment FILE]... [--checkpoint LINE] [--against LINE]
#
# LOG, HEAD and KEY are tool_receipts.log, receipts.head and receipt.key. Closed segments (tool_receipts.1.log, ...) are named oldest
# first. A LINE is what "braidclaw receipt anchor" prints.
# Prints the verdict; "invalid chain at receipt N: why" names the first broken receipt, or the first missing one of a cut tail.
# Exit: 0 valid, 1 not valid, 2 wrong usage or a tool is missing. Nothing is written but a temporary folder.
#
# A receipt is one line of RFC 8785 JSON. Its hash is the SHA-256 of the line without "receipt_hash" and "mac"; its mac is the
# HMAC-SHA256 of that hash's hex text. Where the key file says "none" receipts have no mac, and the key is empty. An anchor is bc1:LOG_ID:COUNT:HEAD:MAC, its mac the HMAC-SHA256 of the text before the last colon.
# shellcheck disable=SC2012,SC2015

set -u
LC_ALL=C
export LC_ALL
umask 077

usage() { sed -n '4,10s/^# \{0,1\}//p' "$0" >&2; exit 2; }
invalid() { echo "invalid chain at receipt $1: $2"; exit 1; }

checkpoint='' against='' segments=''
newline='
'
[ $# -ge 3 ] || usage
absolute() { case $1 in /*) printf '%s\n' "$1" ;; *) printf '%s/%s\n' "$PWD" "$1" ;; esac; }
log=$(absolute "$1") head=$(absolute "$2") key=$(absolute "$3")
shift 3
while [ $# -gt 0 ]; do
  [ $# -ge 2 ] || usage
  case $1 in
    --checkpoint) checkpoint=$2 ;;
    --against) against=$2 ;;
    --segment) segments=$segments$(absolute "$2")$newline ;;
    *) usage ;;
  esac
  shift 2
done

if command -v sha256sum >/dev/null 2>&1; then hash='sha256sum'
elif command -v openssl >/dev/null 2>&1; then hash='openssl dgst -sha256 -r'
else echo 'neither sha256sum nor openssl is installed' >&2; exit 2
fi

work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
trap 'exit 2' HUP INT TERM

# ---- the log: whole lines only; what follows the last newline is torn, which a crash may do and nobody else is blamed for
: >"$work/log"
while IFS= read -r segment; do
  [ -n "$segment" ] || continue
  [ -r "$segment" ] && [ -f "$segment" ] && [ ! -L "$segment" ] || { echo "the segment $segment cannot be read" >&2; exit 2; }
  tr '\000' '\001' <"$segment" >>"$work/log"
done <<EOF
$segments
EOF
if [ -f "$log" ] && [ ! -L "$log" ]; then
  [ -r "$log" ] || invalid 1 'the log cannot be read'
  # A NUL is no text to awk; any other control character is refused in its place.
  tr '\000' '\001' <"$log" >>"$work/log"
elif [ -e "$log" ] || [ -L "$log" ]; then invalid 1 'the log is no regular file'
fi
lines=$(($(wc -l <"$work/log")))
torn=$(($(awk -v n="$lines" 'NR > n { print length($0) }' "$work/log" | head -n 1) + 0))

# ---- the key
key_fault=''
secret='' keyless=0
if [ -L "$key" ] || [ ! -f "$key" ]; then key_fault='the receipt key is missing or no regular file'
elif [ "$(ls -ld "$key" | cut -c5-10)" != '------' ]; then key_fault='the receipt key can be read by others'
else
  secret=$(cat "$key" 2>/dev/null)
  if [ "$secret" = none ]; then secret='' keyless=1
  else
    case $secret in *[!0-9a-f]*) key_fault='the key file holds no key' ;; esac
    [ ${#secret} -eq 64 ] || key_fault='the key file holds no key'
  fi
fi

# Both pads as octal escapes for printf: the key never appears in an argument list, which other users could read.
pad() {
  rest=$secret i=0
  while [ $i -lt 64 ]; do
    byte=0
    if [ -n "$rest" ]; then
      tail=${rest#??}
      byte=$((0x${rest%"$tail"}))
      rest=$tail
    fi
    printf '\\%03o' $((byte ^ $1))
    i=$((i + 1))
  done
}

# HMAC-SHA256 of each line of file $1, in hex, into file $2. The lines hold nothing but [0-9a-z:].
macs() {
  : >"$2"
  awk -v hash="$hash" -v out="$2" -v pads="$work/pads" '
    BEGIN { getline ipad < pads; getline opad < pads; digits = "0123456789abcdef" }
    function byte(text, at) { return (index(digits, substr(text, at, 1)) - 1) * 16 + index(digits, substr(text, at + 1, 1)) - 1 }
    function octal(text,   made, at, b) {
      made = ""
      for (at = 1; at < 64; at += 2) { b = byte(text, at); made = made "\\" int(b / 64) int(b % 64 / 8) b % 8 }
      return made
    }
    function flush(   i, names, line) {
      if (n == 0) return
      for (i = 1; i <= n; i++) { print "printf '\''" ipad "%s'\'' " message[i] " >m." i > "run"; names = names " m." i }
      close("run"); system("sh ./run; " hash names " >inner")
      for (i = 1; i <= n; i++) { getline line < "inner"; print "printf '\''" opad octal(substr(line, 1, 64)) "'\'' >m." i > "run" }
      close("inner"); close("run"); system("sh ./run; " hash names " | cut -c1-64 >>" out)
      n = 0
    }
    { message[++n] = $0; if (n == 500) flush() }
    END { flush() }
  ' "$1"
}

cd "$work" || exit 2
if [ -n "$key_fault" ]; then
  [ -s log ] && invalid 1 "$key_fault"
else
  { pad 54; echo; pad 92; echo; } >pads
fi

# ---- form, log, order and link of each receipt; the bodies to be hashed
: >table; : >bodies; : >fault
awk -v lines="$lines" -v hash="$hash" '
  function lit(text) { if (substr(rest, 1, length(text)) != text) return 0; rest = substr(rest, length(text) + 1); return 1 }
  function take(   got) { got = substr(rest, 1, RLENGTH); rest = substr(rest, RLENGTH + 1); return got }
  # The strings of canonical JSON: only what must be escaped is, in its shortest form.
  function str() { return match(rest, /^"([^"\\\001-\037]|\\["\\bfnrt]|\\u00(0[0-7bef]|1[0-9a-f]))*"/) ? take() : "" }
  function hex(size) { return match(rest, /^[0-9a-f]+/) && RLENGTH == size ? take() : "" }
  function stop(why) { print NR, why > "fault"; failed = 1; exit }
  function parse(   from) {
    if (!lit("{")) return 0
    if (lit("\"approval\":") && !(str() != "" && lit(","))) return 0
    if (!(lit("\"args_hash\":\"") && hex(64) != "" && lit("\","))) return 0
    # Version 3 may say what became of the changes of the call; the versions before it knew of no such member.
    changes = lit("\"changes\":")
    if (changes && !((lit_of("none direct dropped pending") || (lit("\"") && hex(64) != "" && lit("\""))) && lit(","))) return 0
    if (!(lit("\"conversation_id\":") && str() != "" && lit(","))) return 0
    if (lit("\"error\":") && !(str() != "" && lit(","))) return 0
    if (!(lit("\"id\":") && str() != "" && lit(",\"log_id\":\"") && (log_id = hex(32)) != "" && lit("\","))) return 0
    body = substr($0, 1, length($0) - length(rest))
    mac = "none"
    if (lit("\"mac\":\"") && !((mac = hex(64)) != "" && lit("\","))) return 0
    from = length($0) - length(rest) + 1
    if (!(lit("\"previous_hash\":\"") && (previous = hex(64)) != "" && lit("\","))) return 0
    body = body substr($0, from, length($0) - length(rest) - from + 1)
    if (!(lit("\"receipt_hash\":\"") && (own = hex(64)) != "" && lit("\","))) return 0
    body = body rest
    if (!(lit("\"result_hash\":\"") && hex(64) != "" && lit("\",\"risk\":") && lit_of("low medium high") && lit(","))) return 0
    # Versions 2 and 3 may say what confined the children of the call; version 1 knew of no such member.
    sandbox = lit("\"sandbox\":")
    if (sandbox && !(lit_of("bubblewrap landlock none") && lit(","))) return 0
    if (!lit("\"seq\":")) return 0
    if (!match(rest, /^[1-9][0-9]*/)) return 0
    seq = take()
    if (!(lit(",\"status\":") && lit_of("allowed denied failed") && lit(",\"timestamp\":\""))) return 0
    if (!match(rest, /^[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-9][0-9]:[0-9][0-9]\.[0-9][0-9][0-9]Z/)) return 0
    take()
    if (!(lit("\",\"tool\":") && str() != "" && lit(",\"v\":"))) return 0
    return (lit("3}") || (!changes && lit("2}")) || (!changes && !sandbox && lit("1}"))) && rest == ""
  }
  function lit_of(words,   list, count, i) {
    count = split(words, list, " ")
    for (i = 1; i <= count; i++) if (lit("\"" list[i] "\"")) return 1
    return 0
  }
  function flush(   i, names) {
    if (held == 0) return
    for (i = 1; i <= held; i++) names = names " b." i
    system(hash names " | cut -c1-64 >>bodies")
    held = 0
  }
  BEGIN { ORS = ""; head = sprintf("%064d", 0) }
  NR > lines { exit }
  {
    rest = $0
    if (length($0) >= 1048576 || !parse()) stop("the line is not a receipt in canonical form")
    if (NR > 1 && log_id != first) stop("it belongs to another log")
    if (seq "" != NR "") stop("it says it is receipt " seq)
    if (previous != head) stop("its previous_hash is not the hash of the receipt before it")
    first = log_id; head = own
    print own " " mac " " log_id "\n" > "table"
    name = "b." ++held
    print body > name; close(name)
    if (held == 500) flush()
  }
  END { flush() }
' log
cut -d' ' -f1 table >hashes
[ -s hashes ] && macs hashes seals
[ -e seals ] || : >seals
count=$(($(wc -l <table)))

# ---- hash and mac; the form faults come after all of these
paste -d' ' table bodies seals | awk -v keyless="$keyless" '
  $1 != $4 { print NR, "its content does not match its receipt_hash"; exit }
  $2 != (keyless ? "none" : $5) { print NR, "its mac was not made with this key"; exit }' >first
[ -s first ] || cp fault first
if [ -s first ]; then read -r record why <first; invalid "$record" "$why"; fi

# ---- what the witnesses of the end say
witness() {
  name=$1 line=$2
  case $line in *[!0-9a-z:]*) return 1 ;; esac
  printf '%s\n' "$line" | grep -Eq '^bc1:[0-9a-f]{32}:(0|[1-9][0-9]{0,14}):[0-9a-f]{64}:[0-9a-f]{16,64}$' || return 1
  IFS=: read -r _ w_log w_count w_head w_mac <<EOF
$line
EOF
  at=$w_count
  [ "$at" -gt 0 ] || at=1
  [ -z "$key_fault" ] || invalid 1 "$key_fault"
  printf '%s\n' "${line%:*}" >stem
  macs stem seal
  case $(cat seal) in "$w_mac"*) ;; *) echo "invalid: the $name was not sealed with this key (receipt $at)"; exit 1 ;; esac
  if [ "$count" -gt 0 ] && [ "$(sed -n '1s/.* //p' table)" != "$w_log" ]; then invalid 1 "the $name speaks of another log"; fi
  [ "$w_count" -le "$count" ] || invalid $((count + 1)) "it is missing: the $name knows $w_count receipts, the log holds $count"
  [ "$w_count" -eq 0 ] || [ "$(sed -n "${w_count}p" hashes)" = "$w_head" ] || invalid "$w_count" "it is not the receipt that the $name knows"
}

if [ -n "$checkpoint" ]; then witness checkpoint "$checkpoint" || usage; fi
head_fault=''
# An empty one is none: a crash can come between making it and writing it.
if [ ! -s "$head" ]; then head_fault=missing
else witness 'head file' "$(tr '\000' '\001' <"$head" 2>/dev/null)" || head_fault=damaged
fi
if [ -n "$against" ]; then witness anchor "$against" || usage; fi
if [ -n "$head_fault" ] && { [ "$head_fault" = damaged ] || [ "$count" -gt 0 ]; }; then
  [ "$count" -gt 0 ] && at=$count || at=1
  echo "invalid: the head file is $head_fault (receipt $at)"
  exit 1
fi

[ "$torn" -eq 0 ] || echo "warning: the log ends in an unfinished line of $torn bytes, left by a crash"
if [ -n "$against" ] && [ "$(echo "$against" | cut -d: -f3)" -eq "$count" ]; then echo "valid: $count receipts, proved by anchor"
elif [ -n "$checkpoint" ]; then echo "valid: $count receipts, proved by checkpoint"
else echo "valid: $count receipts; that none is missing at the end is not provable without an anchor"
fi
