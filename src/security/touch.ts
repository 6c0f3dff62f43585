/** Judges one touch of a call: it is forbidden, or rated and resolved into the plan that will be executed. */

import type { Touch } from '../runtime/port.ts'
import { type AlwaysRule, alwaysRuleFor } from './always.ts'
import { type CommandFacts, type CommandMode, highest, pathRisk, type Rating, type RequestFacts } from './autonomy.ts'
import type { judgeCommand } from './command/judge.ts'
import type { ReadRepository, Transfer, TransferVerdict } from './command/transfer.ts'
import type { CommandPlan } from './command/verdict.ts'
import type { PlannedCommand, PlannedPath, PlannedUrl } from './plan.ts'
import { forbiddenWithoutView, type Policy } from './policy.ts'
import type { Refusal } from './rules.ts'
import { expandHosts } from './targets/host-lists.ts'
import { createFollower, type Disk } from './targets/link.ts'
import { isUnder, judgePath, placeAsSpelt } from './targets/path.ts'

export type TouchFinding =
  | {
      readonly ok: true
      readonly rating: Rating
      readonly reads: boolean
      readonly writes: readonly string[]
      /** The places outside the workspace that a command names. */
      readonly outside?: readonly string[]
      readonly path?: PlannedPath
      readonly url?: PlannedUrl
      readonly command?: PlannedCommand
      readonly facts?: CommandFacts
      /** The files whose content decides what the command runs, where it works on the workspace itself. */
      readonly runs?: readonly string[]
      readonly request?: RequestFacts & { readonly carries: boolean; readonly foreign: boolean }
      readonly always?: AlwaysRule
    }
  | { readonly ok: false; readonly rule: string; readonly reason: string }

export type TouchContext = {
  readonly policy: Policy
  readonly resolve: (name: string) => string | undefined
  /** Absent when the gate must not look at the disk; it then judges paths by their text alone. */
  readonly disk?: Disk
  /** Absent when it is not known how commands run here; each command is then judged as if nothing confined it. */
  readonly commands?: CommandMode | undefined
  readonly repository?: ReadRepository
}

/** May throw or reject on a broken tool; the gate turns that into a denial. */
export async function judgeTouch(touch: Touch, around: TouchContext): Promise<TouchFinding> {
  if (touch.kind === 'path') return path(touch, around)
  if (touch.kind === 'url') return url(touch, around.policy)
  if (touch.kind === 'command') return command(touch, around)
  throw new TypeError(`the tool touches something of an unknown kind: ${JSON.stringify(touch)}`)
}

function path({ path, access }: Extract<Touch, { kind: 'path' }>, { policy, disk }: TouchContext): TouchFinding {
  if (access !== 'read' && access !== 'write') throw new TypeError(`a path is read or written, not ${JSON.stringify(access)}`)
  const real = disk?.real(placeAsSpelt({ path, cwd: policy.workspace, policy }))
  const verdict = judgePath({ path, access, cwd: policy.workspace, policy })
  if (!verdict.ok) return verdict
  const reads = access === 'read'
  // The workspace refuses a bad link when it opens the file: only then is the destination of the link certain.
  const planned = { given: path, path: verdict.path, access, real: real === verdict.path ? undefined : real }
  return { ok: true, rating: pathRisk({ access, inside: verdict.inside }), reads, writes: reads ? [] : [verdict.path], path: planned }
}

async function url(touch: Extract<Touch, { kind: 'url' }>, policy: Policy): Promise<TouchFinding> {
  const { judgeUrl } = await urls()
  const verdict = judgeUrl({ url: touch.url, method: touch.method, policy })
  if (!verdict.ok) return verdict
  const { risk, reason, reads, method, host, allowed } = verdict
  // The answer of a listed host to data that was sent there counts as a confirmation, not as a text of others.
  const request = { beyond: allowed ? [] : [host], reads, carries: verdict.carries, foreign: reads || !allowed }
  return { ok: true, rating: { risk, reason }, reads, writes: [], url: { url: verdict.url, method }, request }
}

const urls = () => import('./targets/url.ts')

type CommandTouch = Extract<Touch, { kind: 'command' }>

/** Loads the judge of commands on first use, because it imports a shell parser. */
export function loadCommandJudge() {
  return import('./command/judge.ts')
}

async function command(touch: CommandTouch, around: TouchContext): Promise<TouchFinding> {
  const { policy, commands: mode } = around
  const place = createFollower(policy, around.disk).judge({ path: touch.cwd ?? '.', access: 'read', cwd: policy.workspace })
  if (!place.ok) return place
  const { judgeCommand, isHarmless } = await loadCommandJudge()
  const direct = touch.direct === true
  const sandboxed = mode?.confined === true && mode.transaction && !direct
  const words = readWords(touch, { ...around, judgeCommand, cwd: place.path, sandboxed })
  if (!words.ok) return words
  const { verdict, plan, writes, links, outside } = words
  const network = await hostsFor({ named: verdict.hosts, requested: touch.network ?? [], around })
  if (!network.ok) return network
  const judged = direct ? undefined : await transferOf(plan, place.path, around)
  if (judged && !judged.ok) return judged
  const transfer = judged?.transfer
  const strict = transfer && readWords(touch, { ...around, judgeCommand, cwd: place.path, sandboxed: false })
  if (strict?.ok === false) return strict
  const { hosts, beyond } = transfer ? reachOf(transfer) : network
  // A question shows where links lead, so those that lead outside are no low risk.
  const staysIn = outside.length === 0 || (sandboxed && links.length === 0)
  const readOnly = !direct && writes.length === 0 && staysIn && (isHarmless(verdict) || (verdict.readOnly && mode?.confined === true))
  const rating = readOnly
    ? { risk: 'low' as const, reason: `only reads: ${verdict.executables.join(', ') || 'the shell itself'}` }
    : highest(
        transfer ? ratingOf(transfer) : { risk: verdict.risk, reason: verdict.reason },
        writes.map((target) => writeRisk(target, policy)),
      )
  return {
    ok: true,
    rating,
    reads: readOnly,
    writes,
    outside,
    command: {
      plan,
      cwd: place.path,
      ...(links.length > 0 ? { links } : {}),
      ...(readOnly ? { readOnly } : {}),
      ...viewOf({ readOnly, direct, transaction: mode?.transaction === true }),
      ...(transfer ? { transfer } : hosts.length > 0 ? { network: hosts } : {}),
    },
    ...(transfer ? { request: requestOf(transfer) } : {}),
    ...(mode?.transaction && !direct ? {} : { runs: verdict.runs }),
    facts: { confined: mode?.confined ?? false, transaction: mode?.transaction ?? false, hosts, beyond, direct, transfer },
    always: !direct && transfer === undefined && rating.risk === verdict.risk ? alwaysRuleFor(verdict) : undefined,
  }
}

type WordsContext = TouchContext & { readonly judgeCommand: typeof judgeCommand; readonly cwd: string; readonly sandboxed: boolean }

/**
 * Judges the words of a command; those of a transfer as outside a sandbox. What a sandboxed command writes outside the workspace disappears
 * when it ends.
 */
function readWords(touch: CommandTouch, { policy, resolve, disk, judgeCommand, cwd, sandboxed }: WordsContext) {
  const { workspace, workspaceOnly, forbiddenPaths, forbiddenReads, protectedPaths, home, forbiddenCommands } = policy
  const follower = createFollower({ workspace, workspaceOnly, forbiddenPaths, forbiddenReads, protectedPaths, home, sandboxed }, disk)
  if (touch.cwd !== undefined) follower.judge({ path: touch.cwd, access: 'read', cwd: workspace })
  const verdict = judgeCommand(touch.command, {
    allow: policy.allowCommands,
    forbidden: sandboxed ? forbiddenCommands : forbiddenWithoutView(forbiddenCommands),
    cwd,
    home,
    sandboxed,
    resolve,
    path: (path, access, from) => follower.judge({ path, access, cwd: from }),
    isFile: (path) => disk?.isFile?.(path) ?? false,
  })
  const { rule, reason, plan } = verdict
  if (verdict.verdict !== 'run' || !plan) return { ok: false, rule, reason } as const
  const writes = [...new Set([...verdict.writes, ...follower.written()])].filter((path) => !sandboxed || isUnder(path, workspace))
  return { ok: true, verdict, plan, writes, links: follower.links(), outside: follower.outside() } as const
}

/** Judges a git transfer, only where private views exist: a fetch writes its result there, so that it is judged like every other change. */
async function transferOf(
  plan: CommandPlan,
  cwd: string,
  { policy, commands, repository }: TouchContext,
): Promise<TransferVerdict | undefined> {
  if (repository === undefined || commands?.transaction !== true || plan.kind !== 'argv' || !plan.executable.endsWith('/git')) return
  const { judgeTransfer } = await import('./command/judge-transfer.ts')
  return judgeTransfer({ plan, cwd, read: repository, policy })
}

/** Returns the facts of a request to the same host: a fetch counts as reading, a push as sending. */
function requestOf({ operation, listed }: Transfer) {
  const reads = operation !== 'push'
  return { beyond: [], reads, carries: !(reads && listed), foreign: reads || !listed }
}

function reachOf({ operation, host, listed }: Transfer): { readonly hosts: readonly string[]; readonly beyond: readonly string[] } {
  if (!listed) return { hosts: [host], beyond: [host] }
  return { hosts: operation === 'push' ? [host] : [], beyond: [] }
}

function ratingOf({ operation, says }: Transfer): Rating {
  return { risk: operation === 'push' ? 'high' : 'medium', reason: says }
}

function viewOf({
  readOnly,
  direct,
  transaction,
}: {
  readonly readOnly: boolean
  readonly direct: boolean
  readonly transaction: boolean
}) {
  if (direct) return { view: 'direct' } as const
  return transaction && !readOnly ? ({ view: 'private' } as const) : {}
}

type Hosts = { readonly named: readonly string[]; readonly requested: readonly string[]; readonly around: TouchContext }
type NetworkReach = { readonly ok: true; readonly hosts: readonly string[]; readonly beyond: readonly string[] } | Refusal

/**
 * Decides which hosts the command gets. Of the hosts that its words name, those on this machine and its network are left out: inside the
 * sandbox they are the command's own. A host that the call asks for by name is refused with the reason.
 */
async function hostsFor({ named, requested, around: { policy, commands } }: Hosts): Promise<NetworkReach> {
  const none = { ok: true, hosts: [], beyond: [] } as const
  if (!commands?.confined || commands.network === false || named.length + requested.length === 0) return none
  const { judgeUrl } = await urls()
  const judged = (host: string) => judgeUrl({ url: `https://${host}/`, method: 'GET', policy })
  const verdicts = expandHosts(requested).map(judged)
  const refused = verdicts.find((verdict) => !verdict.ok)
  if (refused && !refused.ok) return refused
  const found = [...named.map(judged), ...verdicts].filter((verdict) => verdict.ok)
  const all = (some: typeof found) => [...new Set(some.map(({ host }) => host))].sort()
  return { ok: true, hosts: all(found), beyond: all(found.filter(({ allowed }) => !allowed)) }
}

/** A command can write outside the workspace only where workspace_only is off. */
function writeRisk(target: string, { workspace }: Policy): Rating {
  return pathRisk({ access: 'write', inside: isUnder(target, workspace) })
}
