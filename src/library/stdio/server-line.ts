/** Defines the lines that `braidclaw stdio` writes after a hello, and the version of the protocol, for both ends. It runs on Node too. */

import { isObject } from '../../kit/json.ts'
import type { AgentEvent, Ending, JsonObject, Proposal } from '../../runtime/event.ts'
import type { Message, ToolSpec } from '../../runtime/port.ts'
import type { AskedChanges } from '../agent/agent-api.ts'

/** A peer with another version is refused. */
export const protocolVersion = 1

/** A line has the id of what it answers. Only the members of its kind are there. */
export type ServerLine = {
  readonly id?: string | undefined
  readonly hello?: { readonly protocol: number; readonly version: string; readonly capabilities: readonly string[] }
  readonly event?: AgentEvent
  /** With `init`, `approval_gate` and `done`: what a program asks its agent synchronously. */
  readonly conversation?: string | undefined
  readonly proposal?: Proposal | undefined
  readonly ending?: Ending | undefined
  /** The rule that rejected a decision or a mode; null: none. */
  readonly rejected?: string | null
  readonly changes?: AskedChanges | null
  readonly call?: { readonly id: string; readonly name: string; readonly input: JsonObject }
  readonly model?: {
    readonly id: string
    /** The system prompt; absent from a version before it had this member. */
    readonly system?: string
    readonly messages: readonly Message[]
    readonly tools: readonly ToolSpec[]
  }
  /** Takes the call of this id back. */
  readonly abort?: string
  readonly error?: { readonly code: string; readonly message: string }
}

/** The other end is our own program, so only the kind of the value is checked. */
export function isServerLine(value: unknown): value is ServerLine {
  return isObject(value)
}

/** Returns a sentence that refuses the version of a peer; undefined for ours. `peer` and `self` name the two programs. */
export function refuseProtocol(protocol: number, peer: string, self: string): string | undefined {
  if (protocol === protocolVersion) return undefined
  const older = protocol > protocolVersion ? self : peer
  return `${peer} speaks protocol ${protocol} and ${self} speaks protocol ${protocolVersion}; install a newer version of ${older.replace(/ [0-9].*/, '')}`
}
