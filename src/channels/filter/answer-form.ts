/** Shapes what the filter prints: JSON of a schema, a code block of the answer, the whole answer at once, and the tokens it took. */

import { FailureError } from '../../host/failure.ts'
import { errorText } from '../../kit/errors.ts'
import { isJsonObject, type JsonObject, parseJson } from '../../kit/json.ts'
import { count, cut, didYouMean, quote } from '../../kit/text.ts'
import { compileSchema } from '../../mcp/client/content.ts'
import type { AgentEvent, Usage } from '../../runtime/event.ts'
import { withoutFence } from '../../runtime/request/ask-for-json.ts'
import { addUsage } from '../../runtime/usage.ts'
import { type OutputFormat, type Render, type RunSummary, renderWhole, type Screen } from '../terminal/render.ts'
import { usageLine } from '../terminal/screen/usage-line.ts'
import { createJsonRender } from './json-render.ts'

type FormOptions = {
  readonly schema: JsonObject | undefined
  /** Which code block is printed in place of the answer. */
  readonly block: 'first' | 'last' | undefined
  readonly saysUsage: boolean
  /** A terminal shows the answer while it is written. */
  readonly streams: boolean
  readonly note: (line: string) => void
}

type FormState = { inner?: Render; answers: number; ms: number; usage?: Usage } & { [Key in 'flaw' | 'next']?: string | undefined }

const mostAnswers = 3

/**
 * `again` returns what to say to the model when its answer does not fit, as long as it may try again; `failure` why the last one does not.
 * @throws FailureError `usage` for a schema that cannot be used
 */
export function createAnswerForm({ schema, block, saysUsage, streams, note }: FormOptions) {
  const flawOf = schema && checkOf(schema)
  const state: FormState = { answers: 0, ms: 0 }

  /** Returns what is printed; undefined when it does not fit. */
  function shaped(answer: string, { ending }: RunSummary): string | undefined {
    if (flawOf === undefined) return (block && fencedBlock(answer, block)) ?? answer
    state.answers += 1
    const text = [withoutFence(answer), fencedBlock(answer, 'first') ?? ''].find((each) => parseJson(each) !== undefined)
    const flaw = text === undefined ? 'the answer is not JSON' : flawOf(JSON.parse(text))
    state.flaw = ending.code === 'answered' ? flaw : undefined
    if (state.flaw !== undefined && state.answers < mostAnswers) {
      note(`note: ${flaw}; the model is asked again (${state.answers + 1} of ${mostAnswers})`)
      state.next = `That does not fit: ${flaw}. Answer again, with the whole JSON alone.`
    }
    return flaw === undefined ? text : undefined
  }

  const failure = () => state.flaw && `the model did not meet --schema in ${count(state.answers, 'answer')}: ${state.flaw}`
  return {
    failure,
    again() {
      const { next } = state
      state.next = undefined
      return next
    },
    renderer(format: OutputFormat, screen: Screen): Render {
      const make = format === 'text' ? renderWhole : createJsonRender
      const inner = state.inner ?? make(format, { ...screen, terminal: screen.terminal && streams })
      state.inner = inner
      let done: Extract<AgentEvent, { type: 'done' }> | undefined
      return {
        show(event) {
          if (event.type === 'done') done = event
          else inner.show(event)
        },
        end(summary) {
          const { result: answer, ...rest } = done ?? { type: 'done', stopReason: summary.ending.stop }
          const result = answer === undefined ? undefined : shaped(answer, summary)
          state.ms += summary.durationMs
          state.usage = summary.usage ? addUsage(state.usage, summary.usage) : state.usage
          if (state.next !== undefined) return
          inner.show({ ...rest, ...(result !== undefined && { result }) })
          const message = failure()
          const misfit = message && ({ ending: { stop: 'error', code: 'error', message }, exitCode: 1 } as const)
          const more = schema && { structured: result === undefined ? null : JSON.parse(result) }
          inner.end({ ...summary, ...misfit, more, usage: state.usage, durationMs: state.ms })
          if (saysUsage) screen.err.write(`${usageLine(state.usage) ?? '0 tokens in, 0 out'}\n`)
        },
      }
    },
  }
}

/** Returns a function that says where a value does not fit, and why. */
function checkOf(schema: JsonObject): (value: unknown) => string | undefined {
  try {
    const flawOf = compileSchema(schema)
    for (const probe of [{}, [], '', 0]) flawOf(probe)
    return (value) => flawOf(value)?.replaceAll(/(^|, )data(?=[/ ])/g, '$1answer')
  } catch (error) {
    const why = error instanceof RangeError ? 'it refers to itself without end' : errorText(error)
    throw new FailureError('usage', `--schema cannot be used: ${why}`)
  }
}

/** Returns the instruction that the model gets after the system prompt. */
export function schemaInstruction(schema: JsonObject): string {
  return `Answer with JSON alone: one value that fits this JSON Schema, without a code fence and without words around it.\n${JSON.stringify(schema)}`
}

const types: { readonly [name: string]: string } = { str: 'string', int: 'integer', float: 'number', bool: 'boolean' }

/**
 * Reads JSON Schema, or llm's concise form: fields between commas or on lines of their own, each `name`, `name type` or `name type: what it
 * is`. @throws FailureError `usage`
 */
export function readSchema(text: string): JsonObject {
  if (text.trim().startsWith('{')) {
    const schema = parseJson(text)
    if (isJsonObject(schema)) return schema
    throw new FailureError('usage', `--schema: this is not JSON: ${quote(cut(text.trim(), 60))}`)
  }
  const fields = text.trim().split(text.trim().includes('\n') ? /\s*\n\s*/ : /\s*,\s*/)
  const properties = Object.fromEntries(fields.filter((field) => field !== '').map(fieldOf))
  if (Object.keys(properties).length === 0) throw new FailureError('usage', '--schema is empty; write such as "name, age int"')
  return { type: 'object', properties, required: Object.keys(properties), additionalProperties: false }
}

function fieldOf(field: string): readonly [name: string, schema: JsonObject] {
  const [, name = '', word = 'str', description = ''] = /^([\w-]+)(?:\s+(\w+))?\s*(?::\s*([\s\S]*))?$/.exec(field) ?? []
  if (name === '') throw new FailureError('usage', `--schema: ${quote(field)} is not a field; write "name int" or "name int: what it is"`)
  const [, type] = Object.entries(types).find((pair) => pair.includes(word)) ?? []
  if (type !== undefined) return [name, { type, ...(description !== '' && { description }) }]
  const names = Object.keys(types)
  throw new FailureError('usage', `--schema: no type ${quote(word)}${didYouMean(word, names) || `; there are: ${names.join(', ')}`}`)
}

/** Returns the content of a fenced code block; a block that does not end counts as none. */
function fencedBlock(text: string, which: 'first' | 'last'): string | undefined {
  let open = ''
  let lines: string[] = []
  let found: string | undefined
  for (const line of text.split(/\r?\n/)) {
    const [, mark = '', info = ''] = /^ {0,3}(`{3,}|~{3,})(.*)$/.exec(line) ?? []
    if (open === '') {
      if (!(mark.startsWith('`') && info.includes('`'))) open = mark
      lines = []
    } else if (mark.startsWith(open) && info.trim() === '') {
      found = lines.join('\n')
      open = ''
      if (which === 'first') return found
    } else lines.push(line)
  }
  return found
}
