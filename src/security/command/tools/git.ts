/** Judges git: which sub-commands only look or record, and which options and settings run programs or discard work. */

import { type Arg, scatters, sure } from '../flow/model.ts'
import { type OptionTable, type ParsedOptions, parseOptions } from '../flow/options.ts'
import { checkLoose, checkPath } from '../flow/paths.ts'
import { searchTexts } from '../flow/search.ts'
import { checkOptions, isLed, type Use } from './rule.ts'
import { alike, gitReads } from './table.ts'

const globals = {
  data: '--namespace --attr-source --list-cmds',
  read: '-C --git-dir --work-tree',
  exec: '--exec-path --upload-pack --receive-pack',
  refuse: '--bare --config-env --super-prefix',
  flag: '--no-pager --version --help --paginate --html-path --man-path --info-path --no-replace-objects --no-optional-locks --no-advice --literal-pathspecs --glob-pathspecs --noglob-pathspecs --icase-pathspecs',
} as const

const harmlessSettings =
  /^(color\.[\w.]+=\w+|core\.quote[pP]ath=\w+|core\.pager=(cat)?|advice\.\w+=\w+|log\.\w+=\w+|user\.(name|email)=[^\n]*|init\.defaultBranch=[\w-]+)$/

/** @returns the sub-command, which the caller records */
export function judgeGit(use: Use, args: readonly Arg[]): string {
  const { judge } = use
  const parsed = parseOptions(args, { ...globals, data: `${globals.data} -c` }, { inOrder: true })
  checkOptions(use, parsed)
  for (const { name, value } of parsed.options) {
    if (name === '-c' && !harmlessSettings.test((value && sure(value)) ?? '')) refuseSetting(use, value)
  }
  if (parsed.options.some((option) => /^--(git-dir|work-tree|exec-path)$/.test(option.name)))
    judge.raise('command.option', 'git with another repository folder obeys its settings, which may run programs')
  const [word, ...rest] = parsed.operands
  const sub = word && sure(word)
  if (!word) return ''
  if (sub === undefined) {
    judge.raise('command.dynamic', 'which git command runs is known only when it runs')
    return ''
  }
  judgeSub(inFolders(use, parsed), sub, rest)
  return sub
}

/** `!command` in a setting is shell. */
function refuseSetting({ judge, place }: Use, setting: Arg | undefined): void {
  const text = setting && sure(setting)
  judge.raise(
    'command.option',
    `git -c ${text === undefined ? '' : JSON.stringify(text.slice(0, 60))} may make git run programs; leave it out`,
  )
  searchTexts(
    judge,
    (setting?.texts ?? []).map((one) => /=!?(.*)$/s.exec(one)?.[1] ?? ''),
    place,
  )
}

/** `git -C folder`. */
function inFolders(use: Use, { options }: ParsedOptions): Use {
  const folders = options.filter((option) => option.name === '-C').map((option) => sure(option.value))
  if (folders.length === 0) return use
  const cwds = folders.includes(undefined)
    ? undefined
    : use.place.cwds?.map((cwd) => folders.reduce<string>((at, folder) => (folder?.startsWith('/') ? folder : `${at}/${folder}`), cwd))
  return { ...use, place: { ...use.place, cwds } }
}

function judgeSub(use: Use, sub: string, args: readonly Arg[]): undefined {
  const { judge, place } = use
  const rule = Object.hasOwn(gitRules, sub) ? gitRules[sub] : undefined
  if (!rule) {
    judge.raise('command.option', `git ${sub} is not one of the git commands that only look or record`)
    searchOptions(use, args)
    return searchInner(use, sub, args)
  }
  const parsed = parseOptions(args, {
    ...rule,
    data: `${commonData} ${rule.data ?? ''}`,
    exec: commonExec + (rule.exec ?? ''),
    refuse: `${commonRefuse} ${rule.refuse ?? ''}`,
    read: `${rule.read ?? ''} --pathspec-from-file`,
    write: `${rule.write ?? ''} --output`,
    flag: `${commonFlags} ${rule.flag ?? ''}`,
  })
  checkOptions(use, parsed)
  const words = parsed.operands.map(sure)
  if (!gitReads(sub, { operands: parsed.operands, options: parsed.options.map((option) => option.name) })) judge.found.acts = true
  const refused = rule.check?.({
    words,
    options: parsed.options.map((option) => option.name),
    args: args.map(sure),
    known: !words.includes(undefined),
  })
  if (refused !== undefined) judge.raise('command.option', `git ${sub} ${refused}`)
  for (const [index, operand] of parsed.operands.entries()) {
    const fed = !operand.word && operand.kind === 'name' && !isLed(operand)
    if (fed && !parsed.behind.includes(operand) && !onlyTells.has(sub)) mistakable(use)
    if (rule.pattern && index === 0 && !parsed.options.some((option) => /^-[ef]$/.test(option.name))) continue
    checkOperand(use, operand, rule.operands ?? 'read')
  }
  if (parsed.options.some((option) => option.name === '--no-index'))
    for (const operand of parsed.operands) checkPath(judge, operand, 'read', place)
}

/** Sub-commands without an option that writes or runs anything. */
const onlyTells = new Set('status ls-tree rev-parse check-ignore check-attr'.split(' '))

const commonData =
  '--author --date --grep --since --until --after --before --max-count --skip --committer --trailer --diff-filter --inter-hunk-context --max-depth --sort --points-at --ignore-matching-lines'
const commonExec = '--upload-pack --receive-pack --exec --extcmd '
const commonRefuse = '--ext-diff --edit-description --open-files-in-pager'
const commonFlags =
  '--exclude --exclude-standard --format --pretty --others --output-indicator-new --output-indicator-old --output-indicator-context --ours --edit --no-edit --no-index --no-pager --no-ext-diff --all --amend --allow-empty --staged --cached --stat --name-only --oneline --graph --decorate --color --word-diff --patch --follow --text --textconv --recursive --reference --remote --remotes --relative --files --file --template --force --hard --delete --include --ignore-revs-file'

function checkOperand({ judge, place }: Use, operand: Arg, access: 'read' | 'write'): void {
  if (operand.kind === 'unknown') judge.raise('command.unclear', 'the arguments of git are known only when it runs; write it out')
  const open = operand.kind === 'name' && !operand.globs.length && operand.texts.some((text) => /^\u{F8FF}/u.test(text))
  if (operand.word && (open || scatters(operand))) mistakable({ judge })
  for (const word of operand.globs) judge.found.dotted.add(word)
  if (access === 'write') checkPath(judge, operand, 'write', place)
  else checkLoose(judge, operand, 'read', place)
}

function mistakable({ judge }: Pick<Use, 'judge'>): void {
  judge.raise('command.option', 'git could take a name for an option; quote it, and put -- before it')
}

/** `git bisect run rm`, `git rebase -x 'rm -rf /'`, `git submodule foreach …`: judged by the inner command. */
function searchInner({ judge, place }: Use, sub: string, args: readonly Arg[]): undefined {
  const run = args.findIndex((arg) => /^(run|foreach|--)$/.test(sure(arg) ?? ''))
  if (/^(bisect|submodule)$/.test(sub) && run >= 0)
    judge.invoke(
      args.slice(run + 1).filter((arg) => !sure(arg)?.startsWith('--')),
      place,
    )
  if (!/^(rebase|filter-branch|submodule|difftool|mergetool|bisect|filter-repo|for-each-repo)$/.test(sub)) {
    for (const arg of args) checkLoose(judge, arg, 'write', place)
    return
  }
  const texts = args.flatMap((arg) => arg.texts.filter((text) => /[\s;|&]/.test(text)))
  searchTexts(
    judge,
    texts.map((text) => text.replace(/^--?[\w-]+=/, '')),
    place,
  )
}

/** Searches the options that, in every git command, take a command or a setting that may contain a command. */
function searchOptions({ judge, place }: Use, args: readonly Arg[]): void {
  for (const [index, arg] of args.entries()) {
    const attached = arg.texts.flatMap((text) => /^--(?:upload-pack|receive-pack|exec|extcmd|config)=(.*)$/s.exec(text)?.[1] ?? [])
    const next = /^(-[xuc]|--(upload-pack|receive-pack|exec|extcmd|config))$/.test(sure(arg) ?? '') ? (args[index + 1]?.texts ?? []) : []
    searchTexts(
      judge,
      [...attached, ...next].map((text) => text.replace(/^[\w.-]+=!?/, '')),
      place,
    )
  }
}

type GitUse = {
  /** The operands; an entry is undefined where it is known only at run time. */
  readonly words: readonly (string | undefined)[]
  readonly options: readonly string[]
  readonly args: readonly (string | undefined)[]
  readonly known: boolean
}

type GitRule = OptionTable & {
  /** The meaning of operands that look like paths; with `write` every operand goes to the gate. */
  readonly operands?: 'read' | 'write'
  /** The first operand is a pattern. */
  readonly pattern?: true
  /** @returns why this use is refused; undefined when it is allowed */
  readonly check?: (use: GitUse) => string | undefined
}

const plain =
  'status range-diff shortlog rev-parse rev-list ls-tree diff-tree diff-index diff-files merge-base name-rev for-each-ref show-ref show-branch ' +
  'count-objects check-ignore check-attr cherry fsck version'

/** Lists the git commands that may run, each with the options and operands that would make it do more. */
export const gitRules: { readonly [sub: string]: GitRule } = {
  ...alike(plain, { operands: 'read' }),
  ...alike('log diff show whatchanged', { data: '-S -G -L -n', attached: '-U', read: '-O', flag: '--name-status' }),
  blame: { read: '-S --contents --ignore-revs-file', data: '-L' },
  annotate: { read: '-S --contents', data: '-L' },
  describe: { data: '--match --exclude --candidates' },
  'ls-files': { data: '-x --exclude', read: '-X --exclude-from' },
  'cat-file': { refuse: '--textconv --filters' },
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
  stash: { data: '-m --message', check: only(['list', 'show', 'push', 'save', 'pop', 'apply', 'create'], 'throws stashed work away') },
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
