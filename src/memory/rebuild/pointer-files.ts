/** Says which conversation the pointer files of the agents should name, compares them, and writes them anew. */

import { join } from 'node:path'
import { forgetPointer, readPointer, writePointer } from '../agent-files/conversation-pointer.ts'
import { folderOfKey } from '../journal/runs/run-agent.ts'
import type { Store } from '../store.ts'

/** `due` is undefined after a reset: then there is no such file. */
export type Pointer = { readonly path: string; readonly due: string | undefined }

/** Returns the pointer files of all agents. */
export function allPointers(store: Store): readonly Pointer[] {
  const keys = store.sql<{ key: string }, []>("SELECT DISTINCT agent ->> 'folder' AS key FROM runs WHERE agent IS NOT NULL")
  return keys.all().flatMap(({ key }) => [...pointersOf(store, key)])
}

/** Yields for each pointer file the conversation it should name: the conversation of the last run, unless the session was reset since. */
export function* pointersOf(store: Store, key: string): Generator<Pointer> {
  const rows = store.sql<{ pointer: string; runId: string; conversationId: string; at: number }, [string]>(
    `SELECT agent ->> 'pointer' AS pointer, run_id AS runId, conversation_id AS conversationId, max(rowid) AS at
     FROM runs WHERE agent ->> 'folder' = ? GROUP BY pointer`,
  )
  const first = store.sql<{ seq: number | null }, [string]>('SELECT min(seq) AS seq FROM journal WHERE run_id = ?')
  const reset = store.sql<{ since: number }, [string, string]>('SELECT since FROM agent_files WHERE folder = ? AND file = ?')
  for (const { pointer, runId, conversationId } of rows.all(key)) {
    const isReset = (reset.get(key, pointer)?.since ?? -1) >= (first.get(runId)?.seq ?? 0)
    yield { path: join(folderOfKey(store.path, key), 'sessions', pointer), due: isReset ? undefined : conversationId }
  }
}

export function pointerDifference(store: Store, key: string): string | undefined {
  const wrong = [...pointersOf(store, key)].find(({ path, due }) => safePointer(path) !== due)
  return wrong && `${wrong.path}: it does not name the conversation ${wrong.due ?? 'of a session that was reset'}`
}

function safePointer(path: string): string | undefined {
  try {
    return readPointer(path)
  } catch {
    return 'unreadable'
  }
}

export function writePointers(store: Store, key: string): readonly string[] {
  return [...pointersOf(store, key)].flatMap(({ path, due }) => {
    if (safePointer(path) === due) return []
    if (due === undefined) forgetPointer(path)
    else writePointer(path, due)
    return [path]
  })
}
