/** Prints MCP servers as lines, and answers /mcp in a conversation. */

import type { Setup } from '../host/api.ts'
import { type McpStatus, openMcp } from '../host/toolset/guests/mcp/open-mcp.ts'
import { count, cut, flat, visible } from '../kit/text.ts'
import type { ChangeSet } from '../runtime/changes.ts'
import type { AskLine } from '../runtime/port.ts'

/** Returns the server, its state, its tools and how it is reached on one line. */
export function mcpLine({ server, state, tools, seen }: McpStatus): string {
  const number = (which: string) => tools.filter((tool) => tool.state === which).length
  const changed = number('changed') === 0 ? '' : `, ${number('changed')} changed`
  const said = seen === undefined ? 'never connected' : `${number('approved')} of ${count(tools.length, 'tool')} offered${changed}`
  return `${server.id.padEnd(20)} ${state.padEnd(13)} ${said.padEnd(24)} ${cut(visible(flat(reached(server))), 200)}`
}

export function reached({ transport }: McpStatus['server']): string {
  if (transport.kind === 'stdio') return transport.argv.join(' ')
  const { url, login } = transport
  return login ? `${url} as the client ${login.clientId} of ${login.issuer}` : url
}

/** Lists the servers; with `approve ID` it shows what is new of one and asks. @throws FailureError when there is no such server */
export async function mcpCommand(setup: Setup, words: string, ask: AskLine, show: (set: ChangeSet) => void): Promise<string> {
  const [verb, id, ...tools] = words.split(' ').filter(Boolean)
  const mcp = openMcp({ setup })
  if (verb === undefined) {
    const lines = mcp.servers().servers.map((server) => `  ${mcpLine(mcp.status(server.id))}\n`)
    return lines.join('') || 'no MCP servers; add one: braidclaw mcp add --help\n'
  }
  if (verb !== 'approve' || id === undefined) return 'usage: /mcp, or /mcp approve ID [TOOL…]\n'
  const shown = mcp.status(id)
  show(mcp.difference(id))
  if (!/^y(es)?$/i.test((await ask(`Approve exactly this of ${id}? [y/N] `))?.trim() ?? '')) return `${id} was not approved\n`
  await mcp.approve(id, shown, tools.length > 0 ? tools : undefined)
  return `approved: ${id}; its tools are offered from the next message on\n`
}
