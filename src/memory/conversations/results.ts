/** Keeps whole results that were too long for a request, and finds them and all others again for result_read. */

import { isObject, parseJson } from '../../kit/json.ts'
import { sha256 } from '../../kit/sha256.ts'
import type { PictureRef } from '../../runtime/event.ts'
import type { Picture } from '../../runtime/port.ts'
import { resultId, resultIdParts, shortInput } from '../../runtime/request/turn-messages.ts'
import type { Store } from '../store.ts'

export type WholeResult = { readonly runId: string; readonly callId: string; readonly conversationId: string; readonly text: string }

export type FoundResult = { readonly ok: true; readonly text: string } | { readonly ok: false; readonly message: string }

type PicturesCopy = { readonly from: string; readonly to: string; readonly digests: readonly string[] }

export type Results = ReturnType<typeof createResults>

/** A list of more would not help a model, and the query stays fast in a long conversation. */
const mostListed = 1_000

type PackedResult = { readonly packed: Uint8Array; readonly digest: string | null }

/** Removes the oldest results of the home. */
function removeBeyond(store: Store, mostBytes: number): void {
  const rows = store
    .sql<{ rowid: number; size: number }, []>('SELECT rowid, length(packed) AS size FROM results ORDER BY at DESC, rowid DESC')
    .all()
  let sum = 0
  for (const { rowid, size } of rows) {
    sum += size
    if (sum > mostBytes) store.run('DELETE FROM results WHERE rowid = ?', rowid)
  }
}

export function createResults(store: Store) {
  const followed = new Map<string, Known>()
  return {
    /** Stores a result, and removes the oldest ones of the home beyond `mostBytes`, as they are stored. On disk when it returns. */
    keep({ runId, callId, conversationId, text }: WholeResult, at: number, mostBytes: number): void {
      const packed = Bun.zstdCompressSync(text)
      store.write(() => {
        const insert = 'INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?, ?, ?)'
        store.run(insert, runId, callId, conversationId, at, Buffer.byteLength(text), packed)
        removeBeyond(store, mostBytes)
      })
    },
    /** Returns a result of this conversation by its id: the whole of it, or what the model saw of it after the whole was removed. */
    find(conversationId: string, id: string): FoundResult {
      const parts = resultIdParts(id)
      for (const runId of parts ? runsOf(store, conversationId, parts.run) : []) {
        const found = parts && resultIn(store, { runId, callId: parts.callId }, id)
        if (found) return found
      }
      return { ok: false, message: unknown(id) }
    },
    /** Keeps the bytes of a picture, which the journal only names; with `keep` of results, and removed as they are. */
    keepPicture(conversationId: string, { type, base64 }: Picture, at: number, mostBytes: number): PictureRef {
      const digest = sha256(Buffer.from(base64, 'base64'))
      this.keep({ runId: conversationId, callId: digest, conversationId, text: base64 }, at, mostBytes)
      return { type, sha256: digest }
    },
    /** Copies the pictures of these digests that a conversation still has to another; they count, and are removed, as others are. */
    copyPictures({ from, to, digests }: PicturesCopy, at: number, mostBytes: number): void {
      const copy = `INSERT OR IGNORE INTO results SELECT ?2, call_id, ?2, ?3, bytes, packed FROM results
        WHERE run_id = ?1 AND call_id IN (SELECT value FROM json_each(?4))`
      store.write(() => {
        store.run(copy, from, to, at, JSON.stringify(digests))
        removeBeyond(store, mostBytes)
      })
    },
    /** Returns a picture of the conversation; undefined when it was removed, or is not the one that was recorded. */
    picture(conversationId: string, { type, sha256: digest }: PictureRef): Picture | undefined {
      const row = whole(store, { runId: conversationId, callId: digest })
      const base64 = row ? new TextDecoder().decode(Bun.zstdDecompressSync(row.packed)) : ''
      return row && sha256(Buffer.from(base64, 'base64')) === digest ? { type, base64 } : undefined
    },
    /** Returns a line for each call of the conversation that ran, the newest first: id, tool, arguments. */
    list(conversationId: string): string {
      const select = `SELECT run_id AS runId, body ->> '$.id' AS callId, body ->> '$.call.name' AS name, body ->> '$.call.input' AS input FROM journal
        WHERE type = 'act' AND kind = 'intent' AND run_id IN (SELECT run_id FROM runs WHERE conversation_id = ?) ORDER BY seq DESC LIMIT ${mostListed}`
      const calls = store.sql<{ runId: string; callId: string; name: string; input: string }, [string]>(select).all(conversationId)
      return calls.map(({ runId, callId, name, input }) => `${resultId(runId, callId)} ${name} ${shortInput(parseJson(input))}`).join('\n')
    },
    /** Returns the files that calls of the conversation read, wrote or were shown, with the digest of each as it was then, the latest. */
    seenFiles(conversationId: string): ReadonlyMap<string, string> {
      const known = followed.get(conversationId) ?? { until: 0, files: new Map<string, Seen>() }
      followed.set(conversationId, known)
      return new Map([...follow(store, conversationId, known)].map(([path, { sha256 }]) => [path, sha256]))
    },
    /** Returns the text of a file as the conversation last knew it, if its calls and results hold it. */
    seenText(conversationId: string, path: string): string | undefined {
      return follow(store, conversationId, { until: 0, files: new Map() }, path).get(path)?.text
    },
    /** Returns how many results are stored, and how many bytes they take. */
    use() {
      const select = 'SELECT count(*) AS count, coalesce(sum(length(packed)), 0) AS bytes FROM results'
      return store.sql<{ count: number; bytes: number }, []>(select).get() ?? { count: 0, bytes: 0 }
    },
  }
}

/** Holds the files that the calls up to the journal entry `until` showed. */
type Known = { until: number; readonly files: Map<string, Seen> }
type Seen = { readonly path: string; readonly sha256: string; readonly text?: string }

/**
 * Adds to `known` what the conversation knows of files from later calls. A call that showed or changed a part of a file (`was` is its
 * digest before) counts only where nothing else is known. @param path the file whose text is put together
 */
function follow(store: Store, conversationId: string, known: Known, path?: string): ReadonlyMap<string, Seen> {
  const input = `(SELECT body -> '$.call.input' FROM journal AS act WHERE act.run_id = journal.run_id AND act.type = 'act'
    AND act.body ->> '$.id' = journal.body ->> '$.id')`
  const select = `SELECT body -> '$.outcome.metadata.seen' AS seen, body -> '$.outcome.metadata.whole' IS NOT NULL AS isCut, seq,
    ${path === undefined ? "'', NULL" : `body ->> '$.outcome.output', ${input}`} FROM journal
    WHERE type = 'tool.done' AND seen IS NOT NULL AND seq > ? AND run_id IN (SELECT run_id FROM runs WHERE conversation_id = ?) ORDER BY seq`
  type Row = [seen: string, isCut: number, seq: number, output: string, given: string | null]
  const rows = store.sql<never, [number, string]>(select).values(known.until, conversationId) as Row[]
  for (const [seen, isCut, seq, output, given] of rows) {
    known.until = seq
    for (const file of filesIn(parseJson(seen))) {
      const before = known.files.get(file.path)
      if (before !== undefined && (file.was ?? (isCut ? file.sha256 : before.sha256)) !== before.sha256) continue
      const texts = file.path === path ? textsOf(output, given === null ? {} : parseJson(given), before?.text) : []
      known.files.set(file.path, { ...file, text: texts.find((text) => sha256(text) === file.sha256) })
    }
  }
  return known.files
}

function filesIn(seen: unknown): { readonly path: string; readonly sha256: string; readonly was?: string }[] {
  return (Array.isArray(seen) ? seen : []).flatMap((file) => {
    if (!isObject(file) || typeof file.path !== 'string' || typeof file.sha256 !== 'string') return []
    return [{ path: file.path, sha256: file.sha256, ...(typeof file.was === 'string' ? { was: file.was } : {}) }]
  })
}

/** Returns what the content of a file after a call may be: what it returned, what it wrote, or what was there with its edit. */
function textsOf(output: string, input: unknown, before: string | undefined): readonly string[] {
  const { content, old, new: put } = isObject(input) ? input : {}
  const edited = typeof old === 'string' && typeof put === 'string' ? before?.replace(old, () => put) : before
  return [output, content, edited].filter((text) => typeof text === 'string')
}

type CallPlace = { readonly runId: string; readonly callId: string }

/** Returns the runs of a turn to look in, the named one first: a run that continues a turn names results of earlier runs by its own id. */
function runsOf(store: Store, conversationId: string, end: string): readonly string[] {
  const named = 'SELECT run_id AS runId FROM runs WHERE conversation_id = ? AND substr(run_id, -length(?)) = ? ORDER BY rowid DESC'
  const before = "SELECT body ->> '$.continues.run' AS runId FROM journal WHERE run_id = ? AND type = 'run.start'"
  const found = new Set<string>()
  let next = store.sql<{ runId: string | null }, string[]>(named).get(conversationId, end, end)?.runId
  while (next && !found.has(next)) {
    found.add(next)
    next = store.sql<{ runId: string | null }, string[]>(before).get(next)?.runId
  }
  return [...found]
}

function whole(store: Store, { runId, callId }: CallPlace): PackedResult | null {
  const select = `SELECT packed, (SELECT body ->> '$.outcome.metadata.whole.sha256' FROM journal
    WHERE journal.run_id = results.run_id AND type IN ('tool.done', 'tool.changed') AND body ->> '$.id' = results.call_id ORDER BY seq LIMIT 1) AS digest
    FROM results WHERE run_id = ? AND call_id = ?`
  return store.sql<PackedResult, [string, string]>(select).get(runId, callId)
}

/** Returns what the model saw, as the turn has it. */
function shown(store: Store, { runId, callId }: CallPlace): string | undefined {
  const select = "SELECT content FROM turns WHERE run_id = ? AND role = 'tool' AND tool_results ->> '$[0].call_id' = ? ORDER BY id DESC"
  return store.sql<{ content: string }, [string, string]>(select).get(runId, callId)?.content
}

function resultIn(store: Store, place: CallPlace, id: string): FoundResult | undefined {
  const row = whole(store, place)
  if (!row) {
    const text = shown(store, place)
    return text === undefined ? undefined : { ok: true, text }
  }
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(Bun.zstdDecompressSync(row.packed))
  if (row.digest === null || row.digest === sha256(text)) return { ok: true, text }
  return { ok: false, message: `the stored result ${JSON.stringify(id)} was altered after it was recorded; call the tool again` }
}

function unknown(id: string): string {
  return `this conversation has no result ${JSON.stringify(id)}; ids look like ${JSON.stringify(resultId('a1b2c3', 'call_1'))} and stand in the notice of a result that was cut or left out`
}
