/** Holds everything that an operator decides about what tools may do, as plain data with a content hash. */

import { sha256 } from '../kit/sha256.ts'

export type Autonomy = 'readonly' | 'supervised' | 'full'

/** `level` and `tools` were already applied; they say whose limit it is. `memory`: which conversations memory_search finds. */
export type PolicyChannel = {
  readonly name: string
  readonly level?: Autonomy
  readonly tools?: readonly string[]
  readonly memory: 'own' | 'all'
}

export type Policy = {
  readonly autonomy: Autonomy
  /** Absolute and real: the code that builds the policy resolves symbolic links. */
  readonly workspace: string
  readonly workspaceOnly: boolean
  /**
   * Each entry is absolute, starts with `~/`, or is relative to the workspace, and covers everything below it. The code that builds the
   * policy adds the real path of every entry.
   */
  readonly forbiddenPaths: readonly string[]
  /** Patterns of files that no tool and no command may read (targets/path.ts). */
  readonly forbiddenReads?: readonly string[]
  readonly forbiddenCommands: readonly string[]
  readonly allowCommands: readonly string[]
  /** Exact hosts, or `*.suffix`, which does not match the suffix itself. A private address is allowed when it is listed exactly. */
  readonly allowedDomains: readonly string[]
  /** Ports in addition to 80 and 443. */
  readonly allowedPorts: readonly number[]
  /** Absolute: the runtime's own home, receipts, key and ESTOP. Tools can neither read nor write them. */
  readonly protectedPaths: readonly string[]
  readonly approveAllMedium: boolean
  /** `changes`: a command on a private view runs without a question, and its changes ask. `before`: it asks before it runs. */
  readonly ask: 'changes' | 'before'
  /** Tells whether a person may approve a command that is not allow-listed; without a working sandbox it is always blocked. */
  readonly unlistedCommands: 'ask' | 'block'
  /** How `readonly` treats a command that may write: it refuses the command, or runs it and drops its changes. */
  readonly readonlyCommands: 'block' | 'drop'
  /** `open`: hosts outside allowed_domains need no question in `full`. */
  readonly egress: 'open' | 'ask'
  /** `allow`: a command that works on the workspace itself needs no question in `full`; `deny`: none does. */
  readonly direct: 'deny' | 'ask' | 'allow'
  /** `allow`: in `full` also dot files, the configuration of tools and instructions for agents change without a question. */
  readonly toolSettings: 'ask' | 'allow'
  /** The channel's tools_allow; undefined allows every tool. */
  readonly toolsAllow?: readonly string[]
  /** The channel whose limits this policy has; absent for the operator's own conversations. */
  readonly channel?: PolicyChannel
  /** The workspace is a private copy of a person's folder, so what stays in it needs no yes. */
  readonly inCopy?: true
  /** The operator's home folder, for which `~` stands. */
  readonly home: string
  /** `policyVersion` of all other fields; approvals are bound to it. */
  readonly version: string
}

export const usualForbidden: readonly string[] = ['shutdown', 'reboot', 'mkfs', 'dd']

/** Adds rm to the usual list, or to a longer one, for commands without a private view; in a view a removal is a change like every other. */
export function forbiddenWithoutView(forbidden: readonly string[]): readonly string[] {
  return usualForbidden.every((name) => forbidden.includes(name)) && !forbidden.includes('rm') ? ['rm', ...forbidden] : forbidden
}

/** Computes the version when a plan first asks for it, because a turn without tools never needs it. */
export function definePolicy(fields: Omit<Policy, 'version'>): Policy {
  let version: string | undefined
  return {
    ...fields,
    get version() {
      version ??= policyVersion(fields)
      return version
    },
  }
}

/** SHA-256 of the JSON of all fields except `version`, in declaration order; `definePolicy` is the only place that creates them. */
export function policyVersion(policy: Omit<Policy, 'version'> & { readonly version?: string }): string {
  return sha256(JSON.stringify({ ...policy, version: undefined }))
}
