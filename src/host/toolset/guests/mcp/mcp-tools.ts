/**
 * Offers the approved tools of MCP servers to a turn, from the definitions on disk: no server is reached before one of its tools is called.
 * A tool that its server now defines otherwise is not offered, and does not run.
 */

import { createHybridIndex, type Entry, paramsOf } from '../../../../discovery/hybrid-index.ts'
import { errorText } from '../../../../kit/errors.ts'
import { canonical, changeTexts, isObject, type Json, type JsonObject } from '../../../../kit/json.ts'
import { sha256 } from '../../../../kit/sha256.ts'
import { cut, visible, visibleLines } from '../../../../kit/text.ts'
import type { Elicit, McpCallOptions, McpConnection, McpContent, McpToolDefinition } from '../../../../mcp/contract.ts'
import type { AskLine, Picture, Tool, ToolResult, ToolSpec } from '../../../../runtime/port.ts'
import { parseDescription } from '../../../../tools/executable/description.ts'
import { done, fail, sandboxed } from '../../../../tools/tool-kind.ts'
import type { Setup } from '../../../api.ts'
import type { SourcedTool, ToolDeps, ToolSource } from '../../contract.ts'
import { builtInNames, namedCall } from '../../tool-selection.ts'
import { distinct, warnOnce } from '../plugins/plugin-tools.ts'
import { openDefinitions, serverState, startText, toolState } from './approved-definitions.ts'
import { configuredServers, expanded, type McpServer } from './configured-servers.ts'
import { statusFrom } from './open-mcp.ts'
import { connectionsOf, type LiveServer } from './server-connections.ts'

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
        const { version = '' } = status.seen?.server ?? {}
        const hasTexts = (status.seen?.resources.length ?? 0) + (status.seen?.prompts.length ?? 0) > 0
        const tools = status.tools.flatMap(({ state, definition, digest }) =>
          state === 'approved' && definition !== undefined && digest !== undefined ? [{ server, definition, digest, version }] : [],
        )
        return [...tools, ...(hasTexts ? [{ server, version, digest: 'texts' }] : [])]
      })
      const key = JSON.stringify(offered.map(({ server, digest }) => [server.key, sha256(startText(server)), digest]))
      if (state.key !== key) {
        const tools = offered.flatMap((one) => toolOf(one, { setup, deps, tell }) ?? [])
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

/** Without a `definition` it stands for the resources and prompts of the server, which one tool of ours reads. */
type Offered = { readonly server: McpServer; readonly definition?: McpToolDefinition; readonly digest: string; readonly version: string }
type Turn = { readonly setup: Setup; readonly deps: ToolDeps; readonly tell: (line: string) => void }

function toolOf({ server, definition, digest, version }: Offered, { setup, deps, tell }: Turn): SourcedTool | undefined {
  const { id } = server
  const source = `mcp:${id}/${definition ? visible(definition.name) : 'resources and prompts'}`
  const spec = definition ? specOf(server, definition) : textsSpec(id)
  const transport = expanded(server, setup)
  if ('why' in spec) return void tell(`tool ${source} is not offered: it ${spec.why}`)
  if ('why' in transport) return void tell(`tool ${source} is not offered: ${transport.why}`)
  const url = transport.kind === 'stdio' ? undefined : transport.url
  const isUnconfined = url === undefined && deps.sandbox === 'none'
  const where = url === undefined ? (isUnconfined ? 'no sandbox confines it' : 'a sandbox confines it') : 'it runs elsewhere'
  const what = definition ? 'a tool' : 'texts'
  const call = definition ? callOf(definition, digest) : readTexts
  return {
    ...spec,
    // What the server says of its tool decides nothing.
    risk: !isUnconfined && setup.config.security.allowTools.includes(spec.name) ? 'low' : 'medium',
    timeoutMs: 30_000,
    ...(deps.ask ? { limitMs: () => personMs } : {}),
    idempotent: false,
    source,
    sha256: definition ? digest : sha256(startText(server)),
    hosts: url === undefined ? server.permissions.hosts : [URL.parse(url)?.hostname ?? url],
    guest: `${what} of the MCP server ${id} ${visible(version)}: ${where}, and what it does is not foreseen`,
    touches: () => (url === undefined ? [] : [{ kind: 'url', url, method: 'POST' }]),
    changed: () => whyChanged(server, setup, definition && { name: definition.name, digest }),
    invoke: (input, context) => invoke({ server, setup, deps, call }, input, context),
  }
}

/** Returns the words of a tool of ours: none of them is the server's, because nobody approves its resources and prompts. */
function textsSpec(id: string): ToolSpec {
  return {
    name: offeredName(id, 'read'),
    description: `Read a resource or a prompt of the MCP server ${id}. Without arguments it lists them.`,
    parameters: {
      ...object,
      properties: {
        uri: { type: 'string', description: 'The address of a resource' },
        prompt: { type: 'string', description: 'Or the name of a prompt' },
        arguments: { type: 'object', additionalProperties: { type: 'string' }, description: 'What the prompt is filled with' },
      },
    },
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
function whyChanged(server: McpServer, setup: Setup, tool?: { readonly name: string; readonly digest: string }): string | undefined {
  const entry = openDefinitions(setup.paths.home).read().get(server.key)
  const state = serverState(server, entry)
  if (state !== 'approved') return `the MCP server ${server.id} is ${state}; ${approve(server.id)}`
  const now = tool === undefined ? 'approved' : toolState(entry, tool.name, tool.digest)
  return now === 'approved' ? undefined : `the tool ${server.id}/${tool?.name} is ${now}; ${approve(server.id)}`
}

type Call = (live: LiveServer, id: string, input: JsonObject, options: McpCallOptions) => Promise<McpContent | ToolResult>

type Invocation = Pick<Turn, 'setup' | 'deps'> & { readonly server: McpServer; readonly call: Call }

async function invoke({ server, setup, deps, call }: Invocation, ...[input, { signal }]: Parameters<Tool['invoke']>): Promise<ToolResult> {
  const { id } = server
  const { guests = {}, sandboxOn, maxOutputBytes: maxBytes, ask } = deps
  const live = await connectionsOf(guests).use(server, { setup, sandboxOn, maxBytes }, signal)
  if ('why' in live) return fail(`the MCP server ${id}: ${visible(live.why)}${live.needsLogin ? `; run: braidclaw mcp login ${id}` : ''}`)
  const content = await call(live, id, input, { signal, ...(ask ? { elicit: elicitFrom(id, ask) } : {}) })
  const shown = 'text' in content ? resultOf(content) : content
  const result = shown.pictures ? { ...shown, pictures: await fitting(shown.pictures) } : shown
  const { sandbox } = live
  return sandbox === undefined ? result : sandboxed(result, { ok: true, code: 0, leftBehind: false, sandbox })
}

function callOf({ name }: McpToolDefinition, digest: string): Call {
  return async (live, id, input, options) => {
    const digests = await live.digests(options.signal)
    if ('why' in digests) return fail(`the MCP server ${id}: ${visible(digests.why)}`)
    if (digests.get(name) !== digest) {
      const why = digests.has(name) ? 'its server changed its definition since it was approved' : 'its server no longer has it'
      return { ...fail(`the tool ${id}/${name} is disabled: ${why}; nothing was run; ${approve(id)}`), deniedBy: 'tool.changed' }
    }
    const { connection } = live
    const { name: calls, version } = connection.server
    const content = await connection.callTool(name, input, options)
    return { ...resultOf(content), metadata: { mcp: { server: id, name: calls, version, definition: digest } } }
  }
}

const readTexts: Call = async ({ connection }, _id, { uri, prompt, arguments: given }, options) => {
  if (typeof uri === 'string') return connection.readResource(uri, options)
  if (typeof prompt !== 'string') return listTexts(connection, options.signal)
  const texts = Object.entries(isObject(given) ? given : {}).map(([name, value]) => [name, String(value)])
  return connection.getPrompt(prompt, Object.fromEntries(texts), options)
}

async function listTexts(connection: McpConnection, signal: AbortSignal): Promise<ToolResult> {
  const [resources, prompts] = [await connection.resources(signal), await connection.prompts(signal)]
  const lines = [
    ...('why' in resources ? [] : resources.items).map(({ uri, name, description }) => `resource ${uri}: ${name}. ${description}`),
    ...('why' in prompts ? [] : prompts.items).map((prompt) => {
      const names = prompt.arguments.map(({ name, required }) => (required ? name : `[${name}]`))
      return `prompt ${prompt.name}(${names.join(', ')}): ${prompt.description}`
    }),
  ]
  return done(lines.map((each) => cut(visible(each), 500)).join('\n') || 'the server has neither resources nor prompts now')
}

/** The model reads the text, in which each picture is named, and sees the pictures if it can. */
function resultOf({ text, pictures, isError, failed }: McpContent): ToolResult {
  const output = visibleLines(text)
  if (isError) return fail(failed ? visible(failed.why) : output || 'the tool failed without a reason', failed ? output : '')
  return { ...done(output), ...(pictures.length > 0 && { pictures }) }
}

/** Scales the pictures as every model takes them; a broken one is left out. */
async function fitting(pictures: readonly Picture[]): Promise<readonly Picture[]> {
  const { pictureFrom } = await import('../../../../tools/fit-picture.ts')
  const fitted = await Promise.all(pictures.map(({ base64 }) => pictureFrom(Buffer.from(base64, 'base64'))))
  return fitted.flatMap((each) => (each.ok ? [each.picture] : []))
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
