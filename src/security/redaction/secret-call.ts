/** Refuses calls that contain a secret; such a call never runs with a substitute in place of the secret. */

import type { Call } from '../../runtime/event.ts'
import type { Tool } from '../../runtime/port.ts'
import type { Precheck } from '../precheck.ts'
import type { Redactor } from './redact.ts'

export type SecretLook = Pick<Redactor, 'inspect' | 'json'>

/** `call` is the redacted call, which may be shown and stored. */
export type Looked = { readonly call: Call; readonly hidden?: Precheck }

/**
 * Refuses a secret value to every tool, because any tool would write, run, send or show it. Refuses a label to every tool whose risk is
 * not low.
 */
export function lookForSecrets(call: Call, tool: Tool | undefined, secrets: SecretLook | undefined): Looked {
  const { held = [], standIns = [] } = secrets?.inspect({ name: call.name, input: call.input, malformed: call.malformed }) ?? {}
  if (held.length > 0) return { call: secrets?.json(call) ?? call, hidden: { rule: 'redaction.secret', reason: heldReason(held) } }
  if (standIns.length > 0 && tool?.risk !== 'low') return { call, hidden: { rule: 'redaction.label', reason: standInReason(standIns) } }
  return { call }
}

function heldReason(names: readonly string[]): string {
  return `the arguments hold ${names.join(' and ')}, and no tool may write, run or send a secret; leave it out, let the program read it from its own environment or files, or ask the user to put it in place`
}

function standInReason(names: readonly string[]): string {
  const labels = names.map((name) => `[redacted:${name}]`).join(' and ')
  return `${labels} stands for a value that is hidden from you, and would be written in its place; change only what stands around it (file_edit with an old text that leaves it out), or ask the user`
}
