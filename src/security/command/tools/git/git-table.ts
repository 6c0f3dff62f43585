/** Lists the git commands that may run, each with the options and operands that would make it do more. */

import type { OptionTable } from '../../flow/options.ts'

export type GitUse = {
  /** The operands; an entry is undefined where it is known only at run time. */
  readonly words: readonly (string | undefined)[]
  readonly options: readonly string[]
  readonly args: readonly (string | undefined)[]
  readonly known: boolean
}

export type GitRule = OptionTable & {
  /** What operands that look like paths mean; with `write` every operand goes to the gate. */
  readonly operands?: 'read' | 'write'
  /** The first operand is a pattern. */
  readonly pattern?: true
  /** @returns why this use is refused; undefined when it is allowed */
  readonly check?: (use: GitUse) => string | undefined
}

const looks: GitRule = { data: '-S -G -L -n', attached: '-U', read: '-O', flag: '--name-status' }
const none: GitRule = { operands: 'read' }

export const gitRules: { readonly [sub: string]: GitRule } = {
  status: none,
  log: looks,
  diff: looks,
  show: looks,
  whatchanged: looks,
  'range-diff': none,
  shortlog: none,
  blame: { read: '-S --contents --ignore-revs-file', data: '-L' },
  annotate: { read: '-S --contents', data: '-L' },
  describe: { data: '--match --exclude --candidates' },
  'rev-parse': none,
  'rev-list': none,
  'ls-files': { data: '-x --exclude', read: '-X --exclude-from' },
  'ls-tree': none,
  'cat-file': { refuse: '--textconv --filters' },
  'diff-tree': none,
  'diff-index': none,
  'diff-files': none,
  'merge-base': none,
  'name-rev': none,
  'for-each-ref': none,
  'show-ref': none,
  'show-branch': none,
  'count-objects': none,
  'check-ignore': none,
  'check-attr': none,
  cherry: none,
  fsck: none,
  version: none,
  grep: {
    pattern: true,
    data: '-e -A -B -C --threads -m',
    read: '-f',
    check: ({ args }) => (args.some((arg) => /^-[A-Za-z]*O/.test(arg ?? '')) ? '-O opens files in a program' : undefined),
  },
  'symbolic-ref': { check: ({ words }) => (words.length > 1 ? 'with two names moves a branch' : undefined), refuse: '-d --delete' },
  reflog: { check: only(['show', 'exists'], 'can drop what would bring work back') },
  worktree: { check: only(['list'], 'makes and removes folders') },
  remote: { check: only(['get-url'], 'changes or asks other machines', ['-v', '--verbose']) },
  stash: {
    data: '-m --message',
    check: only(['list', 'show', 'push', 'save', 'pop', 'apply', 'create'], 'throws stashed work away'),
  },
  config: {
    read: '-f --file',
    data: '--type --default --get-color',
    check: configReads,
    flag: '--get',
    refuse: '-e --edit --unset --unset-all --add --replace-all --rename-section --remove-section',
  },
  branch: { data: '-u --set-upstream-to --contains --no-contains', refuse: '-D -f --force -M -C' },
  tag: { read: '-F --file', data: '-m --message -u --local-user --contains', refuse: '-d --delete -f --force' },
  add: { operands: 'write', refuse: '-e --edit', flag: '--all' },
  commit: { read: '-F --file -t --template', data: '-m --message -C -c --fixup --squash --cleanup', flag: '--fixup' },
  checkout: { data: '-b --orphan', refuse: '-f --force -B --ours --theirs -p --patch', check: checkoutSwitches },
  switch: { data: '-c --create --orphan', refuse: '-f --force -C --force-create --discard-changes' },
  restore: {
    check: ({ options }) =>
      options.some((name) => /^(-S|--staged)$/.test(name)) && !options.some((name) => /^(-W|--w.*)$/.test(name))
        ? undefined
        : 'throws changes away',
    data: '-s --source',
  },
  reset: { refuse: '--hard --merge --keep' },
  merge: { read: '-F --file', data: '-m --message -X --strategy-option', refuse: '-s --strategy', flag: '--ff --ff-only --no-ff --squash' },
  'cherry-pick': { refuse: '--strategy', data: '-X --strategy-option -m' },
  revert: { refuse: '--strategy', data: '-X --strategy-option -m' },
  apply: { operands: 'read', refuse: '--unsafe-paths', write: '--directory', data: '-p -C' },
  mv: { operands: 'write', refuse: '-f --force' },
  init: { operands: 'write', refuse: '--template --separate-git-dir', data: '-b --initial-branch' },
  archive: { write: '-o', refuse: '--remote', data: '--prefix --format' },
  fetch: { check: plainRemote, refuse: '-f --force' },
  pull: { check: plainRemote, refuse: '-f --force -s --strategy', data: '-X --strategy-option' },
}

function only(allowed: readonly string[], reason: string, flags: readonly string[] = []) {
  return ({ words, options }: GitUse): string | undefined => {
    const [word] = words
    if (words.length === 0) return options.every((name) => flags.length === 0 || flags.includes(name)) ? undefined : reason
    return word !== undefined && allowed.includes(word) ? undefined : reason
  }
}

function configReads({ words, options }: GitUse): string | undefined {
  const reads =
    options.some((name) => /^(--get(-all|-regexp|-urlmatch)?|--list|-l)$/.test(name)) || words[0] === 'get' || words[0] === 'list'
  if (reads || (words.length === 1 && words[0] !== undefined && words[0].includes('.'))) return
  return 'changes settings, which can name programs to run'
}

/** Allows switching to a branch; refuses overwriting files. */
function checkoutSwitches({ words, options, args }: GitUse): string | undefined {
  const [name = ''] = words
  const looksLikeFile = name === '.' || /^:|[*?]|\/$|^(?!v?\d).*\.[a-z]\w{0,4}$/i.test(name)
  if (args.includes('--') || words.length > 1 || (looksLikeFile && !options.includes('-b'))) return 'writes over changed files'
  return words.includes(undefined) ? 'may write over changed files' : undefined
}

/** `ext::command` is also a remote. */
function plainRemote({ words }: GitUse): string | undefined {
  return words.every((word) => word !== undefined && /^[A-Za-z][\w./-]*$/.test(word) && !word.includes('..'))
    ? undefined
    : 'from an address given here is not followed; name a remote'
}
