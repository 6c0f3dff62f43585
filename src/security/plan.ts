/** Describes exactly what would be executed, with one hash for approvals, receipts and the executor, and one line for a person to read. */

import type { JsonObject } from '../kit/json.ts'
import { digest, sha256 } from '../kit/sha256.ts'
import { cut, visible } from '../kit/text.ts'
import type { Call } from '../runtime/event.ts'
import type { AlwaysRule } from './always.ts'
import type { Transfer } from './command/transfer.ts'
import type { CommandPlan } from './command/verdict.ts'
import type { FollowedLink } from './targets/link.ts'
import type { Access } from './targets/path.ts'

/** `real` is set where links lead to another path. */
export type PlannedPath = { readonly given: string; readonly path: string; readonly access: Access; readonly real?: string }
export type PlannedUrl = { readonly url: string; readonly method: string }
export type PlannedCommand = {
  readonly plan: CommandPlan
  readonly cwd: string
  /** The symbolic links that the command names, each with its destination. */
  readonly links?: readonly FollowedLink[]
  /** Proved to change nothing, so it runs with a read-only workspace. */
  readonly readOnly?: true
  /** `private`: its changes stay outside the workspace until they are judged. `direct`: it asked to work on the workspace itself. */
  readonly view?: 'private' | 'direct'
  /** The hosts that it gets access to; absent: no network. */
  readonly network?: readonly string[]
  /** A git fetch, pull or push that runs outside the sandbox. */
  readonly transfer?: Transfer
}

/** The analysed call. Tools execute these values and never derive them again from the input. */
export type PlanBody = {
  readonly tool: string
  readonly input: JsonObject
  readonly paths: readonly PlannedPath[]
  readonly urls: readonly PlannedUrl[]
  readonly commands: readonly PlannedCommand[]
  /** Digests of the files that would be overwritten, by path; empty when the caller does not watch targets. */
  readonly targets: JsonObject
  /** Hash of the environment that child processes would get; empty when it is not known. */
  readonly envHash: string
  readonly policyVersion: string
  readonly conversation: string
}

export type Plan = PlanBody & {
  readonly hash: string
  /** The rule that an "always" for this call would create; undefined when there is none. */
  readonly always: AlwaysRule | undefined
}

/** SHA-256 over the canonical JSON; every field counts. The approval stores the expiry and seals it together with this hash. */
export function planHash(body: PlanBody): string {
  const { tool, input, paths, urls, commands, targets, envHash, policyVersion, conversation } = body
  return digest({ v: 1, tool, input, paths, urls, commands, targets, envHash, policyVersion, conversation })
}

/**
 * Hashes a call that was refused before it had a plan, so that the refusal is bound to its content. Accepts any input, also input without
 * a canonical form.
 */
export function refusalHash(call: Call, conversation: string): string {
  return sha256(loose({ v: 1, tool: call.name, input: call.input, malformed: call.malformed, conversation }).toWellFormed())
}

/** JSON text of any value; an "unprintable" text for values that JSON cannot express, such as bottomless nesting. */
function loose(value: unknown): string {
  try {
    return JSON.stringify(value) ?? String(value)
  } catch (error) {
    return `unprintable: ${String(error)}`
  }
}

/** One escaped line: the argv, the path, the URL, or else the arguments; a cut is visible and gives length and hash. */
export function summarise(call: Pick<Call, 'name' | 'input' | 'malformed'>, plan?: Pick<PlanBody, 'paths' | 'urls' | 'commands'>): string {
  const parts = plan === undefined ? [] : [...plan.commands.map(commandLine), ...plan.paths.map(pathLine), ...plan.urls.map(urlLine)]
  const body = parts.length > 0 ? parts.join(' + ') : (call.malformed ?? loose(call.input))
  const commands = plan?.commands ?? []
  const stays = commands.length > 0 && call.input.background === true ? ' [in the background: runs on after the call]' : ''
  return cut(visible(`${call.name}: ${body}`), 600) + followed(commands) + reaching(commands) + stays
}

/** Stands after the cut, because the person must see where a link leads. */
function followed(commands: readonly PlannedCommand[]): string {
  const links = commands.flatMap(({ links = [] }) => links.map(({ given, real }) => `${given} → ${real}`))
  return links.length === 0 ? '' : ` [${cut(visible(links.join(', ')), 300)}]`
}

/** Stands after the cut for the same reason. */
function reaching(commands: readonly PlannedCommand[]): string {
  const hosts = commands.flatMap(({ network = [] }) => network)
  const network = hosts.length === 0 ? '' : ` [network: ${cut(visible(hosts.join(', ')), 300)}]`
  const transfers = commands.map(({ transfer }) => (transfer ? ` [${cut(visible(transfer.says), 600)}]` : '')).join('')
  return `${network}${transfers}${commands.some(({ view }) => view === 'direct') ? ' [direct: works on the workspace itself]' : ''}`
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
