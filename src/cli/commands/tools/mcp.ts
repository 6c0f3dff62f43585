/** Implements `mcp list | show | enable | disable | remove`: what the MCP servers of others may do here. It connects to none. */

import { mcpLine, reached } from '../../../channels/mcp-command.ts'
import type { CliContext } from '../../../channels/terminal/context.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { type Mcp, type McpStatus, openMcp } from '../../../host/toolset/guests/mcp/open-mcp.ts'
import { visible } from '../../../kit/text.ts'
import { type Arguments, command } from '../../args/command.ts'
import { jsonFlag } from '../../args/turn-flags.ts'
import { printList } from '../../print-list.ts'
import { line, printDifference } from './folder-commands.ts'
import { permissionLines } from './plugin.ts'

export const known = { id: { type: 'text', about: 'The id of the server', complete: 'mcp' } } as const satisfies Arguments
const knownTool = { ...known, tool: { type: 'text', optional: true, about: 'Only this tool of it' } } as const satisfies Arguments

const open = (context: CliContext) => openMcp({ setup: loadSetup(context) })

export const list = command({
  flags: jsonFlag,
  examples: [['', 'the servers, and which of their tools are offered']],
  run(context, { json = false }) {
    const mcp = open(context)
    const { servers, problems, notices } = mcp.servers()
    const items = servers.map(({ id }) => mcp.status(id))
    const none = 'no MCP servers; add one: braidclaw mcp add ID -- COMMAND, or: braidclaw mcp add ID URL'
    printList(context, { items: items.map(factsOf), json, lines: items.map(mcpLine), none })
    for (const said of [...problems, ...notices]) context.process.stderr.write(`warning: ${line(said)}\n`)
  },
})

/** Leaves out the values of headers and variables, which are keys as often as not. */
function factsOf({ server, state, seen, tools }: McpStatus) {
  const { id, name, origin, project, permissions, transport } = server
  const where =
    transport.kind === 'stdio'
      ? { command: transport.argv, variables: Object.keys(transport.env) }
      : { url: transport.url, headers: Object.keys(transport.headers), login: transport.login }
  const facts = { id, name, state, origin, project, transport: { kind: transport.kind, ...where }, permissions }
  return { ...facts, server: seen?.server, tools, refused: seen?.refused ?? [] }
}

export const show = command({
  flags: jsonFlag,
  args: known,
  examples: [['memory', 'its tools, what it may do, and what changed since it was approved']],
  run(context, { json = false }, { id }) {
    const mcp = open(context)
    const status = mcp.status(id)
    printStatus(context, status, json)
    if (json) return
    if (status.state === 'changed' || status.tools.some(({ state }) => state === 'changed')) printDifference(context, mcp.difference(id))
  },
})

/** Says what the server is and what it may do; nothing of it is believed. */
export function printStatus({ process: { stdout } }: CliContext, status: McpStatus, json = false): void {
  const { server, state, seen, tools } = status
  const lines = [
    `${server.id}: ${state}`,
    `  from       ${line(server.origin)}`,
    `  ${server.transport.kind === 'stdio' ? 'runs      ' : 'address   '} ${line(reached(server))}`,
    ...(server.transport.kind === 'stdio' ? accessLines(server.permissions) : []),
    ...(seen ? [`  says       it is ${line(seen.server.name)} ${line(seen.server.version)}, revision ${line(seen.server.protocol)}`] : []),
    ...tools.map(({ name, state, definition }) => `  tool       ${line(name)} (${state}): ${summary(definition?.description ?? '')}`),
    ...(seen?.refused ?? []).map(({ name, why }) => `  refused    ${line(name)}: ${line(why)}`),
  ]
  stdout.write(`${json ? JSON.stringify(factsOf(status)) : lines.join('\n')}\n`)
}

export function accessLines(permissions: McpStatus['server']['permissions']): readonly string[] {
  return [...permissionLines(permissions), `  folders    ${line(permissions.folders.join(', ')) || 'none'}`]
}

/** Returns the beginning of a description; the whole is in the difference, and in the JSON. */
function summary(text: string): string {
  const words = line(text.slice(0, 200))
  return words.length > 100 ? `${words.slice(0, 99)}…` : words
}

const change = (about: string, done: string, work: (mcp: Mcp, id: string, tool?: string) => Promise<unknown>) =>
  command({
    args: knownTool,
    examples: [['memory', about]],
    async run(context, _flags, { id, tool }) {
      await work(open(context), id, tool)
      context.process.stdout.write(`${done}: ${visible(tool === undefined ? id : `${id}/${tool}`)}\n`)
    },
  })

export const enable = change('its tools are offered again', 'enabled', (mcp, id, tool) => mcp.enable(id, true, tool))
export const disable = change('its tools are no longer offered', 'disabled', (mcp, id, tool) => mcp.enable(id, false, tool))

export const remove = command({
  args: known,
  examples: [['memory', 'forgets the server and its approval']],
  async run(context, _flags, { id }) {
    const left = await open(context).remove(id)
    context.process.stdout.write(`removed: ${visible(id)}\n`)
    if (left !== undefined) context.process.stderr.write(`note: ${line(left)} still configures it; it is not approved any more\n`)
  },
})
