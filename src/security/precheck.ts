/** Runs the gate's first checks, before the arguments count: emergency stop, tool, channel, and whether the arguments are JSON. */

import { canonical, isObject, parseJson } from '../kit/json.ts'
import { cut, didYouMean, quote, visible } from '../kit/text.ts'
import type { Call } from '../runtime/event.ts'
import type { Tool } from '../runtime/port.ts'
import type { Redactor } from './redaction/redact.ts'
import type { RuleName } from './rules.ts'

type Admission = {
  readonly call: Call
  /** The tool of that name, whether or not this channel allows it. */
  readonly tool: Tool | undefined
  readonly estop: () => string | undefined
  /** The names of this channel's tools. */
  readonly usable: readonly string[]
}

type Precheck = { readonly rule: RuleName; readonly reason: string }

/** Checks in the order of SECURITY.md. @returns undefined when the call passes; `tool` is then defined. Throws only what `estop` throws. */
export function precheck({ call, tool, estop, usable }: Admission): Precheck | undefined {
  return stopped(estop()) ?? missing(call, tool, usable) ?? malformed(call)
}

function stopped(stop: string | undefined): Precheck | undefined {
  if (stop === undefined) return
  const why = cut(visible(stop), 200) || 'no reason given'
  return { rule: 'estop', reason: `tools are stopped (${why}); answer in text, and say that "estop --clear" lets them run again` }
}

function missing(call: Call, tool: Tool | undefined, usable: readonly string[]): Precheck | undefined {
  const rest = `tools: ${usable.join(', ') || 'none'}`
  if (call.name === '') return { rule: 'schema.malformed', reason: `${nameless(call)}; ${rest}` }
  if (!tool) return { rule: 'tool.unknown', reason: `unknown tool ${quote(call.name)}${didYouMean(call.name, usable)}; ${rest}` }
  if (usable.includes(tool.name)) return
  return { rule: 'tool.not_allowed', reason: `tool ${quote(tool.name)} is not in this channel's tools_allow; ${rest}` }
}

/** When a call has no name, `malformed` holds the whole call as the model wrote it. */
function nameless({ malformed: text }: Call): string {
  return text === undefined
    ? 'the call names no tool'
    : `the call cannot be read: ${quote(text)}; send the name of a tool and one object of arguments`
}

function malformed({ name, malformed: text, input }: Call): Precheck | undefined {
  const flaw = text === undefined ? flawOf(input) : flawIn(text)
  if (flaw !== undefined) return { rule: 'schema.malformed', reason: `${name}: ${flaw}; send one object such as {"key": "value"}` }
}

/** Describes the flaw in argument text that could not be parsed into an input. */
function flawIn(text: string): string {
  const value = parseJson(text)
  return (isObject(value) ? flawOf(value) : undefined) ?? `the arguments are not a JSON object: ${quote(text)}`
}

/** Hashes, receipts and file names all need a canonical form; an unpaired surrogate or bottomless nesting has none. */
function flawOf(input: unknown): string | undefined {
  if (!isObject(input)) return `the arguments are not a JSON object: ${quote(input)}`
  try {
    canonical(input)
  } catch (error) {
    if (error instanceof RangeError) return 'the arguments are nested too deeply'
    return halfCharacterIn(input) ?? cut(visible(String(error)), 200)
  }
}

/** A text with an unpaired surrogate would silently change when it is written to a file or used as a name. */
function halfCharacterIn(input: { readonly [key: string]: unknown }): string | undefined {
  const found = Object.entries(input).find(([key, value]) => !(key.isWellFormed() && isWhole(value)))
  if (found === undefined) return undefined
  return `${quote(found[0])} holds half a character (a lone surrogate such as \\ud800): ${quote(found[1])}; write the whole character`
}

function isWhole(value: unknown): boolean {
  if (typeof value === 'string') return value.isWellFormed()
  if (Array.isArray(value)) return value.every(isWhole)
  return !isObject(value) || Object.entries(value).every(([key, member]) => key.isWellFormed() && isWhole(member))
}

export type SecretLook = Pick<Redactor, 'inspect' | 'json'>

/**
 * Refuses calls that contain a secret; such a call never runs with a substitute in place of the secret. Refuses a secret value to every
 * tool, because any tool would write, run, send or show it. Refuses a label to every tool whose risk is not low.
 * @returns `call` redacted, so that it may be shown and stored
 */
export function lookForSecrets(call: Call, tool: Tool | undefined, secrets: SecretLook | undefined): { call: Call; hidden?: Precheck } {
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
