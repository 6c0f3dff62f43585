/**
 * Decides what a plain git fetch, pull or push would do: with which server, with which references, and with which words git runs outside
 * the sandbox. That git works in a separate, empty repository, so it never reads the settings of the user's repository.
 */

import { quote } from '../../kit/text.ts'
import type { Policy } from '../policy.ts'
import { type Refusal, refuse } from '../rules.ts'
import { isListedAddress } from '../targets/address.ts'
import { isAllowed, judgeUrl } from '../targets/url.ts'
import { type TransferOperation, type TransferWords, transferWords } from './plain-git.ts'
import {
  type GitSetting,
  ownRemote,
  type ReadRepository,
  type RemoteAddress,
  type RepositoryFacts,
  type TransferredRefs,
  type TransferVerdict,
} from './transfer.ts'
import type { CommandPlan } from './verdict.ts'

type TransferQuestion = {
  readonly plan: CommandPlan
  readonly cwd: string
  readonly read: ReadRepository
  readonly policy: Pick<Policy, 'allowedDomains' | 'allowedPorts'>
}

/** @returns undefined for every other command, which runs in the sandbox as usual; also for a remote that is a folder */
export async function judgeTransfer({ plan, cwd, read, policy }: TransferQuestion): Promise<TransferVerdict | undefined> {
  const words = transferWords(plan)
  const facts = words && (await read(cwd, words.folders))
  if (words === undefined || facts === undefined) return
  const remote = words.remote ?? usualRemote(words.operation, facts)
  const url = urlOf(remote, words.operation, facts)
  const address = url === undefined ? undefined : parseRemote(url)
  if (address === undefined) return
  const odd = oddSettings(remote, facts) ?? notHere(words, facts)
  if (odd) return odd
  const judged = judgeRemote({ address, sends: words.operation === 'push', policy })
  if (!judged.ok) return judged
  const what = words.operation === 'push' ? pushedRefs({ words, facts, remote }) : fetchedRefs(words, facts, remote)
  if (!what.ok) return what
  const { rewrites, after, settings } = what
  const says = `git ${words.operation} with "${remote}" (${address.shown}), outside the sandbox and with your credentials: ${what.says}`
  const { folder, git, common, inside } = facts
  const { url: used, shown, protocol, host, port } = address
  const where = { url: used, shown, protocol, host, port, listed: judged.listed, repository: { folder, git, common, inside } }
  const all = [...trackingOf(remote, facts), ...settings]
  return { ok: true, transfer: { operation: words.operation, remote, ...where, rewrites, settings: all, words: what.words, after, says } }
}

function last(entries: readonly GitSetting[], key: string): string | undefined {
  return entries.findLast((entry) => entry.key === key)?.value
}

function all(entries: readonly GitSetting[], key: string): readonly string[] {
  return entries.flatMap((entry) => (entry.key === key && entry.value !== undefined ? [entry.value] : []))
}

function usualRemote(operation: TransferOperation, { local, user, branch }: RepositoryFacts): string {
  const both = [...user, ...local]
  const pushed = operation === 'push' ? (last(both, `branch.${branch}.pushremote`) ?? last(both, 'remote.pushdefault')) : undefined
  return pushed ?? last(local, `branch.${branch}.remote`) ?? 'origin'
}

/** Rewrites an address by the user's own settings only; repositories whose settings rewrite addresses were refused before. */
function urlOf(remote: string, operation: TransferOperation, { local, user }: RepositoryFacts): string | undefined {
  const [url] = all(local, `remote.${remote}.url`)
  if (operation !== 'push') return url && rewriteUrl(url, user, ['insteadof'])
  const [pushed] = all(local, `remote.${remote}.pushurl`)
  return pushed === undefined ? url && rewriteUrl(url, user, ['pushinsteadof', 'insteadof']) : rewriteUrl(pushed, user, ['insteadof'])
}

/** Settings by which git would run a program for a transfer, or reach another server, or reach it less safely. */
const obeyed =
  /^(?:core\.(?:sshcommand|gitproxy|askpass|alternaterefscommand)|credential\..+|url\..+\.(?:push)?insteadof|http\.(?!.*(?:postbuffer|version|lowspeed\w+)$).+|ssh\..+|protocol\..+|push\.(?:gpgsign|pushoption))$/s
const obeyedOfRemote = /^(?:uploadpack|receivepack|vcs|proxy|proxyauthmethod|mirror|push|serveroption|promisor|partialclonefilter)$/

function oddSettings(remote: string, { local }: RepositoryFacts): Refusal | undefined {
  const own = `remote.${remote}.`
  const keys = local.map(({ key }) => key)
  const found = keys.filter((key) => obeyed.test(key) || (key.startsWith(own) && obeyedOfRemote.test(key.slice(own.length))))
  if (found.length > 0)
    return refuse(
      'git.settings',
      `the settings of this repository would make git run a program or reach the server in another way: ${[...new Set(found)].join(', ')}. Ask the operator to run it, or to move them to ~/.gitconfig`,
    )
  if (keys.includes('extensions.partialclone') || last(local, 'extensions.refstorage') === 'reftable')
    return refuse('git.remote', 'a partial clone, or one with the format "reftable", is not understood; ask the operator to run it')
  const several = ['url', 'pushurl'].find((name) => all(local, own + name).length > 1)
  if (several) return refuse('git.remote', `remote.${remote}.${several} has more than one address; ask the operator to run it`)
}

function notHere({ operation, remote, refs }: TransferWords, { inside, branch, local }: RepositoryFacts): Refusal | undefined {
  if (operation === 'push') return
  if (!inside)
    return refuse(
      'git.remote',
      'the repository of this worktree is not that of the workspace, so nothing can be fetched into it; push works',
    )
  if (operation === 'pull' && remote === undefined && refs.length === 0 && last(local, `branch.${branch}.merge`) === undefined)
    return refuse(
      'git.remote',
      `the branch ${quote(branch ?? 'HEAD')} has no upstream; name the remote and the branch: git pull origin main`,
    )
}

/** Fetched references land below refs/remotes/ and refs/tags/ only, so no branch moves under its work tree. */
function trackingOf(remote: string, { local }: RepositoryFacts): readonly (readonly [string, string])[] {
  return all(local, `remote.${remote}.fetch`)
    .filter((spec) => /^\^|^\+?[^:]+:refs\/(?:remotes|tags)\//.test(spec))
    .map((spec) => [`remote.${ownRemote}.fetch`, spec] as const)
}

function fetchedRefs({ operation, options, refs }: TransferWords, facts: RepositoryFacts, remote: string): TransferredRefs {
  const { local, user, branch } = facts
  const own = (name: string) => all(local, `remote.${remote}.${name}`).map((value) => [`remote.${ownRemote}.${name}`, value] as const)
  const merges = last(local, `branch.${branch}.remote`) === remote ? all(local, `branch.${branch}.merge`) : []
  const upstream = merges.map((value) => [`branch.${branch}.merge`, value] as const)
  const settings = [...own('tagopt'), ...own('prune'), [`branch.${branch}.remote`, ownRemote] as const, ...upstream]
  const flags = ['quiet', 'verbose', 'tags', 'prune'].filter((name) => options.has(name)).map((name) => `--${name}`)
  const after = operation === 'pull' ? [joining(options, [...user, ...local], branch)] : []
  const named = refs.length === 0 ? 'what it has' : refs.join(', ')
  const says = `fetches ${named}${options.has('prune') ? ', and forgets what is gone there' : ''}`
  return { ok: true, says, rewrites: false, settings, words: ['fetch', ...flags, ownRemote, ...refs], after }
}

function joining(options: ReadonlySet<string>, settings: readonly GitSetting[], branch: string | undefined): readonly string[] {
  const rebase = last(settings, `branch.${branch}.rebase`) ?? last(settings, 'pull.rebase') ?? 'false'
  if (options.has('rebase') || (!options.has('merge') && !/^(?:false|no|off|0)$/i.test(rebase))) return ['rebase', 'FETCH_HEAD']
  const only = options.has('ff-only') || last(settings, 'pull.ff') === 'only'
  return ['merge', '--no-edit', ...(only ? ['--ff-only'] : []), 'FETCH_HEAD']
}

/** `id` is empty for a deletion; `branch` is the local branch, without refs/heads/. */
type PushedRef = { readonly id: string; readonly to: string; readonly force: boolean; readonly branch?: string | undefined }

/**
 * Resolves what a push sends to commits, so that an approval covers exactly these, and names the references that it replaces or deletes.
 */
function pushedRefs({ words, facts, remote }: { words: TransferWords; facts: RepositoryFacts; remote: string }): TransferredRefs {
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
  const isForced = (one: PushedRef) => one.id !== '' && (one.force || options.has('force') || options.has('force-with-lease'))
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

function saidOf({ id, to, branch }: PushedRef, forced: boolean): string {
  const short = to.replace(/^refs\/(?:heads|tags)\//, '')
  if (id === '') return `DELETES ${short} there`
  const from = branch === undefined || branch === short ? '' : `${branch} to `
  return `${forced ? 'REPLACES the history of' : 'sends'} ${from}${short} (${id.slice(0, 10)})`
}

/** The current branch, to the branch of the same name, as git does by default. */
function usualSpec({ branch, local, user }: RepositoryFacts, remote: string): string[] | Refusal {
  const advice = 'name the remote and the branch: git push origin main'
  if (branch === undefined) return refuse('git.refs', `HEAD is detached, so it names no branch to push; ${advice}`)
  const way = [...user, ...local].findLast(({ key }) => key === 'push.default')?.value ?? 'simple'
  const merge = local.findLast(({ key }) => key === `branch.${branch}.merge`)?.value
  const isOwn = local.findLast(({ key }) => key === `branch.${branch}.remote`)?.value === remote
  const other = way !== 'current' && isOwn && merge !== undefined && merge !== `refs/heads/${branch}`
  if (!/^(?:simple|current|upstream|tracking)$/.test(way) || other)
    return refuse('git.refs', `what "git push" sends here depends on push.default and on the branch's upstream; ${advice}`)
  return [branch]
}

function sentBy(spec: string, facts: RepositoryFacts, options: ReadonlySet<string>): PushedRef | Refusal {
  const [from = '', to] = spec.replace(/^\+/, '').split(':')
  const force = spec.startsWith('+')
  if (options.has('delete')) return { id: '', to: fullName(from, 'heads'), force }
  if (from === '') return { id: '', to: fullName(to ?? '', 'heads'), force }
  const found = localRef(from, facts)
  if (found === undefined)
    return refuse('git.refs', `${quote(from)} is not a branch or tag of this repository; git branch -a and git tag list them`)
  const target = to ?? found.name
  if (target === undefined) return refuse('git.refs', 'HEAD is detached; name the branch to push to: HEAD:main')
  const branch = /^refs\/heads\/(.+)$/.exec(found.name ?? '')?.[1]
  return { id: found.id, to: fullName(target, found.name?.startsWith('refs/tags/') ? 'tags' : 'heads'), force, branch }
}

function localRef(from: string, { refs, branch, head }: RepositoryFacts): { readonly id: string; readonly name?: string } | undefined {
  if (from === 'HEAD' || from === '@') return head === undefined ? undefined : { id: head, name: branch && `refs/heads/${branch}` }
  const name = [from, `refs/heads/${from}`, `refs/tags/${from}`].find((each) => each.startsWith('refs/') && refs.has(each))
  const id = refs.get(name ?? '')
  return name === undefined || id === undefined ? undefined : { id, name }
}

function fullName(name: string, kind: 'heads' | 'tags'): string {
  return name.startsWith('refs/') ? name : `refs/${kind}/${name}`
}

function upstreamOf({ id, to, branch }: PushedRef, remote: string): readonly (readonly string[])[] {
  if (id === '' || branch === undefined || !to.startsWith('refs/heads/')) return []
  return [
    ['config', `branch.${branch}.remote`, remote],
    ['config', `branch.${branch}.merge`, to],
  ]
}

/** Reads the address of a git remote. @returns undefined for anything else, such as a path */
export function parseRemote(url: string): RemoteAddress | undefined {
  if (/[\s\p{Cc}\\]/u.test(url)) return
  const web = /^(https?):\/\/(?:[^/?#@]*@)?(\[[\da-f:.]+\]|\w[\w.-]*)(?::(\d{1,5}))?(\/[^?#]*)$/i.exec(url)
  if (web) {
    const [, scheme = '', host = '', port, path = ''] = web
    const protocol = scheme.toLowerCase() === 'http' ? 'http' : 'https'
    const at = port === undefined ? (protocol === 'http' ? 80 : 443) : Number(port)
    const shown = `${protocol}://${host.toLowerCase()}${port === undefined ? '' : `:${port}`}${path}`
    return { url, protocol, host: host.replace(/^\[|\]$/g, '').toLowerCase(), port: at, shown }
  }
  const ssh =
    /^ssh:\/\/(?:[\w.+][\w.+-]*@)?(\w[\w.-]*)(?::(\d{1,5}))?\/\S+$/.exec(url) ??
    /^(?:[\w.+][\w.+-]*@)?(\w[\w.-]*):()(?!:|\/\/)\S+$/.exec(url)
  if (ssh) return { url, protocol: 'ssh', host: (ssh[1] ?? '').toLowerCase(), port: Number(ssh[2] || 22), shown: url }
}

/**
 * Applies the first or the longest `insteadOf`, as git does.
 * @param kinds tried in this order; one that matches ends the search
 */
export function rewriteUrl(url: string, settings: readonly GitSetting[], kinds: readonly ('insteadof' | 'pushinsteadof')[]): string {
  for (const kind of kinds) {
    const rules = settings.flatMap(({ key, value = '' }) => {
      const base = key.startsWith('url.') && key.endsWith(`.${kind}`) ? key.slice(4, -kind.length - 1) : undefined
      return base !== undefined && value !== '' && url.startsWith(value) ? [{ base, value }] : []
    })
    const [longest] = rules.toSorted((a, b) => b.value.length - a.value.length)
    if (longest) return longest.base + url.slice(longest.value.length)
  }
  return url
}

type RemoteQuery = {
  readonly address: RemoteAddress
  readonly sends: boolean
  readonly policy: Pick<Policy, 'allowedDomains' | 'allowedPorts'>
}

/**
 * Judges the host of a remote by the rules for every other request. A name of the local network counts only if allowed_domains lists it; so
 * does plain http, and that only for an address.
 */
export function judgeRemote({ address, sends, policy }: RemoteQuery): { readonly ok: true; readonly listed: boolean } | Refusal {
  const { protocol, host, port, shown } = address
  if (protocol === 'http' && !isListedAddress(host, policy.allowedDomains))
    return refuse('git.remote', `${quote(shown)} is plain http, which anybody on the way can change; use https or ssh`)
  const ownPort = protocol === 'ssh' && port === 22
  const at = `${protocol === 'http' ? 'http' : 'https'}://${host.includes(':') ? `[${host}]` : host}${ownPort ? '' : `:${port}`}/`
  const verdict = judgeUrl({ url: at, method: sends ? 'POST' : 'GET', policy })
  if (verdict.ok) return { ok: true, listed: verdict.allowed }
  if (verdict.rule === 'url.local_name' && isAllowed(host, policy.allowedDomains)) return { ok: true, listed: true }
  return { ...verdict, reason: `${verdict.reason} (the remote ${quote(shown)})` }
}
