/** Implements `control skills-server`: the MCP server that claude and codex are given to search an agent's skills. */

import { resolve } from 'node:path'
import { version } from '../../../../../package.json'
import { stdinPieces } from '../../../../channels/terminal/input-stream.ts'
import { createMcpServer, type McpTool, serveMcp } from '../../../../control/skills/mcp-server.ts'
import { openLibrary } from '../../../../control/skills/open-library.ts'
import type { SkillSearch } from '../../../../control/skills/skill-search.ts'
import { skillsSearchTool } from '../../../../control/skills/skill-search.ts'
import { visible } from '../../../../kit/text.ts'
import { command } from '../../../args/command.ts'
import { commandError, usageError } from '../../../exit.ts'

export const skillsServer = command({
  flags: {
    library: { type: 'text', about: 'The library.yaml' },
    agent: { type: 'text', about: 'The agent whose skills are searched' },
    role: { type: 'text', short: 'r', about: 'The role of the agent (default: its name)' },
  },
  examples: [['--library agent/library.yaml --agent sysadmin', 'speaks MCP on stdin and stdout until its input ends']],
  async run(context, { library: file, agent, role = agent }) {
    if (file === undefined || agent === undefined || role === undefined)
      throw usageError('--library and --agent are needed: which skills of which agent')
    const library = openLibrary(resolve(context.cwd, file))
    if (!library.ok) throw commandError(visible(library.message))
    const search = library.forAgent({ id: agent, role }).openSearch()
    const io = { input: stdinPieces(), write: (text: string) => context.process.stdout.data(text) }
    await serveMcp(createMcpServer(mcpTool(search), version), io)
  },
})

function mcpTool(search: SkillSearch): McpTool {
  const tool = skillsSearchTool(search)
  const context = { conversationId: 'mcp', callId: '', signal: new AbortController().signal, plan: '' }
  const call = async ({ query }: { readonly [name: string]: unknown }) =>
    (await tool.invoke({ query: typeof query === 'string' ? query : '' }, context)).output
  return { ...tool, call }
}
