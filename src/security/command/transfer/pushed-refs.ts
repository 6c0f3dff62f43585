/** Resolves what a push sends to commits, so that a yes covers exactly these, and says which references it replaces or deletes. */

import { quote } from '../../../kit/text.ts'
import { type Refusal, refuse } from '../../rules.ts'
import { ownRemote, type RepositoryFacts, type TransferredRefs } from './transfer.ts'
import type { TransferWords } from './transfer-words.ts'

type Asked = { readonly words: TransferWords; readonly facts: RepositoryFacts; readonly remote: string }

/** `id` is empty for a deletion; `branch` is the local branch, without refs/heads/. */
type Sent = { readonly id: string; readonly to: string; readonly force: boolean; readonly branch?: string | undefined }

export function pushedRefs({ words, facts, remote }: Asked): TransferredRefs {
  const { options, refs } = words
  const tags = options.has('tags') ? [...facts.refs].filter(([name]) => name.startsWith('refs/tags/')) : []
  const specs = refs.length > 0 || options.has('tags') ? refs : usualSpec(facts, remote)
  if ('ok' in specs) return specs
  const sent = specs.map((spec) => sentBy(spec, facts, options))
  const bad = sent.find((one) => 'ok' in one)
  if (bad && 'ok' in bad) return bad
  const named = sent.flatMap((one) => ('ok' in one ? [] : [one]))
  const each = [...named, ...tags.map(([to, id]) => ({ id, to, force: false }))]
  if (each.length === 0) return refuse('git.refs', 'there is nothing to push: the repository has no tags')
  const isForced = (one: Sent) => one.id !== '' && (one.force || options.has('force') || options.has('force-with-lease'))
  const flags = ['quiet', 'verbose', 'force', 'force-with-lease'].filter((name) => options.has(name)).map((name) => `--${name}`)
  return {
    ok: true,
    says: each.map((one) => saidOf(one, isForced(one))).join(', '),
    rewrites: each.some((one) => one.id === '' || isForced(one)),
    settings: [],
    words: ['push', '--porcelain', ...flags, ownRemote, ...each.map(({ id, to, force }) => `${force ? '+' : ''}${id}:${to}`)],
    after: options.has('set-upstream') ? named.flatMap((one) => upstreamOf(one, remote)) : [],
  }
}

function saidOf({ id, to, branch }: Sent, forced: boolean): string {
  const short = to.replace(/^refs\/(?:heads|tags)\//, '')
  if (id === '') return `DELETES ${short} there`
  const from = branch === undefined || branch === short ? '' : `${branch} to `
  return `${forced ? 'REPLACES the history of' : 'sends'} ${from}${short} (${id.slice(0, 10)})`
}

/** The current branch, to the branch of the same name, as git does by default. */
function usualSpec({ branch, local, user }: RepositoryFacts, remote: string): string[] | Refusal {
  const advice = 'name the remote and the branch: git push origin main'
  if (branch === undefined) return refuse('git.refs', `HEAD is detached, so there is no branch to push; ${advice}`)
  const way = [...user, ...local].findLast(({ key }) => key === 'push.default')?.value ?? 'simple'
  const merge = local.findLast(({ key }) => key === `branch.${branch}.merge`)?.value
  const isOwn = local.findLast(({ key }) => key === `branch.${branch}.remote`)?.value === remote
  const other = way !== 'current' && isOwn && merge !== undefined && merge !== `refs/heads/${branch}`
  if (!/^(?:simple|current|upstream|tracking)$/.test(way) || other)
    return refuse('git.refs', `what "git push" sends here depends on push.default and on the branch's upstream; ${advice}`)
  return [branch]
}

function sentBy(spec: string, facts: RepositoryFacts, options: ReadonlySet<string>): Sent | Refusal {
  const [from = '', to] = spec.replace(/^\+/, '').split(':')
  const force = spec.startsWith('+')
  if (options.has('delete')) return { id: '', to: fullName(from, 'heads'), force }
  if (from === '') return { id: '', to: fullName(to ?? '', 'heads'), force }
  const found = localRef(from, facts)
  if (found === undefined)
    return refuse('git.refs', `${quote(from)} is no branch or tag of this repository; git branch -a and git tag list them`)
  const target = to ?? found.name
  if (target === undefined) return refuse('git.refs', 'HEAD is detached; name the branch to push to: HEAD:main')
  const branch = /^refs\/heads\/(.+)$/.exec(found.name ?? '')?.[1]
  return { id: found.id, to: fullName(target, found.name?.startsWith('refs/tags/') ? 'tags' : 'heads'), force, branch }
}

function localRef(from: string, { refs, branch, head }: RepositoryFacts): { readonly id: string; readonly name?: string } | undefined {
  if (from === 'HEAD' || from === '@')
    return head === undefined ? undefined : { id: head, ...(branch ? { name: `refs/heads/${branch}` } : {}) }
  const name = [from, `refs/heads/${from}`, `refs/tags/${from}`].find((each) => each.startsWith('refs/') && refs.has(each))
  const id = refs.get(name ?? '')
  return name === undefined || id === undefined ? undefined : { id, name }
}

function fullName(name: string, kind: 'heads' | 'tags'): string {
  return name.startsWith('refs/') ? name : `refs/${kind}/${name}`
}

function upstreamOf({ id, to, branch }: Sent, remote: string): readonly (readonly string[])[] {
  if (id === '' || branch === undefined || !to.startsWith('refs/heads/')) return []
  return [
    ['config', `branch.${branch}.remote`, remote],
    ['config', `branch.${branch}.merge`, to],
  ]
}
