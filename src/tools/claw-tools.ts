/** Offers the tools of a claw: another process lists and runs them. Each request is one line, and each answer is one frame. */

import { sleep } from '../kit/abort.ts'
import { capText } from '../kit/content/output-limit.ts'
import { isObject, type Json } from '../kit/json.ts'
import { sha256 } from '../kit/sha256.ts'
import { callLine, DISCOVERY, readTools } from '../kit/wire.ts'
import type { Risk } from '../runtime/event.ts'
import type { ToolContext, ToolResult } from '../runtime/port.ts'
import { parseDescription } from './executable/description.ts'
import type { Executable } from './executable/executable-tool.ts'
import { done, fail } from './tool-kind.ts'

/** `unread`: no process read the request; `timeout`: a process read it and did not answer in time. */
export type AskClaw = (
  line: string,
  signal: AbortSignal,
) => Promise<{ readonly ok: true; readonly answer: string } | { readonly ok: false; readonly why: string }>

export type ClawOptions = {
  readonly ask: AskClaw
  /** Names of the built-in tools, which a claw may not use. */
  readonly builtIn: readonly string[]
  /** The risk that the operator configured for the tool of this name; the claw's own description does not count. */
  readonly riskOf: (name: string) => Risk
  readonly maxOutputBytes: number
}

/** `refused` lists the tools that are not offered, with the reason. `silent` means that the claw did not answer at all. */
export type ClawSurvey = { readonly tools: readonly Executable[]; readonly refused: readonly string[]; readonly silent: boolean }

/** The longest time that a claw may take to answer a discovery request, and the pause before a silent one is asked again. */
const WORD_MS = 1_000
const AGAIN_MS = 100
/** Stays below the executor's own limit, so that a slow claw gets this module's error message. */
const TIMEOUT_MS = 30_000

/**
 * @returns a function that surveys the claw once and never rejects. `tools` stays the same array while the claw's list stays equal. A claw
 * that does not answer has no tools; if `isPatient`, it is asked until the signal aborts.
 */
export function createClaw(options: ClawOptions): (signal: AbortSignal, isPatient?: boolean) => Promise<ClawSurvey> {
  const state: { list?: string; survey: ClawSurvey } = { survey: { tools: [], refused: [], silent: false } }
  const words = [...DISCOVERY]
  return async (signal, isPatient = false) => {
    let listed = await list(options.ask, words, signal)
    while (isPatient && !listed.ok && listed.silent && !signal.aborted) {
      // A bridge that is not running is silent at once.
      await sleep(AGAIN_MS, signal)
      listed = await list(options.ask, words, signal)
    }
    if (!listed.ok) return { tools: [], refused: [listed.why], silent: listed.silent }
    const text = JSON.stringify(listed.entries)
    if (text !== state.list) state.survey = survey(options, listed.entries)
    state.list = text
    return state.survey
  }
}

type ClawList =
  | { readonly ok: true; readonly entries: readonly Json[] }
  | { readonly ok: false; readonly why: string; readonly silent: boolean }

/**
 * Claws differ in the discovery word that they know, and some do not answer an unknown word. The word that succeeded comes first from then
 * on.
 */
async function list(ask: AskClaw, words: string[], signal: AbortSignal): Promise<ClawList> {
  let last: Awaited<ReturnType<AskClaw>> = { ok: false, why: 'unread' }
  for (const word of [...words]) {
    const reply = await ask(`${word}\n`, AbortSignal.any([signal, AbortSignal.timeout(WORD_MS)]))
    const entries = reply.ok ? readTools(reply.answer) : undefined
    if (entries) return { ok: true, entries }
    words.reverse()
    if (reply.ok || !last.ok) last = reply
  }
  if (last.ok)
    return {
      ok: false,
      silent: false,
      why: `the claw answered ${words[0]} with no JSON array but ${JSON.stringify(last.answer.slice(0, 80))}`,
    }
  const why = last.why === 'cancelled' ? 'timeout' : last.why
  return { ok: false, silent: true, why: `the claw is silent (${why}); is its bridge running?` }
}

function survey(options: ClawOptions, entries: readonly Json[]): ClawSurvey {
  const [tools, refused]: [Executable[], string[]] = [[], []]
  for (const entry of entries) {
    const made = toolOf(options, entry)
    if (typeof made === 'string') refused.push(made)
    else if (options.builtIn.includes(made.name)) refused.push(`the claw's "${made.name}" has the name of a built-in tool; rename it`)
    else if (tools.some(({ name }) => name === made.name)) refused.push(`the claw lists "${made.name}" twice; the first counts`)
    else tools.push(made)
  }
  return { tools, refused, silent: false }
}

function toolOf({ ask, riskOf, maxOutputBytes }: ClawOptions, entry: Json): Executable | string {
  const { name, description, input_schema, parameters } = isObject(entry) ? entry : {}
  const schema = input_schema ?? parameters ?? { type: 'object', properties: {} }
  const parsed = parseDescription(JSON.stringify({ name, description, parameters: schema }))
  if (!parsed.ok) return `a tool of the claw ${parsed.why.replace(' for --describe', '')}`
  const { spec } = parsed
  return {
    ...spec,
    risk: riskOf(spec.name),
    source: 'claw',
    sha256: sha256(JSON.stringify(spec)),
    changed: () => undefined,
    timeoutMs: TIMEOUT_MS,
    idempotent: false,
    touches: () => [],
    invoke: (input, context) => invoke({ ask, line: callLine(spec.name, input), maxOutputBytes }, context),
  }
}

type ClawCall = { readonly ask: AskClaw; readonly line: string | undefined; readonly maxOutputBytes: number }

/** The wire format cannot express failure, so the claw's answer is always the result. */
async function invoke({ ask, line, maxOutputBytes }: ClawCall, { signal }: ToolContext): Promise<ToolResult> {
  if (line === undefined) return fail('the name of the tool cannot be written on a line')
  const reply = await ask(line, signal)
  if (reply.ok) return done(capText(reply.answer, maxOutputBytes))
  return fail(
    reply.why === 'unread' || reply.why === 'down'
      ? "nobody reads claw_in, so it did not run; is the claw's bridge running?"
      : `the claw took the call and gave no answer (${reply.why}); what it did is unknown`,
  )
}
