/** Defines the lines that a client of `braidclaw stdio` may send, and reads them strictly. It runs on Node too. */

import { z } from 'zod'
import { isObject, parseJson } from '../../kit/json.ts'
import { didYouMean } from '../../kit/text.ts'

/** The longest line in bytes, and the longest reply of a client's model in characters. */
export const longestLine = 16 * 1024 * 1024

const [text, whole, yes] = [z.string(), z.int().min(0), z.literal(true)]
const object = z.record(text, z.json())
const risk = z.enum(['low', 'medium', 'high']).default('medium')
const tool = z.strictObject({
  name: text,
  description: text,
  parameters: z.intersection(object, z.object({ type: z.literal('object') })),
  risk,
})

/** The members of a line that are objects. */
const parts = {
  hello: z.strictObject({
    protocol: whole,
    client: z._default(text, 'this client'),
    /** So many events are sent before more are granted; absent: all. */
    credits: z.optional(whole),
    modelCall: z._default(z.boolean(), false),
    tools: z.array(tool).default([]),
    threads: z.array(z.looseObject({ name: text, on: object })).default([]),
  }),
  approve: z.strictObject({ gateId: text, allow: z.boolean(), by: z.optional(text), note: z.optional(text), part: z.optional(text) }),
  mode: z.strictObject({ newMode: z.enum(['structured', 'wiggum']), maxIterations: z.optional(whole) }),
  result: z.strictObject({ id: text, output: z.json().optional(), error: z.optional(text) }),
  piece: z.discriminatedUnion('type', [
    z.strictObject({ id: text, type: z.enum(['text', 'thinking']), content: text }),
    z.strictObject({ id: text, type: z.literal('error'), content: text }),
    z.strictObject({ id: text, type: z.literal('tool_use'), name: text, input: object, callId: z.optional(text) }),
    z.strictObject({ id: text, type: z.literal('done') }),
  ]),
}

/** A line has an id, if it wants an answer, and one other member. */
const clientLine = z.strictObject({ id: text, ...parts, prompt: text, changes: text, cancel: yes, credit: whole, close: yes }).partial()

export type ClientLine = z.infer<typeof clientLine>
export type Hello = NonNullable<ClientLine['hello']>
export type Piece = NonNullable<ClientLine['piece']>

export type ReadLine =
  | { readonly ok: true; readonly line: ClientLine }
  | { readonly ok: false; readonly id?: string; readonly error: string }

const answered = ['prompt', 'approve', 'changes', 'mode']

/** Reads one line. `isFramed`: after a `hello`, where what is answered has an id. */
export function readLine(given: string, isFramed: boolean): ReadLine {
  const value = parseJson(given)
  if (!isObject(value)) return { ok: false, error: `the line is not a JSON object: ${JSON.stringify(given.slice(0, 80))}` }
  const { id, ...others } = value
  const fail = (error: string): ReadLine => ({ ok: false, ...(typeof id === 'string' ? { id } : {}), error })
  const names = Object.keys(others)
  const known = isFramed ? Object.keys(clientLine.shape) : ['hello', 'prompt']
  const unknown = names.find((name) => !known.includes(name))
  if (unknown !== undefined) {
    const advice = unknown in clientLine.shape ? '; begin with a line {"hello": {"protocol": 1}} to use it' : didYouMean(unknown, known)
    return fail(`"${unknown}" is not known here${advice}`)
  }
  if (names.length !== 1)
    return fail(`the line has ${names.length === 0 ? 'no member' : names.join(', ')}; send one of ${known.join(', ')}`)
  if (isFramed && id === undefined && names.some((name) => answered.includes(name))) return fail(`"${names[0]}" has no "id" for its answer`)
  const read = clientLine.safeParse(value)
  return read.success ? { ok: true, line: read.data } : fail(read.error.issues.map(tell).join('; '))
}

function tell(issue: z.core.$ZodIssue): string {
  const place = issue.path.join('.')
  if (issue.code !== 'unrecognized_keys') return `"${place}": ${issue.message}`
  const part = Object.entries(parts).find(([name]) => name === place)?.[1]
  return `"${place}" has the unknown member "${issue.keys[0]}"${didYouMean(issue.keys[0] ?? '', part && 'shape' in part ? Object.keys(part.shape) : [])}`
}
