/** What exactly would be executed, under one hash that approvals, receipts and the executor share, and on one line that a person reads. */

import { digest } from '../kit/digest.ts'
import type { JsonObject } from '../kit/json.ts'
import { sha256 } from '../kit/sha256.ts'
import { cut, visible } from '../kit/text.ts'
import type { Call } from '../runtime/event.ts'
import type { AlwaysRule } from './always.ts'
import type { CommandPlan } from './command/verdict.ts'
import type { FollowedLink } from './targets/link.ts'
import type { Access } from './targets/path.ts'

/** `real` where links lead elsewhere. */
export type PlannedPath = { readonly given: string; readonly path: string; readonly access: Access; readonly real?: string }
export type PlannedUrl = { readonly url: string; readonly method: string }
/** `links`: those that the command names, and where each leads. */
export type PlannedCommand = { readonly plan: CommandPlan; readonly cwd: string; readonly links?: readonly FollowedLink[] }

/** The analysed call. Tools execute these values and nothing they derive again from the input. */
export type PlanBody = {
  readonly tool: string
  readonly input: JsonObject
  readonly paths: readonly PlannedPath[]
  readonly urls: readonly PlannedUrl[]
  readonly commands: readonly PlannedCommand[]
  /** Digests of what would be overwritten, by path; empty when the caller does not watch targets. */
  readonly targets: JsonObject
  /** Hash of the environment children would get; empty when none is known. */
  readonly envHash: string
  readonly policyVersion: string
  readonly conversation: string
}

export type Plan = PlanBody & {
  readonly hash: string
  /** What an "always" to this call would cover, if there can be one. */
  readonly always: AlwaysRule | undefined
}

/** SHA-256 over the canonical JSON; every field counts. The expiry is the approval's, sealed there together with this hash. */
export function planHash(body: PlanBody): string {
  const { tool, input, paths, urls, commands, targets, envHash, policyVersion, conversation } = body
  return digest({ v: 1, tool, input, paths, urls, commands, targets, envHash, policyVersion, conversation })
}

/** For a call that never became a plan: binds the refusal to its content. Total, also for what has no canonical form. */
export function refusalHash(call: Call, conversation: string): string {
  return sha256(loose({ v: 1, tool: call.name, input: call.input, malformed: call.malformed, conversation }).toWellFormed())
}

/** JSON text of anything; bottomless nesting has none. */
function loose(value: unknown): string {
  try {
    return JSON.stringify(value) ?? String(value)
  } catch (error) {
    return `unprintable: ${String(error)}`
  }
}

/** One escaped line: the argv, the path, the URL, or else the arguments; cut visibly with length and hash. */
export function summarise(call: Pick<Call, 'name' | 'input' | 'malformed'>, plan?: Pick<PlanBody, 'paths' | 'urls' | 'commands'>): string {
  const parts = plan === undefined ? [] : [...plan.commands.map(commandLine), ...plan.paths.map(pathLine), ...plan.urls.map(urlLine)]
  const body = parts.length > 0 ? parts.join(' + ') : (call.malformed ?? loose(call.input))
  return cut(visible(`${call.name}: ${body}`), 600) + followed(plan?.commands ?? [])
}

/** Behind the cut: where a link leads must be seen. */
function followed(commands: readonly PlannedCommand[]): string {
  const links = commands.flatMap(({ links = [] }) => links.map(({ given, real }) => `${given} → ${real}`))
  return links.length === 0 ? '' : ` [${cut(visible(links.join(', ')), 300)}]`
}

function commandLine({ plan }: PlannedCommand): string {
  if (plan.kind === 'script') return `sh script: ${plan.script}`
  return [plan.executable, ...plan.argv.slice(1)].map(shellWord).join(' ')
}

function pathLine({ access, path, real }: PlannedPath): string {
  return real === undefined ? `${access} ${path}` : `${access} ${path} → ${real}`
}

function urlLine({ method, url }: PlannedUrl): string {
  return `${method} ${url}`
}

function shellWord(word: string): string {
  return /^[\w./:=@%+,-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
}
