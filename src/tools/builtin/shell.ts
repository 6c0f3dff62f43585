/** Defines the tool shell, which runs the command exactly as the gate analysed it, never the text that the model sent. */

import { objectSchema } from '../../kit/json.ts'
import type { ToolContext, ToolResult } from '../../runtime/port.ts'
import type { ChildEnvironment } from '../../sandbox/contract.ts'
import type { PlannedCommand } from '../../security/plan.ts'
import type { Spawn, SpawnResult } from '../process.ts'
import { done, recordSandbox, type ToolKind, textOr } from '../tool-kind.ts'
import { type Jobs, noJobs } from './shell_output.ts'

/** The analysed command: an executable with literal arguments, or a script printed again from its syntax tree. */
export type ShellPlan = Omit<PlannedCommand, 'links' | 'readOnly'> & { readonly readOnly?: boolean }

type ShellDeps = {
  readonly spawn: Spawn
  readonly jobs?: Jobs
  /** Returns undefined when the gate never issued this hash; then the tool runs nothing. */
  readonly planOf: (planHash: string) => ShellPlan | undefined
  readonly env: ChildEnvironment
  readonly maxOutputBytes: number
  /** Absolute path. */
  readonly bash?: string
}

const NOTE_ROOM = 256

/** Stops a command that prints more than this; otherwise it would keep a processor busy until its time limit. */
export const FLOOD_BYTES = 64 * 1024 * 1024

const parameters = objectSchema(
  {
    command: { type: 'string' },
    timeout: { type: 'integer', minimum: 1 },
    network: { type: 'array', items: { type: 'string' }, maxItems: 32 },
    direct: { type: 'boolean' },
    background: { type: 'boolean' },
  },
  'command',
)

const description =
  'Run a bash command in the workspace. No stdin. network: hosts it needs. direct: on the real files (open databases); asks. background: for servers, watchers.'

export const shell = {
  name: 'shell',
  description,
  parameters,
  risk: 'medium',
  timeoutMs: 15_000,
  idempotent: false,
  limited: ({ usualS, longestS }) => ({
    description: description.replace('No stdin.', `No stdin; ${usualS} s, or timeout up to ${longestS} s.`),
    parameters: {
      ...parameters,
      properties: { ...parameters.properties, timeout: { ...parameters.properties.timeout, maximum: longestS } },
    },
    timeoutMs: usualS * 1000,
  }),
  limitMs: ({ timeout }) => (typeof timeout === 'number' ? timeout * 1000 : undefined),
  touches: ({ command, network, direct }) => [
    {
      kind: 'command',
      command: textOr(command, ''),
      ...(Array.isArray(network) ? { network: network.filter((host) => typeof host === 'string') } : {}),
      ...(direct === true ? { direct } : {}),
    },
  ],
  async run({ command, background }, context, deps) {
    const planned = deps.planOf(context.plan)
    if (planned === undefined) return unplanned
    if (background) return runInBackground(deps, planned, { ...context, command })
    return recordSandbox(deps.spawn, (spawn) => run({ ...deps, spawn }, planned, context))
  },
} as const satisfies ToolKind<typeof parameters, ShellDeps>

const unplanned: ToolResult = {
  success: false,
  output: '',
  error: 'this command was not analysed by the gate, so nothing was run; send it again',
  deniedBy: 'shell.no_plan',
}

function refused(error: string): ToolResult {
  return { success: false, output: '', error: `${error}; nothing was run` }
}

async function runInBackground(deps: ShellDeps, planned: ShellPlan, about: Parameters<Jobs['start']>[1]): Promise<ToolResult> {
  if (planned.view === 'direct') return refused('a command in the background has a private view of the workspace, so not with "direct"')
  if (planned.transfer) return refused(`git ${planned.transfer.operation} does not run in the background`)
  const { cwd, network } = planned
  return (await deps.jobs?.start({ argv: argvOf(deps, planned), cwd, env: deps.env, network }, about)) ?? noJobs
}

function argvOf({ bash = '/bin/bash' }: ShellDeps, { plan }: ShellPlan): readonly string[] {
  return plan.kind === 'argv' ? [plan.executable, ...plan.argv.slice(1)] : [bash, '--noprofile', '--norc', '-c', plan.script]
}

async function run(deps: ShellDeps, planned: ShellPlan, { signal }: ToolContext): Promise<ToolResult> {
  const { spawn, env, maxOutputBytes } = deps
  const { cwd, readOnly, view, network, transfer } = planned
  const { createCollector } = await import('../../kit/content/output-limit.ts')
  const printed = createCollector(Math.max(256, maxOutputBytes - NOTE_ROOM))
  const flood = new AbortController()
  const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() }
  let bytes = 0
  const ended = await spawn({
    argv: argvOf(deps, planned),
    cwd,
    env,
    signal: AbortSignal.any([signal, flood.signal]),
    readOnly,
    view,
    network,
    transfer,
    onOutput(chunk, from) {
      bytes += chunk.length
      printed.push(decoders[from].decode(chunk, { stream: true }))
      if (bytes > FLOOD_BYTES) flood.abort()
    },
  })
  for (const decoder of Object.values(decoders)) printed.push(decoder.decode())
  return commandResult({ ended, output: printed.text(), bytes, flooded: flood.signal.aborted, stopped: signal.aborted })
}

type CommandReport = {
  readonly ended: SpawnResult
  readonly output: string
  readonly bytes: number
  readonly flooded: boolean
  readonly stopped: boolean
}

/** Returns the result of a command that has ended. `flooded`: it was stopped because it printed too much. */
export function commandResult({ ended, output, bytes, flooded, stopped }: CommandReport): ToolResult {
  if (!ended.ok) return { success: false, output, error: ended.message }
  const { code, signal, leftBehind, undone = [], refused = false, stopped: excess } = ended
  const metadata = { exitCode: code, signal: signal ?? null, bytes }
  const left = leftBehind && !stopped && !flooded ? '[processes it left in the background were ended]' : ''
  const text = [output.replace(/\n$/, ''), left].filter((part) => part !== '').join('\n')
  if (code === 0 && !stopped && !flooded && undone.length === 0) return done(text === '' ? '(no output)' : text, metadata)
  const why = excess !== undefined ? excess : signal === undefined ? `exit code ${code}${signalBehind(code)}` : `ended by ${signal}`
  const flood = flooded ? [`stopped after printing more than ${FLOOD_BYTES} bytes`] : []
  return {
    success: false,
    output: text,
    error: [...flood, why, ...undone, missingNetwork(ended, output) ?? []].flat().join('; '),
    metadata,
    ...(refused ? { deniedBy: 'changes.direct' } : {}),
  }
}

/**
 * Names the signal: a shell or sandbox between us and the command reports its signal n as 128 + n. The names are loaded only after a
 * failure.
 */
function signalBehind(code: number | null): string {
  const { signals } = process.getBuiltinModule('node:os').constants
  const [name] = Object.entries(signals).find(([, number]) => number === (code ?? 0) - 128) ?? []
  return name === undefined ? '' : ` (${name})`
}

/** Matches the messages of common programs that cannot look up a name or reach a server. */
const complaints = new RegExp(
  [
    'could not resolve (host|proxy)',
    'temporary failure in name resolution',
    'name or service not known',
    'network is unreachable',
    'no address associated with hostname',
    'failed to lookup address',
    'unable to resolve host',
    'dns error',
    'no such host',
    'EAI_AGAIN|ENETUNREACH|ENOTFOUND|EAI_NONAME',
    'server misbehaving',
    'unable to (connect|access) .{0,200}(proxy|https?:)',
    'is not one of the hosts that this command was given',
  ].join('|'),
  'i',
)

export const networkNote =
  'this command had no network, except to the hosts that it was given; name the hosts it needs in "network" (which asks the operator), or do the work without it'

/** Matches the messages of git in the sandbox, where it has neither the network nor the user's credentials. */
const gitComplaints =
  /fatal: unable to access '|fatal: could not read Username for|fatal: Authentication failed for|fatal: Could not read from remote repository/

export const gitNote =
  'git reaches a server with the user\'s credentials only by "git push", "git fetch" or "git pull" with the name of a remote, each as a command of its own: no script, no pipe, no redirection'

/** @returns the note for a failed command of a sandbox whose output shows such an error */
export function missingNetwork(ended: SpawnResult, output: string): string | undefined {
  if (!ended.ok || ended.code === 0 || ended.sandbox === undefined || ended.sandbox === 'none') return undefined
  const notes = [...(complaints.test(output) ? [networkNote] : []), ...(gitComplaints.test(output) ? [gitNote] : [])]
  return notes.length === 0 ? undefined : notes.join('; ')
}
