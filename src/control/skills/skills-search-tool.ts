/** Makes skills_search for the own runner: a tool that reads nothing but the library. */

import type { Tool } from '../../runtime/port.ts'
import type { SkillSearch } from './skill-search.ts'
import { mostHits, skillsAnswer, skillsSearchSpec } from './skills-answer.ts'

export function skillsSearchTool(search: Pick<SkillSearch, 'find'>): Tool {
  return {
    ...skillsSearchSpec,
    risk: 'low',
    timeoutMs: 10_000,
    idempotent: true,
    touches: () => [],
    async invoke({ query }) {
      const text = typeof query === 'string' ? query : ''
      const hits = search.find(text, text.trim() === '' ? 1000 : mostHits)
      return { success: true, output: skillsAnswer(text, hits), metadata: { hits: hits.length } }
    },
  }
}
