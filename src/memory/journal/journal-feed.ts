/** Reads the journal entries of all runs in the order written, for readers that follow a home. */

import type { Json } from '../../kit/json.ts'
import type { Store } from '../store.ts'
import { homeRun } from './journal.ts'
import type { JournalEntry } from './journal-entry.ts'

/** `conversationId` and `channel` are null for a note of the home, which belongs to no run. */
export type FeedEntry = JournalEntry & { readonly runId: string; readonly conversationId: string | null; readonly channel: string | null }

export type FeedPage = {
  /** Entries with a higher number, and none above `through`. */
  readonly after: number
  readonly through: number
  readonly limit: number
  readonly conversationId?: string | undefined
  readonly runId?: string | undefined
}

export type JournalFeed = ReturnType<typeof createJournalFeed>

type FeedRow = Omit<FeedEntry, 'body'> & { readonly body: string }

const columns = `seq, journal.run_id AS runId, kind, type, at, body, conversation_id AS conversationId, channel
  FROM journal LEFT JOIN runs USING (run_id) WHERE seq > ? AND seq <= ?`

export function createJournalFeed(store: Store) {
  /** Separate queries, because a query for "all, or these" would read the whole journal. */
  function rows({ after, through, limit, conversationId, runId }: FeedPage): FeedRow[] {
    const among = (ids: string) => `AND journal.run_id IN (${ids} UNION ALL SELECT '${homeRun}')`
    const sql = (where: string) => `SELECT ${columns} ${where} ORDER BY seq LIMIT ?`
    if (runId !== undefined) return store.sql<FeedRow, (string | number)[]>(sql(among('SELECT ?'))).all(after, through, runId, limit)
    if (conversationId !== undefined)
      return store
        .sql<FeedRow, (string | number)[]>(sql(among('SELECT run_id FROM runs WHERE conversation_id = ?')))
        .all(after, through, conversationId, limit)
    return store.sql<FeedRow, number[]>(sql('')).all(after, through, limit)
  }

  return {
    /** Changes whenever another connection has committed. */
    version: () => store.sql<{ data_version: number }, []>('PRAGMA data_version').get()?.data_version ?? 0,
    /** Oldest first. With a conversation or a run, the notes of the home are included. @throws SQLiteError */
    page: (page: FeedPage) => rows(page).map(({ body, ...row }) => ({ ...row, body: parse(body) })),
  }
}

/** Text that is not JSON must not end the events of other runs. */
function parse(body: string): Json {
  try {
    return JSON.parse(body)
  } catch {
    return null
  }
}
