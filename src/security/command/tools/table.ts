/** Lists what the options and operands of each allow-listed tool mean, for rule.ts, and which tools only read. */

import { type Arg, sure } from '../flow/model.ts'
import type { OptionTable } from '../flow/options.ts'

/**
 * `read`, `write`: every operand is a path. `data`: no operand is a path. `copy`: the last operand is written, the others are read.
 * `move`: all are written. `out`: the second is written. `none`: an operand changes the system.
 */
type Operands = 'read' | 'write' | 'data' | 'copy' | 'move' | 'out' | 'none'

export type ToolRule = OptionTable & {
  readonly operands: Operands
  /** The first operand is a pattern or program, unless one of these options gives it. */
  readonly pattern?: string
  /** A file name that begins with `-` could be an option that runs a program or writes to another place. */
  readonly guard?: true
  /** The first operand ends the options. */
  readonly inOrder?: true
  /** Each option takes a name and then a value of this meaning. */
  readonly pairs?: { readonly [option: string]: 'data' | 'read' }
}

const digest = { operands: 'read', flag: '--check --status --strict --tag --zero' } as const
const grep = {
  operands: 'read',
  pattern: '-e --regexp -f --file',
  data: '-e --regexp -m --max-count -A -B -C --after-context --before-context --context --include --exclude --exclude-dir --label --binary-files -D -d --devices --directories --group-separator',
  read: '-f --file --exclude-from',
  flag: '--files-with-matches --files-without-match --fixed-strings --binary --color --colour',
} as const

/** Gives several tools, named in one text, the same rule. */
export function alike<const Rule>(names: string, rule: Rule): { readonly [name: string]: Rule } {
  return Object.fromEntries(names.split(' ').map((name) => [name, rule]))
}

export const toolRules: { readonly [name: string]: ToolRule } = {
  ...alike('cat rev comm readlink zcat', { operands: 'read' }),
  ...alike('tr expr pwd cal dirname which sleep nproc uname whoami id arch uptime', { operands: 'data' }),
  ...alike('tee rmdir rm unlink', { operands: 'write' }),
  ...alike('grep egrep fgrep', grep),
  ...alike('md5sum sha1sum sha224sum sha256sum sha384sum sha512sum sum', digest),
  ...alike('expand unexpand', { operands: 'read', data: '-t --tabs' }),
  ...alike('base64 base32', { operands: 'read', data: '-w --wrap' }),
  ...alike('gzip gunzip', { operands: 'write', data: '-S --suffix' }),
  ...alike('mv ln', { operands: 'move', data: '-S --suffix', write: '-t --target-directory', guard: true }),
  ls: {
    operands: 'read',
    data: '-I --ignore --hide -w --width -T --tabsize --block-size --quoting-style --time-style --sort --format --indicator-style',
    flag: '--time',
  },
  tac: { operands: 'read', data: '-s --separator' },
  nl: { operands: 'read', data: '-b -d -f -h -i -l -n -s -v -w' },
  head: { operands: 'read', data: '-n -c --lines --bytes' },
  tail: { operands: 'read', data: '-n -c --lines --bytes -s --sleep-interval --pid --max-unchanged-stats' },
  wc: { operands: 'read', refuse: '--files0-from' },
  rg: {
    operands: 'read',
    pattern: '-e --regexp -f --file --files --type-list',
    data: '-e --regexp -g --glob --iglob -t --type -T --type-not -A -B -C --after-context --before-context --context -m --max-count -j --threads -M --max-columns -r --replace -d --max-depth --maxdepth --sort --sortr --color --colors -E --encoding --engine --type-add --type-clear --max-filesize --field-match-separator --field-context-separator --path-separator --pre-glob --context-separator --dfa-size-limit --regex-size-limit',
    read: '-f --file --ignore-file',
    exec: '--pre --hostname-bin',
    flag: '--files --files-with-matches --files-without-match --pre-glob --ignore-file-case-insensitive --pretty --ignore --ignore-case --fixed-strings',
    guard: true,
  },
  fd: {
    operands: 'read',
    pattern: '',
    data: '-e --extension -t --type -d --max-depth --min-depth --exact-depth -E --exclude -S --size --changed-within --changed-before -o --owner -c --color -j --threads --max-results --and --format --path-separator --batch-size',
    read: '--ignore-file --base-directory --search-path -C',
    exec: '-x --exec -X --exec-batch',
    flag: '--exclude --extension',
    guard: true,
  },
  sort: {
    operands: 'read',
    data: '-k --key -t --field-separator -S --buffer-size --parallel --batch-size --sort',
    read: '--random-source',
    write: '-o --output -T --temporary-directory',
    exec: '--compress-program',
    refuse: '--files0-from',
    guard: true,
  },
  uniq: { operands: 'out', data: '-f -s -w --skip-fields --skip-chars --check-chars' },
  join: { operands: 'read', data: '-a -v -e -j -o -t -1 -2' },
  paste: { operands: 'read', data: '-d --delimiters' },
  cut: { operands: 'read', data: '-b -c -d -f --bytes --characters --delimiter --fields --output-delimiter' },
  fold: { operands: 'read', data: '-w --width' },
  fmt: { operands: 'read', data: '-w --width -g --goal -p --prefix' },
  column: {
    operands: 'read',
    data: '-s --separator -o --output-separator -c --output-width -N --table-columns -R --table-right -H --table-hide -l --table-columns-limit',
  },
  shuf: { operands: 'read', data: '-n --head-count -i --input-range', read: '--random-source', write: '-o --output', guard: true },
  diff: {
    operands: 'read',
    data: '-U -C -I -x -F -L -W -S --label --exclude --ignore-matching-lines --show-function-line --width --starting-file --palette --tabsize --line-format',
    read: '-X --exclude-from --from-file --to-file',
    flag: '--exclude',
  },
  cmp: { operands: 'read', data: '-n --bytes -i --ignore-initial' },
  file: {
    operands: 'read',
    data: '-F --separator -P --parameter -e --exclude',
    read: '-f --files-from -m --magic-file',
    refuse: '-C --compile',
    flag: '--mime --mime-type --mime-encoding',
  },
  stat: { operands: 'read', data: '-c --format --printf' },
  du: {
    operands: 'read',
    data: '-d --max-depth -t --threshold -B --block-size --exclude --time-style',
    read: '-X --exclude-from',
    refuse: '--files0-from',
    flag: '--exclude',
  },
  df: { operands: 'read', data: '-B --block-size -t --type -x --exclude-type' },
  echo: { operands: 'data', inOrder: true },
  printf: { operands: 'data', inOrder: true },
  date: { operands: 'data', data: '-d --date', read: '-f --file -r --reference', refuse: '-s --set', attached: '-I' },
  tree: {
    operands: 'read',
    data: '-I -P -L --filelimit --charset --timefmt',
    read: '--gitfile --infofile',
    write: '-o',
    refuse: '-R --fromfile --fromtabfile',
    flag: '--fromfile',
    guard: true,
  },
  jq: {
    operands: 'read',
    pattern: '-f --from-file',
    data: '--indent',
    read: '-f --from-file -L --library-path',
    pairs: { '--arg': 'data', '--argjson': 'data', '--slurpfile': 'read', '--rawfile': 'read' },
    flag: '--args --arg --argjson --raw-output --raw-input --slurp',
  },
  basename: { operands: 'data', data: '-s --suffix' },
  realpath: { operands: 'read', read: '--relative-to --relative-base' },
  mkdir: { operands: 'write', data: '-m --mode' },
  touch: { operands: 'write', data: '-d --date -t --time', read: '-r --reference' },
  // A second name for a file (a link) would bypass the protection of the first name.
  cp: { operands: 'copy', data: '-S --suffix', write: '-t --target-directory', refuse: '-l --link -s --symbolic-link', guard: true },
  seq: { operands: 'data', data: '-f -s --format --separator' },
  hostname: { operands: 'none', refuse: '-F --file -b --boot' },
  b2sum: { ...digest, data: '-l --length' },
  cksum: { ...digest, data: '-a --algorithm -l --length' },
  xxd: { operands: 'out' },
  od: { operands: 'read', data: '-A -j -N -t --address-radix --skip-bytes --read-bytes --format', attached: '-w -S' },
  hexdump: { operands: 'read', data: '-e -n -s --length --skip', read: '-f --format-file' },
  strings: { operands: 'read', data: '-n -t -e -T --bytes --radix --encoding' },
  truncate: { operands: 'write', data: '-s --size', read: '-r --reference' },
  patch: {
    operands: 'write',
    data: '-p --strip -F --fuzz',
    read: '-i --input',
    write: '-o --output -r --reject-file -d --directory',
    refuse: '-e --ed',
  },
}

/**
 * Lists the commands that only read; a command made of nothing else may run at every level of autonomy. They change no file, unless an
 * option or operand names one to write; checking that path marks the command as a writing one.
 */
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

/** Sub-commands that only read, whatever their operands are. */
const gitReaders = new Set(
  (
    'status log diff show whatchanged range-diff shortlog blame annotate describe rev-parse rev-list ls-files ls-tree cat-file diff-tree ' +
    'diff-index diff-files merge-base name-rev for-each-ref show-ref show-branch count-objects check-ignore check-attr cherry version grep ' +
    // The uses that their rules allow at medium risk only read.
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
