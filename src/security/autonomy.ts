/** Decides what a rated call that no policy forbids may do at each level of autonomy. */

import type { Risk } from '../runtime/event.ts'
import type { Policy } from './policy.ts'
import type { RuleName } from './rules.ts'
import type { Access } from './targets/path.ts'

/** How this machine runs commands. */
export type CommandMode = {
  /** A working sandbox confines every command. */
  readonly confined: boolean
  /** A command works on a private view of the workspace, and its changes are judged before they are applied. */
  readonly transaction: boolean
  /** The sandbox can open single hosts to a command; absent: it can. */
  readonly network?: boolean
  /** Why nothing confines a command, or why it gets no private view. */
  readonly why?: string
}

/** The facts about the command of a call on which the level depends. */
export type CommandFacts = Pick<CommandMode, 'confined' | 'transaction'> & {
  /** The hosts that the command would reach. */
  readonly hosts: readonly string[]
  /** Those of them that allowed_domains does not list. */
  readonly beyond: readonly string[]
  /** It asks to work on the workspace itself, without a private view. */
  readonly direct: boolean
  /** Describes what a git fetch, pull or push outside the sandbox does. */
  readonly transfer?: { readonly says: string; readonly rewrites: boolean } | undefined
}

/** The facts about the requests of a call on which the level depends. */
export type RequestFacts = {
  /** The hosts that allowed_domains does not list. */
  readonly beyond: readonly string[]
  readonly reads: boolean
}

export type Rated = {
  readonly rating: Rating
  /** The call writes and sends nothing. */
  readonly reads: boolean
  /** The operator approved this command with "always". */
  readonly always: boolean
  /** It is a call of a file tool. */
  readonly files?: boolean
  /** Undefined when the call has no command. */
  readonly command?: CommandFacts | undefined
  /** Undefined when the call makes no request itself. */
  readonly request?: RequestFacts | undefined
}

export type Permission = {
  readonly verdict: 'allow' | 'ask' | 'deny'
  readonly risk: Risk
  readonly rule: RuleName
  readonly reason: string
}

export type Levels = Pick<
  Policy,
  'autonomy' | 'approveAllMedium' | 'ask' | 'unlistedCommands' | 'readonlyCommands' | 'egress' | 'direct' | 'inCopy'
>

export function permit(rated: Rated, policy: Levels): Permission {
  const permission = byLevel(rated, policy)
  if (policy.inCopy && permission.verdict !== 'deny' && staysInCopy(rated))
    return granted(rated.command ? 'autonomy.transaction' : 'autonomy.copy', { risk: 'medium', reason: inCopy })
  return rated.command?.direct === true && permission.verdict !== 'deny' ? directly(permission, policy) : permission
}

const inCopy = 'it changes only the private copy of the folder in which this run works'

/** Commands on a private view without network, and the writes of file tools. */
function staysInCopy({ command, files, reads, rating }: Rated): boolean {
  if (command !== undefined) return command.transaction && command.hosts.length === 0 && !command.direct
  return files === true && !reads && rating.risk === 'medium'
}

/**
 * The model chooses `direct`, so no level, approval in advance or "always" rule permits it: only a person or the person's own setting does.
 */
function directly({ verdict, rule, risk, reason }: Permission, { autonomy, direct }: Levels): Permission {
  const words = `${reason}; ${withoutView}`
  if (direct === 'deny') return { verdict: 'deny', risk, rule: 'autonomy.direct_refused', reason: `${words} (security.direct is "deny")` }
  if (verdict === 'allow' && direct === 'allow' && autonomy === 'full') return { verdict, rule, risk, reason }
  return asked(verdict === 'ask' ? rule : 'autonomy.direct_asks', { risk, reason: words })
}

const withoutView =
  'it works on the workspace itself, without a private view: its changes take effect at once, nobody judges them first, they cannot be undone exactly, and git, editors and other programs may run what it writes'

function byLevel(rated: Rated, policy: Levels): Permission {
  const { rating, reads, command, request } = rated
  const sends = (command?.hosts.length ?? 0) > 0
  if (rating.risk === 'low' && !sends && (reads || policy.autonomy !== 'readonly')) return granted('autonomy.low', rating)
  if (policy.autonomy === 'readonly') return readonly(rated, policy)
  if (policy.autonomy === 'full') return full(rated, policy)
  if (command !== undefined) return supervisedCommand({ ...rated, command }, policy)
  return request !== undefined && request.beyond.length > 0 ? supervisedRequest({ ...rated, request }, policy) : supervised(rated, policy)
}

function granted(rule: RuleName, { risk, reason }: Rating): Permission {
  return { verdict: 'allow', risk, rule, reason }
}

function asked(rule: RuleName, { risk, reason }: Rating): Permission {
  return { verdict: 'ask', risk, rule, reason }
}

function readonly({ rating, command }: Rated, { readonlyCommands }: Levels): Permission {
  const isDroppable = command?.transaction === true && command.hosts.length === 0 && !command.direct
  if (isDroppable && readonlyCommands === 'drop')
    return granted('autonomy.dropped', {
      risk: 'medium',
      reason: 'runs on a private view of the workspace; its changes are always dropped',
    })
  const reason = `${rating.reason} (${rating.risk} risk); autonomy "readonly" only lets low-risk tools read. Answer without it, or ask the operator to change the level`
  return { verdict: 'deny', risk: rating.risk, rule: 'autonomy.readonly', reason }
}

function full({ rating, command, request }: Rated, { egress }: Levels): Permission {
  // A push that replaced or deleted something for others cannot be undone.
  if (command !== undefined && (command.transfer?.rewrites || (command.beyond.length > 0 && egress !== 'open'))) return network(command)
  if (request !== undefined && request.beyond.length > 0 && egress !== 'open') return unlistedHost(rating)
  return granted('autonomy.full', rating)
}

/**
 * Asks before a command with network access runs, at every level that would otherwise run it without a question, because what it sends
 * cannot be taken back.
 */
function network({ hosts, beyond, transfer }: CommandFacts): Permission {
  const unlisted = beyond.length === 0 ? '' : ` (not in allowed_domains: ${beyond.join(', ')})`
  const what = transfer === undefined ? '' : `; ${transfer.says}`
  const reason = `it gets network access to ${hosts.join(', ')}${unlisted}${what}; what it sends cannot be taken back`
  return asked('autonomy.network_asks', { risk: 'high', reason })
}

/** Asks, so that a person may allow the host by approving the request that names it. */
function unlistedHost({ risk, reason }: Rating): Permission {
  return asked('autonomy.network_asks', { risk, reason: `${reason}; what it sends cannot be taken back` })
}

/** Approval in advance of medium risks covers only a request that reads, and only where egress is open. */
function supervisedRequest(rated: Rated & { readonly request: RequestFacts }, levels: Levels): Permission {
  const { rating, request } = rated
  if (rating.risk === 'high' && levels.unlistedCommands === 'block') return blocked(rating)
  return levels.approveAllMedium && levels.egress === 'open' && request.reads ? supervised(rated, levels) : unlistedHost(rating)
}

function supervised({ rating, always }: Rated, { approveAllMedium }: Pick<Levels, 'approveAllMedium'>): Permission {
  if (rating.risk === 'high') return blocked(rating)
  if (approveAllMedium) return granted('autonomy.approve_all_medium', rating)
  return always ? granted('autonomy.always', rating) : asked('autonomy.medium_asks', rating)
}

function blocked(rating: Rating): Permission {
  const reason = `${rating.reason} (high risk); autonomy "supervised" blocks that. Try a simpler, allow-listed way, or ask the operator to do it`
  return { verdict: 'deny', risk: rating.risk, rule: 'autonomy.high_blocked', reason }
}

function supervisedCommand(rated: Rated & { readonly command: CommandFacts }, policy: Levels): Permission {
  const { rating, command } = rated
  const isUnlisted = rating.risk === 'high'
  if (isUnlisted && !(command.confined && policy.unlistedCommands === 'ask')) return blocked(rating)
  if (command.hosts.length > 0) return network(command)
  if (command.direct) return asked('autonomy.direct_asks', rating)
  if (!command.transaction) return isUnlisted ? asked('autonomy.unlisted_asks', rating) : supervised(rated, policy)
  // The view contains the command, so not the command but its changes decide.
  if (policy.ask === 'changes') {
    if (rated.always) return granted('autonomy.always', { ...rating, risk: 'medium' })
    const reason = 'runs on a private view of the workspace; its changes are judged before they are applied'
    return granted('autonomy.transaction', { risk: 'medium', reason })
  }
  return supervised({ ...rated, rating: { ...rating, risk: 'medium' } }, policy)
}

/** The risk of one touch of a call; the highest one counts for the call. */
export type Rating = { readonly risk: Risk; readonly reason: string }

const order: readonly Risk[] = ['low', 'medium', 'high']

/** @returns the riskiest rating with its reason; among equals, the first */
export function highest(first: Rating, rest: readonly Rating[]): Rating {
  let top = first
  for (const next of rest) if (order.indexOf(next.risk) > order.indexOf(top.risk)) top = next
  return top
}

/** Reading inside the workspace is low, writing there medium. Outside, where workspace_only allows it at all, each is one step higher. */
export function pathRisk({ access, inside }: { access: Access; inside: boolean }): Rating {
  if (access === 'read')
    return inside ? { risk: 'low', reason: 'reads the workspace' } : { risk: 'medium', reason: 'reads outside the workspace' }
  return inside ? { risk: 'medium', reason: 'writes to workspace' } : { risk: 'high', reason: 'writes outside the workspace' }
}
