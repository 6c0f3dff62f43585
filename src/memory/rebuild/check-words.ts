/** Compares the word index with the texts of the turns: by its own check first, and word by word only if that fails. */

import { catchUp } from '../conversations/word-index.ts'
import type { Store } from '../store.ts'

/** @returns a description of the first word that differs. @throws SQLiteError for file errors */
export function differenceInWords(store: Store): string | undefined {
  return store.write(() => {
    catchUp(store)
    return isSound(store) ? undefined : firstWrongWord(store)
  })
}

function isSound(store: Store): boolean {
  try {
    // Rank 1 compares the index with the table of texts.
    store.script(`INSERT INTO turns_fts(turns_fts, rank) VALUES ('integrity-check', 1)`)
    return true
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'SQLITE_CORRUPT_VTAB') return false
    throw error
  }
}

const terms = `SELECT term, doc, "offset" FROM temp.terms`
const rightTerms = `SELECT term, doc, "offset" FROM temp.right_terms`

function firstWrongWord(store: Store): string {
  store.script(`
    CREATE VIRTUAL TABLE temp.right_fts USING fts5(content, content='', tokenize='porter unicode61 remove_diacritics 2');
    INSERT INTO temp.right_fts(rowid, content) SELECT id, content FROM turns;
    CREATE VIRTUAL TABLE temp.terms USING fts5vocab(main, turns_fts, instance);
    CREATE VIRTUAL TABLE temp.right_terms USING fts5vocab(temp, right_fts, instance)`)
  try {
    const planted = first(store, `${terms} EXCEPT ${rightTerms}`)
    if (planted) return `${planted} is not in the journal`
    const lost = first(store, `${rightTerms} EXCEPT ${terms}`)
    return lost ? `${lost} is missing` : 'the index of words is damaged'
  } finally {
    store.script('DROP TABLE temp.terms; DROP TABLE temp.right_terms; DROP TABLE temp.right_fts')
  }
}

function first(store: Store, difference: string): string | undefined {
  const found = store.sql<{ term: string; seq: number | null }, []>(
    `SELECT term, journal_seq AS seq FROM (${difference} LIMIT 1) AS one LEFT JOIN turns ON turns.id = one.doc`,
  )
  const row = found.get()
  return row ? `the word "${row.term}" in the index (journal entry ${row.seq ?? 'none'})` : undefined
}
