/** Implements `control skills-server`: the MCP server that claude and codex are given to search an agent's skills. */

import { resolve } from 'node:path'
import { version } from '../../../../../package.json'
import { serveOnStdio } from '../../../../channels/mcp/serve-stdio.ts'
import { openLibrary } from '../../../../control/skills/open-library.ts'
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
    const tool = skillsSearchTool(library.forAgent({ id: agent, role }).openSearch())
    await serveOnStdio({
      ...{ name: 'braidclaw-skills', version },
      tools: async () => [tool],
      async call(name, { query }, { signal }) {
        if (name !== tool.name) throw new Error(`there is only the tool ${tool.name}`)
        const input = { query: typeof query === 'string' ? query : '' }
        const { output } = await tool.invoke(input, { conversationId: 'mcp', callId: '', plan: '', signal })
        return { type: 'result', text: output, isError: false }
      },
    })
  },
})
