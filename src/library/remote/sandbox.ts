/** Wraps an agent, so that the whole of it runs in a sandbox. Exported as `braidclaw/sandbox`; it runs on Node too. */

import type { BraidClaw } from '../agent/agent-api.ts'
import { startExecutable } from './link.ts'
import { remoteAgent } from './remote-agent.ts'

/** Says where a confined agent reads, writes and connects, and how much it may use. */
export type SandboxConfig = {
  /** False: `wrap` returns the agent itself. */
  readonly enabled: boolean
  readonly security?: {
    /** Paths of the workspace, which must exist; the rest of it is read-only. Absent: the whole workspace is writable. */
    readonly allowWrite?: readonly string[]
    /** Names and paths that nothing inside can read, such as `.env`. The home folder is never there. */
    readonly denyRead?: readonly string[]
    /** Hosts that commands inside reach over HTTP and HTTPS; absent: none. */
    readonly allowedDomains?: readonly string[]
  }
  /** `timeout` in milliseconds, from the start of its process; `memory` in bytes, of everything inside together. */
  readonly limits?: { readonly timeout?: number; readonly memory?: number }
}

export const sandboxAdapter = {
  /**
   * Returns an agent with the options of the given one that runs as a child process in a sandbox (bubblewrap). Its tools, its `modelCall` and its
   * approvals stay in this process; without a `modelCall` the configured model is called outside of the sandbox. `cancel` ends the whole child.
   * @throws Error when the agent was not made by createAgent, or has threads with functions or a provider, which cannot leave this process
   */
  wrap(agent: BraidClaw, { enabled, security = {}, limits = {} }: SandboxConfig): BraidClaw {
    if (!enabled) return agent
    const { options } = agent
    if (options === undefined) throw new Error('sandboxAdapter.wrap: this agent was not made by createAgent, so its options are not known')
    return remoteAgent(options, startExecutable(options, flagsOf({ security, limits })), { cancelEnds: true })
  },
}

/** @throws Error for a limit that means nothing */
function flagsOf({ security, limits }: Required<Omit<SandboxConfig, 'enabled'>>): readonly string[] {
  const { allowWrite, denyRead, allowedDomains } = security
  const many = Object.entries({ 'allow-write': allowWrite, 'deny-read': denyRead, 'allow-domain': allowedDomains })
  const most = Object.entries({
    'max-seconds': wholeOf('timeout', limits.timeout, 1_000),
    'max-memory': wholeOf('memory', limits.memory, 2 ** 20),
  })
  return [
    '--confined',
    ...many.flatMap(([name, values = []]) => values.map((value) => `--${name}=${value}`)),
    ...most.flatMap(([name, value]) => (value === undefined ? [] : [`--${name}=${value}`])),
  ]
}

function wholeOf(name: string, value: number | undefined, unit: number): number | undefined {
  if (value === undefined) return undefined
  if (Number.isFinite(value) && value > 0) return Math.ceil(value / unit)
  throw new Error(`sandboxAdapter.wrap: limits.${name} is ${value}; give a positive number of ${unit === 1_000 ? 'milliseconds' : 'bytes'}`)
}
