/** Asks the person for an MCP server, one line for each field that the server wants. The client has refused questions for secrets before. */

import { isObject, type Json } from '../../../../kit/json.ts'
import { cut, visible } from '../../../../kit/text.ts'
import type { Elicit } from '../../../../mcp/contract.ts'
import type { AskLine } from '../../../../runtime/port.ts'

const longestText = 500

/** An empty line leaves out a field that is not required; no answer, or a second wrong one, declines. */
export function elicitFrom(id: string, ask: AskLine): Elicit {
  return async ({ message, schema, signal }) => {
    const fields = Object.entries(schema.properties ?? {})
    const head = `The MCP server ${id} asks: ${line(message)}`
    const content: { [name: string]: Json } = {}
    if (fields.length === 0)
      return { action: /^y(es)?$/i.test((await ask(`${head} [y/N]\n> `, signal))?.trim() ?? '') ? 'accept' : 'decline' }
    for (const [name, field] of fields) {
      const isRequired = schema.required?.includes(name) === true
      const value = await valueOf(`${head}\n${describe(name, field, isRequired)}\n> `, { field, isRequired, ask, signal })
      if (value === undefined) return { action: signal.aborted ? 'cancel' : 'decline' }
      if (value !== null) content[name] = value
    }
    return { action: 'accept', content }
  }
}

const line = (text: string) => cut(visible(text), longestText)

function describe(name: string, field: unknown, isRequired: boolean): string {
  const { title, description, type, enum: choices } = isObject(field) ? field : {}
  const kind = Array.isArray(choices) ? choices.map(String).join(', ') : String(type ?? 'text')
  return line(`${title ?? name} (${kind}${isRequired ? '' : ', may be empty'})${description ? `: ${description}` : ''}`)
}

type Asking = { readonly field: unknown; readonly isRequired: boolean; readonly ask: AskLine; readonly signal: AbortSignal }

/** @returns null for a field that is left out, undefined when there is no usable answer */
async function valueOf(question: string, { field, isRequired, ask, signal }: Asking): Promise<Json | undefined> {
  for (let tries = 0; tries < 2; tries++) {
    const answer = (await ask(question, signal))?.trim()
    if (answer === undefined) return undefined
    if (answer === '' && !isRequired) return null
    const value = parsed(answer, isObject(field) ? field : {})
    if (value !== undefined) return value
  }
  return undefined
}

function parsed(answer: string, { type, enum: choices }: { readonly [name: string]: unknown }): Json | undefined {
  if (Array.isArray(choices)) return choices.includes(answer) ? answer : undefined
  if (type === 'boolean') return /^(y|yes|true)$/i.test(answer) ? true : /^(n|no|false)$/i.test(answer) ? false : undefined
  if (type === 'number' || type === 'integer') {
    const number = Number(answer)
    return answer !== '' && Number.isFinite(number) && (type === 'number' || Number.isInteger(number)) ? number : undefined
  }
  return answer === '' ? undefined : answer
}
