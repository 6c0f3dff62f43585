/** Searches the full texts of skills with SQLite's FTS5 in memory; no character of a query has a special meaning. */

import { Database } from 'bun:sqlite'
import { wordsOf } from './invoke-pattern.ts'
import type { Skill } from './skill.ts'

export type SkillSearch = {
  /** The best first. An empty query finds every skill. */
  find(query: string, limit: number): readonly Skill[]
  close(): void
}

const maxWords = 32

export function openSkillSearch(skills: readonly Skill[]): SkillSearch {
  const database = new Database(':memory:')
  database.run("CREATE VIRTUAL TABLE skills USING fts5(name, summary, invoke, content, tokenize = 'porter unicode61')")
  const insert = database.prepare('INSERT INTO skills (rowid, name, summary, invoke, content) VALUES (?, ?, ?, ?, ?)')
  for (const [index, { name, summary, invoke, content }] of skills.entries())
    insert.run(index + 1, name, summary, invoke.map(({ source }) => source).join(' '), content)
  const select = database.prepare<{ readonly rowid: number }, [string, number]>(
    'SELECT rowid FROM skills WHERE skills MATCH ? ORDER BY bm25(skills, 10, 5, 3, 1), rowid LIMIT ?',
  )

  function found(query: string, limit: number): readonly Skill[] {
    const words = wordsOf(query).slice(0, maxWords)
    if (words.length === 0) return query.trim() === '' ? skills.slice(0, limit) : []
    const rows = select.all(words.map((word) => `"${word}"*`).join(' OR '), limit)
    return rows.flatMap(({ rowid }) => skills[rowid - 1] ?? [])
  }

  return {
    find(query, limit) {
      const named = skills.filter(({ name }) => name.toLowerCase() === query.trim().toLowerCase())
      return [...named, ...found(query, limit).filter((skill) => !named.includes(skill))].slice(0, limit)
    },
    close: () => database.close(),
  }
}
