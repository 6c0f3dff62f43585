/** Implements `control skills-server`: the MCP server that claude and codex are given to search an agent's skills. */

import { resolve } from 'node:path'
import { version } from '../../../../../package.json'
import { createMcpServer, serveMcp } from '../../../../control/skills/mcp-server.ts'
import { openLibrary } from '../../../../control/skills/open-library.ts'
import type { SkillOwner } from '../../../../control/skills/skill.ts'
import { skillsSearchTool } from '../../../../control/skills/skills-search-tool.ts'
import { visible } from '../../../../kit/text.ts'
import type { Command, Flags } from '../../../args/command.ts'
import { CliExit, exitCodes } from '../../../exit.ts'

const flags = {
  library: { type: 'text', about: 'The library.yaml' },
  agent: { type: 'text', about: 'Whose skills' },
  role: { type: 'text', short: 'r', about: 'The role of the agent (default: its name)' },
} as const satisfies Flags

export const skillsServer = {
  flags,
  examples: [['--library agent/library.yaml --agent sysadmin', 'speaks MCP on stdin and stdout until its input ends']],
  async run(context, { library, agent, role = agent }) {
    if (library === undefined || agent === undefined || role === undefined)
      throw new CliExit(exitCodes.usage, 'error: --library and --agent are needed: which skills of which agent')
    const io = { input: Bun.stdin.stream(), write: (text: string) => context.process.stdout.data(text) }
    const served = await serveSkills({ file: resolve(context.cwd, library), owner: { id: agent, role }, version, io })
    if (!served.ok) throw new CliExit(exitCodes.error, `error: ${visible(served.message)}`)
  },
} as const satisfies Command<typeof flags>

export type SkillServing = {
  /** agent/library.yaml, or a snapshot of it. */
  readonly file: string
  readonly owner: SkillOwner
  readonly version: string
  readonly io: { readonly input: AsyncIterable<Uint8Array>; readonly write: (text: string) => unknown }
}

export async function serveSkills({ file, owner, version, io }: SkillServing): Promise<{ readonly ok: boolean; readonly message: string }> {
  const library = openLibrary(file)
  if (!library.ok) return { ok: false, message: library.message }
  const search = library.forAgent(owner).openSearch()
  const tool = skillsSearchTool(search)
  const context = { conversationId: 'mcp', callId: '', signal: new AbortController().signal, plan: '' }
  const call = async ({ query }: { readonly [name: string]: unknown }) =>
    (await tool.invoke({ query: typeof query === 'string' ? query : '' }, context)).output
  try {
    await serveMcp(createMcpServer({ ...tool, call }, version), io)
    return { ok: true, message: '' }
  } finally {
    search.close()
  }
}
