/** Finds skills (SKILL.md) and the documents that they link to by what somebody intends. */

import { relative, resolve } from 'node:path'
import type { Entry } from '../../discovery/hybrid-index.ts'
import { linkedDocuments } from '../../discovery/linked-documents.ts'
import { type FoundSkill, readSkills, type SkillMetadata, skillEntry } from '../../discovery/skill-files.ts'
import { openStoredIndex, type StoreOptions } from '../../discovery/stored-index.ts'
import { openTextFiles } from '../../discovery/text-files.ts'
import { openReferences } from './rules-discovery.ts'
import { matchOf, type ScoredMatch, type SearchOptions } from './tool-discovery.ts'

/** `skillsRoot` is the folder of skills, from the current one; default: .agents/skills. */
export type SkillDiscoveryConfig = StoreOptions & { readonly skillsRoot?: string }

export type SkillMatch = ScoredMatch & { readonly skill: SkillMetadata }

export type SkillDiscovery = Awaited<ReturnType<typeof createSkillDiscovery>>

/** Reads the skills below a folder; a missing folder has none. @throws Error when `dbPath` is not one of our files */
export async function createSkillDiscovery({ skillsRoot = '.agents/skills', ...config }: SkillDiscoveryConfig = {}) {
  const root = resolve(skillsRoot)
  const files = openTextFiles(root)
  const index = openStoredIndex<Entry & { readonly skill: SkillMetadata }>(config)
  const references = openReferences(root, { embedder: config.embedder })
  const state: { skills: readonly FoundSkill[]; notices: readonly string[] } = { skills: [], notices: [] }
  const named = (name: string) => state.skills.find(({ skill }) => skill.name === name)

  async function refresh(): Promise<void> {
    const { skills, notices } = await readSkills([{ root, path: '', source: 'skill', files }])
    const starts = skills.map(({ skill, body }) => ({ path: relative(root, skill.location), text: body }))
    const linked = linkedDocuments(files, starts)
    Object.assign(state, { skills, notices: [...notices, ...linked.notices] })
    await index.replace(skills.map((found) => ({ ...skillEntry(found), skill: found.skill })))
    await references.replace(linked.found, linked.again)
  }

  await refresh()
  return {
    refresh,
    async search(intent: string, { limit }: Pick<SearchOptions, 'limit'> = {}): Promise<SkillMatch[]> {
      return (await index.search(intent, { limit })).map((hit) => ({ skill: hit.entry.skill, ...matchOf(hit) }))
    },
    all: () => state.skills.map(({ skill }) => skill),
    /** Returns the text below the front matter. */
    getBody: async (name: string) => named(name)?.body,
    ...references.members((name: string) => named(name)?.skill.location),
    stats: () => ({
      totalSkills: state.skills.length,
      totalReferences: references.all().length,
      vectorSearchEnabled: config.embedder !== undefined,
    }),
    /** Names what was left out or is not as it should be, by its path. */
    notices: () => [...state.notices, ...index.notices()],
    async close(): Promise<void> {},
  }
}
