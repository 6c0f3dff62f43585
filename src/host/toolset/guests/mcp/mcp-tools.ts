/**
 * Offers the approved tools of MCP servers to a turn, from the definitions on disk: no server is reached before one of its tools is called.
 * A tool that its server now defines otherwise is not offered, and does not run.
 */

import { createHybridIndex, type Entry, paramsOf } from '../../../../discovery/hybrid-index.ts'
import { errorText } from '../../../../kit/errors.ts'
import { canonical, changeTexts, isObject, type Json } from '../../../../kit/json.ts'
import { sha256 } from '../../../../kit/sha256.ts'
import { cut, visible, visibleLines } from '../../../../kit/text.ts'
import type { Elicit, McpContent, McpToolDefinition } from '../../../../mcp/contract.ts'
import type { AskLine, Tool, ToolResult, ToolSpec } from '../../../../runtime/port.ts'
import { parseDescription } from '../../../../tools/executable/description.ts'
import { done, fail, sandboxed } from '../../../../tools/tool-kind.ts'
import type { Setup } from '../../../api.ts'
import type { SourcedTool, ToolDeps, ToolSource } from '../../contract.ts'
import { builtInNames, namedCall } from '../../tool-selection.ts'
import { distinct, warnOnce } from '../plugins/plugin-tools.ts'
import { openDefinitions, serverState, startText, toolState } from './approved-definitions.ts'
import { configuredServers, expanded, type McpServer } from './configured-servers.ts'
import { statusFrom } from './open-mcp.ts'
import { connectionsOf } from './server-connections.ts'

/** With more tools than this in a turn, or more bytes of definitions of servers, the model finds tools by what it wants to do. */
const [mostTools, mostBytes] = [25, 6_000]
const longestDescription = 1_500
/** A person may be asked in the middle of a call, and needs more time than a machine. */
const personMs = 600_000

/** Returns a source that looks at the book and the configuration before each turn; it reports each finding once. */
export function mcpTools(setup: Setup): ToolSource {
  const store = openDefinitions(setup.paths.home)
  const state: { key?: string; tools: readonly SourcedTool[] } = { tools: [] }
  const tell = warnOnce(setup)

  return async (deps) => {
    try {
      const book = store.read()
      const { servers, notices } = configuredServers(setup)
      notices.forEach(tell)
      const offered = servers.flatMap((configured) => {
        const entry = book.get(configured.key)
        if (entry?.start === undefined) return []
        const server = entry.permissions ? { ...configured, permissions: entry.permissions } : configured
        const { id } = server
        const status = statusFrom(server, entry, store.seen(server.key))
        if (status.state === 'changed')
          tell(`the MCP server ${id} is not offered: it is configured otherwise than approved; ${approve(id)}`)
        if (status.state !== 'approved') return []
        for (const { name, state: tool } of status.tools)
          if (tool === 'changed') tell(`the tool ${id}/${visible(name)} is disabled: its server changed its definition; ${approve(id)}`)
        return status.tools.flatMap(({ state, definition, digest }) =>
          state === 'approved' && definition !== undefined && digest !== undefined
            ? [{ server, definition, digest, version: status.seen?.server.version ?? '' }]
            : [],
        )
      })
      const key = JSON.stringify(offered.map(({ server, digest }) => [server.key, sha256(startText(server)), digest]))
      if (state.key !== key) {
        const tools = offered.flatMap((one) => toolOf({ ...one, setup, deps, tell }) ?? [])
        Object.assign(state, { key, tools: withFinder(distinct(tools, tell)) })
      }
      return state.tools
    } catch (error) {
      tell(errorText(error))
      return []
    }
  }
}

const approve = (id: string) => `look at it, and run: braidclaw mcp approve ${id}`

/** Returns `mcp_ID_TOOL`, which no built-in tool can have, with the letters that every model vendor accepts. */
export function offeredName(id: string, tool: string): string {
  const name = `mcp_${id.replace(/[^A-Za-z0-9]+/g, '-')}_${tool.replace(/[^A-Za-z0-9_-]+/g, '_')}`
  return name.length <= 64 ? name : `${name.slice(0, 55)}_${sha256(`${id}/${tool}`).slice(0, 8)}`
}

type Offered = {
  readonly server: McpServer
  readonly definition: McpToolDefinition
  readonly digest: string
  readonly version: string
  readonly setup: Setup
  readonly deps: ToolDeps
  readonly tell: (line: string) => void
}

function toolOf(offered: Offered): SourcedTool | undefined {
  const { server, definition, digest, version, setup, deps, tell } = offered
  const source = `mcp:${server.id}/${visible(definition.name)}`
  const spec = specOf(server, definition)
  const transport = expanded(server, setup)
  if ('why' in spec) return void tell(`tool ${source} is not offered: it ${spec.why}`)
  if ('why' in transport) return void tell(`tool ${source} is not offered: ${transport.why}`)
  const url = transport.kind === 'stdio' ? undefined : transport.url
  const isUnconfined = url === undefined && deps.sandbox === 'none'
  const where = url === undefined ? (isUnconfined ? 'no sandbox confines it' : 'a sandbox confines it') : 'it runs elsewhere'
  return {
    ...spec,
    // What the server says of its tool decides nothing.
    risk: !isUnconfined && setup.config.security.allowTools.includes(spec.name) ? 'low' : 'medium',
    timeoutMs: 30_000,
    ...(deps.ask ? { limitMs: () => personMs } : {}),
    idempotent: false,
    source,
    sha256: digest,
    hosts: url === undefined ? server.permissions.hosts : [URL.parse(url)?.hostname ?? url],
    guest: `a tool of the MCP server ${server.id} ${visible(version)}: ${where}, and what it does is not foreseen`,
    touches: () => (url === undefined ? [] : [{ kind: 'url', url, method: 'POST' }]),
    changed: () => whyChanged(offered),
    invoke: (input, context) => invoke(offered, input, context),
  }
}

/** @returns why it cannot be offered, as the end of a sentence */
function specOf({ id }: McpServer, { name, title, description, inputSchema }: McpToolDefinition): ToolSpec | { readonly why: string } {
  const { $schema: _, ...parameters } = inputSchema
  if (changeTexts(parameters, visibleLines) !== parameters) return { why: 'has parameters with characters that nobody sees' }
  const says = cut(visibleLines(description.trim() || title || `${name} of ${id}`), longestDescription)
  const parsed = parseDescription(JSON.stringify({ name: offeredName(id, name), description: says, parameters }))
  return parsed.ok ? parsed.spec : { why: parsed.why }
}

/** Reads the book again, because another process may have changed it since the turn began. */
function whyChanged({ server, definition, digest, setup }: Offered): string | undefined {
  const entry = openDefinitions(setup.paths.home).read().get(server.key)
  const state = serverState(server, entry)
  if (state !== 'approved') return `the MCP server ${server.id} is ${state}; ${approve(server.id)}`
  const tool = toolState(entry, definition.name, digest)
  return tool === 'approved' ? undefined : `the tool ${server.id}/${definition.name} is ${tool}; ${approve(server.id)}`
}

async function invoke({ server, definition, digest, setup, deps }: Offered, ...[input, { signal }]: Parameters<Tool['invoke']>) {
  const { id } = server
  const { name } = definition
  const { guests = {}, sandboxOn, maxOutputBytes: maxBytes, ask } = deps
  const live = await connectionsOf(guests).use(server, { setup, sandboxOn, maxBytes }, signal)
  if ('why' in live) return fail(`the MCP server ${id}: ${visible(live.why)}${live.needsLogin ? `; run: braidclaw mcp login ${id}` : ''}`)
  const digests = await live.digests(signal)
  if ('why' in digests) return fail(`the MCP server ${id}: ${visible(digests.why)}`)
  if (digests.get(name) !== digest) {
    const why = digests.has(name) ? 'its server changed its definition since it was approved' : 'its server no longer has it'
    return { ...fail(`the tool ${id}/${name} is disabled: ${why}; nothing was run; ${approve(id)}`), deniedBy: 'tool.changed' }
  }
  const { connection } = live
  const content = await connection.callTool(name, input, { signal, ...(ask ? { elicit: elicitFrom(id, ask) } : {}) })
  const { name: calls, version } = connection.server
  const result = resultOf(content, { mcp: { server: id, name: calls, version, definition: digest } })
  const { sandbox } = live
  return sandbox === undefined ? result : sandboxed(result, { ok: true, code: 0, leftBehind: false, sandbox })
}

/** The model reads the text, in which each picture is named; the result of a tool has no place for the picture itself. */
function resultOf({ text, isError, failed }: McpContent, metadata: NonNullable<ToolResult['metadata']>): ToolResult {
  const output = visibleLines(text)
  if (!isError) return done(output, metadata)
  return { ...fail(failed ? visible(failed.why) : output || 'the tool failed without a reason', failed ? output : ''), metadata }
}

/** Where there are many tools, the model gets only the means to find and call them. */
function withFinder(tools: readonly SourcedTool[]): readonly SourcedTool[] {
  const bytes = tools.reduce((sum, { name, description, parameters }) => sum + JSON.stringify({ name, description, parameters }).length, 0)
  if (builtInNames.length + tools.length <= mostTools && bytes <= mostBytes) return tools
  return [...tools.map((tool) => ({ ...tool, isHidden: true as const })), finder(tools), namedCallTool]
}

const quiet = { risk: 'low', timeoutMs: 30_000, source: 'mcp', touches: () => [], changed: () => undefined } as const
const object = { type: 'object', additionalProperties: false } as const

function finder(tools: readonly SourcedTool[]): SourcedTool {
  const index = createHybridIndex<SourcedTool & Entry>()
  index.put(tools.map((tool) => ({ ...tool, kind: 'mcp_tool', params: paramsOf(tool.parameters) })))
  const lines = (intent: string) =>
    index
      .search(intent)
      .map(({ entry: { name, description, parameters } }) => `${name}: ${description}\narguments: ${JSON.stringify(parameters)}`)
  const servers = [...new Set(tools.map(({ source }) => source.slice('mcp:'.length, source.indexOf('/'))))]
  return {
    ...quiet,
    name: 'find_tools',
    description: `Find further tools by what you are about to do; ${namedCall} runs one. They belong to: ${cut(servers.join(', '), 300)}.`,
    parameters: { ...object, properties: { intent: { type: 'string' } }, required: ['intent'] },
    idempotent: true,
    sha256: sha256(canonical(tools.map((tool) => tool.sha256))),
    invoke: async ({ intent }) => done(lines(String(intent)).join('\n\n') || 'no further tool fits; other words may find one'),
  }
}

/** A call of it that names a tool is replaced by a call of that tool before anything is judged; what arrives here names none. */
const namedCallTool: SourcedTool = {
  ...quiet,
  name: namedCall,
  description: 'Run a tool that find_tools found, with its arguments.',
  parameters: { ...object, properties: { tool: { type: 'string' }, arguments: { type: 'object' } }, required: ['tool', 'arguments'] },
  idempotent: false,
  sha256: sha256(namedCall),
  invoke: async () => fail('name a tool that find_tools found, and an object of arguments'),
}

/**
 * Asks the person for a server, one line for each field that it wants; the client refused questions for secrets before. An empty line leaves
 * out a field that is not required; no answer, or a second wrong one, declines.
 */
export function elicitFrom(id: string, ask: AskLine): Elicit {
  return async ({ message, schema, signal }) => {
    const fields = Object.entries(schema.properties ?? {})
    const head = `The MCP server ${id} asks: ${line(message)}`
    const content: { [name: string]: Json } = {}
    if (fields.length === 0)
      return { action: /^y(es)?$/i.test((await ask(`${head} [y/N]\n> `, signal))?.trim() ?? '') ? 'accept' : 'decline' }
    for (const [name, field] of fields) {
      const isRequired = schema.required?.includes(name) === true
      let value: Json | undefined
      for (let tries = 0; tries < 2 && value === undefined; tries++) {
        const answer = (await ask(`${head}\n${describe(name, field, isRequired)}\n> `, signal))?.trim()
        if (answer === undefined) break
        value = parsed(answer, field, isRequired)
      }
      if (value === undefined) return { action: signal.aborted ? 'cancel' : 'decline' }
      if (value !== null) content[name] = value
    }
    return { action: 'accept', content }
  }
}

const line = (text: string) => cut(visible(text), 500)

function describe(name: string, field: unknown, isRequired: boolean): string {
  const { title, description, type, enum: choices } = isObject(field) ? field : {}
  const kind = Array.isArray(choices) ? choices.map(String).join(', ') : String(type ?? 'text')
  return line(`${title ?? name} (${kind}${isRequired ? '' : ', may be empty'})${description ? `: ${description}` : ''}`)
}

/** @returns null for a field that is left out, undefined for an answer that is not usable */
function parsed(answer: string, field: unknown, isRequired: boolean): Json | undefined {
  const { type, enum: choices } = isObject(field) ? field : {}
  if (answer === '' && !isRequired) return null
  if (Array.isArray(choices)) return choices.includes(answer) ? answer : undefined
  if (type === 'boolean') return /^(y|yes|true)$/i.test(answer) ? true : /^(n|no|false)$/i.test(answer) ? false : undefined
  if (answer === '') return undefined
  if (type !== 'number' && type !== 'integer') return answer
  return (type === 'number' ? Number.isFinite : Number.isInteger)(Number(answer)) ? Number(answer) : undefined
}
