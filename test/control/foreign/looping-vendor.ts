/** Simulates a vendor that has a tool called again and again, or once, on all three APIs. */

import { dialects, type Speech } from '../../support/dialects.ts'
import { type Asked, sends } from '../../support/vendor-fake.ts'

export type Vendor = {
  readonly answer: (asked: Asked) => Response
  /** The requests that cost tokens. */
  readonly paid: Asked[]
}

type Options = {
  /** The tool whose name ends so is called: until there is a result of it, or always. */
  readonly tool?: string
  readonly input?: object
  readonly forever?: boolean
  /** What each answer costs beside the 100 tokens of its input. */
  readonly outputTokens?: number
  /** Called when this many requests that cost tokens have arrived. */
  readonly after?: number
  readonly whenSo?: () => void
}

type Call = { readonly name: string; readonly namespace?: string; readonly input: object }

export function createVendor({ tool, input = {}, forever = false, outputTokens = 20, after, whenSo }: Options): Vendor {
  const paid: Asked[] = []
  const calledIds: string[] = []

  function answer(asked: Asked): Response {
    const dialect = dialects.find(({ path }) => asked.path === `/v1${path}`)
    if (!dialect) return Response.json({ object: 'list', data: [], input_tokens: 10 })
    const id = `call_${paid.push(asked)}`
    if (paid.length === after) whenSo?.()
    const isDone = !forever && calledIds.some((one) => asked.text.includes(`"${one}"`))
    const call = tool === undefined || isDone ? undefined : callOf(asked.text, tool, input)
    if (tool !== undefined && call?.name.endsWith(tool)) calledIds.push(id)
    const speech: Speech = call ? { calls: [{ id, name: call.name, args: [JSON.stringify(call.input)] }] } : { text: ['All ', 'done.'] }
    return sends(dialect.events(speech).map((event) => spaced(priced(event, outputTokens), call)))
  }

  return { answer, paid }
}

function priced(event: string, tokens: number): string {
  return event.replace(/"(output|completion)_tokens":20/, `"$1_tokens":${tokens}`)
}

/** Codex names the MCP server of a tool apart. */
function spaced(event: string, call: Call | undefined): string {
  if (call?.namespace === undefined) return event
  return event.replaceAll(`"name":"${call.name}"`, `"namespace":"${call.namespace}","name":"${call.name}"`)
}

type ToolEntry = { readonly name?: string; readonly function?: { readonly name: string }; readonly tools?: readonly ToolEntry[] }

/** Claude Code shows the tools of MCP servers by name only; a model first asks for the tool itself. */
function callOf(text: string, tool: string, input: object): Call | undefined {
  const { tools = [] }: { readonly tools?: readonly ToolEntry[] } = JSON.parse(text)
  const entries = tools.flatMap(({ name, function: fn, tools: inner = [] }) => [
    { name: name ?? fn?.name ?? '' },
    ...inner.map((one) => ({ name: one.name ?? '', namespace: name ?? '' })),
  ])
  const found = entries.find(({ name }) => name.endsWith(tool))
  if (found) return { ...found, input }
  const [deferred] = new RegExp(`mcp__\\w+?__${tool}`).exec(text) ?? []
  if (deferred === undefined || !entries.some(({ name }) => name === 'ToolSearch')) return undefined
  if (text.includes('"name":"ToolSearch","input"')) return { name: deferred, input }
  return { name: 'ToolSearch', input: { query: `select:${deferred}` } }
}
