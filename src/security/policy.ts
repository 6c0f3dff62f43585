/** The policy: everything an operator decides about what tools may do, as plain data with a content hash. */

import { sha256 } from '../kit/sha256.ts'

export type Autonomy = 'readonly' | 'supervised' | 'full'

export type Policy = {
  readonly autonomy: Autonomy
  /** Absolute and real: symlinks resolved by whoever builds the policy. */
  readonly workspace: string
  readonly workspaceOnly: boolean
  /**
   * Absolute, or beginning with `~/`; relative ones are meant from the workspace. Everything below is meant too. Whoever builds the policy
   * adds what they really lead to.
   */
  readonly forbiddenPaths: readonly string[]
  readonly forbiddenCommands: readonly string[]
  readonly allowCommands: readonly string[]
  /** Exact hosts, or `*.suffix`, which does not match the suffix itself. An address listed exactly is let through although private. */
  readonly allowedDomains: readonly string[]
  /** Beside 80 and 443. */
  readonly allowedPorts: readonly number[]
  /** Absolute: our own home, receipts, key, ESTOP. Neither read nor written by tools. */
  readonly protectedPaths: readonly string[]
  readonly approveAllMedium: boolean
  /** The channel's tools_allow; undefined lets every tool through. */
  readonly toolsAllow?: readonly string[]
  /** The operator's home folder, which `~` means. */
  readonly home: string
  /** `policyVersion` of all the rest; approvals are bound to it. */
  readonly version: string
}

/** The version is worked out when a plan first asks for it: a turn without tools never does. */
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

/** SHA-256 of the JSON of all fields but `version`, in the order in which they stand: one place makes them. */
export function policyVersion(policy: Omit<Policy, 'version'> & { readonly version?: string }): string {
  return sha256(JSON.stringify({ ...policy, version: undefined }))
}
