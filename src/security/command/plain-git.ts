/** Recognises plain git commands: without a shell and without settings before the sub-command. */

import type { CommandPlan } from './verdict.ts'

/** @returns the sub-command: `remote` for `git -C folder remote add …` */
export function plainGit(plan: CommandPlan | undefined): string | undefined {
  if (plan?.kind !== 'argv' || !/(?:^|\/)git$/.test(plan.executable)) return
  const words = plan.argv.slice(1)
  while (words[0] === '-C' || words[0] === '--no-pager') words.splice(0, words[0] === '-C' ? 2 : 1)
  const [sub] = words
  return sub !== undefined && /^[a-z][a-z-]*$/.test(sub) ? sub : undefined
}

/** Sub-commands that bring files of the repository's history into the work tree; the files may have protected names. */
const fromHistory = new Set(
  'clone checkout switch pull merge rebase cherry-pick revert stash restore reset worktree submodule sparse-checkout'.split(' '),
)

export function bringsHistory(sub: string | undefined): boolean {
  return sub !== undefined && fromHistory.has(sub)
}

export type TransferOperation = 'fetch' | 'pull' | 'push'

export type TransferWords = {
  readonly operation: TransferOperation
  /** The values of -C, in order. */
  readonly folders: readonly string[]
  readonly remote: string | undefined
  /** Names and refspecs as they were given. */
  readonly refs: readonly string[]
  /** The options by their long names. */
  readonly options: ReadonlySet<string>
}

const shared = { q: 'quiet', quiet: 'quiet', v: 'verbose', verbose: 'verbose', tags: 'tags' } as const
const reading = { ...shared, p: 'prune', prune: 'prune', t: 'tags' } as const

/** Every other option leaves the command in the sandbox. */
const known: { readonly [operation in TransferOperation]: { readonly [option: string]: string } } = {
  fetch: reading,
  pull: { ...reading, rebase: 'rebase', r: 'rebase', 'no-rebase': 'merge', 'ff-only': 'ff-only' },
  push: {
    ...shared,
    u: 'set-upstream',
    'set-upstream': 'set-upstream',
    f: 'force',
    force: 'force',
    'force-with-lease': 'force-with-lease',
    d: 'delete',
    delete: 'delete',
  },
}

const remoteName = /^\w[\w./+-]*$/
const refName = /^\w[\w./@+#-]*$/

/**
 * Recognises a plain `git fetch`, `git pull` or `git push` to a named remote, which can run outside the sandbox.
 * @returns undefined for everything that is not plain, such as a URL in the place of the remote's name
 */
export function transferWords(plan: CommandPlan): TransferWords | undefined {
  if (plan.kind !== 'argv' || !/(?:^|\/)git$/.test(plan.executable)) return
  const words = plan.argv.slice(1)
  const folders: string[] = []
  while (words[0] === '-C' || words[0] === '--no-pager') if (words.shift() === '-C') folders.push(words.shift() ?? '')
  const operation = words.shift()
  if (operation !== 'fetch' && operation !== 'pull' && operation !== 'push') return
  const options = words.filter((word) => word.startsWith('-')).map((word) => optionOf(operation, word))
  const [remote, ...refs] = words.filter((word) => !word.startsWith('-'))
  const isPlain = options.every((option) => option !== undefined) && (remote === undefined || remoteName.test(remote))
  if (!isPlain || remote?.includes('..') || !refs.every((ref) => isPlainRef(operation, ref))) return
  return { operation, folders, remote, refs, options: new Set(options.flatMap((option) => option ?? [])) }
}

function optionOf(operation: TransferOperation, word: string): string | undefined {
  const name = /^(?:--([a-z-]{2,})|-([a-z]))$/.exec(word)
  const option = name?.[1] ?? name?.[2] ?? ''
  return Object.hasOwn(known[operation], option) ? known[operation][option] : undefined
}

function isPlainRef(operation: TransferOperation, ref: string): boolean {
  const parts = operation === 'push' ? ref.replace(/^\+/, '').split(':') : [ref]
  return parts.length <= 2 && parts.at(-1) !== '' && parts.every((part, at) => isRefName(part) || (part === '' && at === 0))
}

function isRefName(name: string): boolean {
  return refName.test(name) && !/\.\.|@\{|\/\/|\/\.|\.lock(?:\/|$)|[/.]$/.test(name)
}
