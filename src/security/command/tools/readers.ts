/** Lists the commands that only read; a command made of nothing else may run at every level of autonomy. */

import { type Arg, sure } from '../flow/model.ts'

/** They change no file, unless an option or operand names one to write; checking that path marks the command as a writing one. */
const readers = new Set(
  (
    'ls cat tac rev nl head tail wc grep egrep fgrep rg fd find sort uniq comm join paste cut tr fold fmt expand unexpand column shuf ' +
    'sed awk gawk mawk nawk diff cmp file stat du df pwd echo printf date cal tree jq basename dirname realpath readlink which expr test [ ' +
    'true false seq sleep nproc uname whoami id arch uptime md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum cksum sum ' +
    'base64 base32 xxd od hexdump strings zcat tar'
  ).split(' '),
)

export function isReader(name: string): boolean {
  return readers.has(name)
}

/** Each of them only looks, whatever its operands are. */
const gitReaders = new Set(
  (
    'status log diff show whatchanged range-diff shortlog blame annotate describe rev-parse rev-list ls-files ls-tree cat-file diff-tree ' +
    'diff-index diff-files merge-base name-rev for-each-ref show-ref show-branch count-objects check-ignore check-attr cherry version grep ' +
    // What their rules let through at medium risk only looks.
    'config remote reflog worktree symbolic-ref'
  ).split(' '),
)

const listing =
  /^(-[arvlin]+|--(all|remotes|show-current|list|verbose|merged|no-merged|contains|no-contains|points-at|sort|format|column|color|ignore-case))$/

/** `options` are the names of the options that were given. */
export function gitReads(sub: string, { operands, options }: { operands: readonly Arg[]; options: readonly string[] }): boolean {
  if (gitReaders.has(sub)) return true
  if (sub === 'stash') return /^(list|show)$/.test(sure(operands[0]) ?? '')
  if (sub !== 'branch' && sub !== 'tag') return false
  const lists = options.some((name) => /^(-l|--list)$/.test(name))
  return options.every((name) => listing.test(name)) && (operands.length === 0 || lists)
}
