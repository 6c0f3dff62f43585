/** Returns the index of an agent's skills, for programs that start runners themselves: `import { getAgentSkillIndex } from 'braidclaw/skill-library'`. */

export type IndexOptions = {
  /** Default: agent/library.yaml in the current folder. */
  readonly library?: string
  /** Default: the name of the agent. */
  readonly role?: string
}

/** Returns the index; it is empty when the agent has no skill. @throws Error that says what is wrong with the library, by line, or that there is none */
export function getAgentSkillIndex(agentId: string, { library = 'agent/library.yaml', role = agentId }: IndexOptions = {}): string {
  // The readers of YAML and of its shape take some 15 ms, which an import must not cost.
  const { readLibraryFile, skillIndex }: typeof import('./library-file.ts') = require('./library-file.ts')
  const read = readLibraryFile(library)
  if (!read.ok) throw new Error(read.message)
  return skillIndex(read.skills, { id: agentId, role })
}
