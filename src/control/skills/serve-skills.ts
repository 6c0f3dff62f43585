/** Serves skills_search of one agent over MCP until the client goes; claude and codex start it as a child. */

import { createMcpServer, serveMcp } from './mcp-server.ts'
import { openLibrary } from './open-library.ts'
import type { SkillOwner } from './skill.ts'
import { skillsSearchTool } from './skills-search-tool.ts'

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
