/** Finds skills (SKILL.md) and the documents that they link to by what somebody intends. */

import { relative, resolve } from 'node:path'
import { linkedDocuments } from '../../discovery/linked-documents.ts'
import { type FoundSkill, readSkills, type SkillMetadata, skillEntry } from '../../discovery/skill-files.ts'
import type { StoreOptions } from '../../discovery/stored-index.ts'
import { openReferences } from './rules-discovery.ts'
import { matchOf, type ScoredMatch, type SearchOptions } from './tool-discovery.ts'

/** `skillsRoot` is the folder of skills, from the current one; default: .agents/skills. */
export type SkillDiscoveryConfig = StoreOptions & { readonly skillsRoot?: string }

export type SkillMatch = ScoredMatch & { readonly skill: SkillMetadata }

export type SkillDiscovery = Awaited<ReturnType<typeof createSkillDiscovery>>

/** Reads the skills below a folder; a missing folder has none. @throws Error when `dbPath` is not one of our files */
export async function createSkillDiscovery({ skillsRoot = '.agents/skills', ...config }: SkillDiscoveryConfig = {}) {
  const root = resolve(skillsRoot)
  const state: { skills: readonly FoundSkill[] } = { skills: [] }
  const named = (name: string) => state.skills.find(({ skill }) => skill.name === name)
  const references = openReferences(root, config, (name) => named(name)?.skill.location)

  async function refresh(): Promise<void> {
    const { skills, notices } = await readSkills([{ root, path: '', source: 'skill', files: references.files }])
    const starts = skills.map(({ skill, body }) => ({ path: relative(root, skill.location), text: body }))
    const linked = linkedDocuments(references.files, starts)
    const entries = skills.map((found) => ({ ...skillEntry(found), skill: found.skill }))
    state.skills = skills
    await references.replace({ ...linked, notices: [...notices, ...linked.notices] }, entries)
  }

  await refresh()
  return {
    refresh,
    async search(intent: string, { limit }: Pick<SearchOptions, 'limit'> = {}): Promise<SkillMatch[]> {
      const hits = await references.find('skill', intent, limit)
      return hits.map((hit) => ({ skill: hit.entry.skill as SkillMetadata, ...matchOf(hit) }))
    },
    all: () => state.skills.map(({ skill }) => skill),
    /** Returns the text below the front matter. */
    getBody: async (name: string) => named(name)?.body,
    ...references.members,
    stats: () => ({ totalSkills: state.skills.length, ...references.stats() }),
  }
}
