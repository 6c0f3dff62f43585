/** Seals the end of a run when it is written, and later checks the journal against the seal. */

import { isObject, parseJson } from '../../kit/json.ts'
import type { Seal } from '../../receipts/contract.ts'
import type { RunIdentity } from '../../runtime/port.ts'
import type { Store } from '../store.ts'
import { type AlteredEntry, copiedTurn, firstAltered, type StoredEntry } from './journal-entry.ts'

type EndedRun = RunIdentity & {
  readonly ended: number | null
  readonly code: string | null
  readonly message: string | null
  readonly lastDigest: string | null
  /** The seal, and the number of journal entries it covers; null in runs of older versions and without receipts. */
  readonly seal: string | null
  readonly entries: number | null
}

const endColumns = `runs.run_id AS runId, conversation_id AS conversationId, turn_id AS turnId, provider, model, channel, ended, code, message,
  runs.digest AS lastDigest, seal, entries`

/** Returns the first altered entry of a run, or an error in its end. Without `seal` it does not use the key. */
export function alteredRun(store: Store, runId: string, seal: Seal | undefined): AlteredEntry | undefined {
  // One query, so that the row and the journal are from one moment.
  const rows = store
    .sql<Omit<StoredEntry, 'seq'> & EndedRun & { readonly seq: number | null }, [string]>(
      `SELECT seq, kind, type, at, body, journal.digest AS digest, ${endColumns}
       FROM runs LEFT JOIN journal ON journal.run_id = runs.run_id WHERE runs.run_id = ? ORDER BY seq`,
    )
    .all(runId)
  const [run] = rows
  if (run === undefined) return undefined
  const entries = rows.flatMap(({ seq, kind, type, at, body, digest }) => (seq === null ? [] : [{ seq, kind, type, at, body, digest }]))
  const altered = firstAltered(runId, entries)
  if (altered) return altered
  const message = wrongEnd(run, entries) ?? wrongSeal(run, entries, seal)
  if (message === undefined || (entries.length === 0 && owesResult(store, runId))) return undefined
  return { event: Math.max(1, entries.length), seq: entries.at(-1)?.seq ?? 0, message }
}

/** After a clear, the row of a dead run stays until its last result has a receipt. */
function owesResult(store: Store, runId: string): boolean {
  return store.sql<{ one: number }, [string]>('SELECT 1 AS one FROM intents WHERE run_id = ? LIMIT 1').get(runId) !== null
}

function wrongEnd({ ended, seal, code, message, lastDigest }: EndedRun, entries: readonly StoredEntry[]): string | undefined {
  const recorded = entries.flatMap((entry) => endInJournal(entry) ?? []).at(-1)
  if (ended === null) {
    return recorded === undefined && seal === null ? undefined : 'the run has ended, but the list of runs says that it has not'
  }
  if (recorded === undefined) return 'the run has ended, but its end is gone from the journal'
  if (recorded.code !== code) return `the journal says that the run ended "${recorded.code}", the list of runs says "${code}"`
  if (recorded.message !== message) return 'the list of runs tells its end in other words than the journal'
  return recorded.digest === lastDigest ? undefined : 'the list of runs has another digest of its events than the journal'
}

function endInJournal({ kind, type, body }: StoredEntry): { code: string; message: string; digest: string | null } | undefined {
  if (kind !== 'note' || ![copiedTurn, 'finish', 'interrupted'].includes(type)) return undefined
  const recorded = parseJson(body)
  if (!isObject(recorded)) return undefined
  if (type === copiedTurn) return { code: 'answered', message: '', digest: null }
  if (type === 'interrupted') return { code: 'error', message: textOf(recorded.message), digest: null }
  const ending = isObject(recorded.ending) ? recorded.ending : {}
  return {
    code: textOf(ending.code),
    message: textOf(ending.message),
    digest: typeof recorded.digest === 'string' ? recorded.digest : null,
  }
}

/** Returns the text as the database stores it. */
const textOf = (value: unknown): string => (typeof value === 'string' ? value.toWellFormed() : '')

function wrongSeal(run: EndedRun, entries: readonly StoredEntry[], seal: Seal | undefined): string | undefined {
  if (run.seal === null) return undefined
  const digest = entries.at(-1)?.digest ?? null
  if (entries.length !== run.entries)
    return `the journal of the run has ${entries.length} entries, but it had ${run.entries} when its end was sealed`
  if (digest === null) return 'the digests of its entries are gone, although its end was sealed'
  if (seal === undefined) return undefined
  const right = seal(sealedText(run, entries.length, digest))
  if (right === undefined) return 'the seal of its end cannot be checked: the receipt key is missing or cannot be read'
  return right === run.seal ? undefined : 'the seal of its end is not of this run'
}

function sealedText({ runId, conversationId, turnId, provider, model, channel }: RunIdentity, entries: number, digest: string): string {
  return JSON.stringify(['run', runId, conversationId, turnId, provider, model, channel, entries, digest])
}

/** Seals the end that was just written, unless it has a seal. */
export function sealEnd(store: Store, runId: string, seal: Seal): void {
  const [last] = lastEntries(store, runId)
  const run = endOf(store, runId)
  if (run && run.seal === null && last?.digest) put(store, run, { entries: last.number, digest: last.digest, seal })
}

/** A result may come after the end. Seals again only if the earlier entries match the old seal. */
export function sealAgain(store: Store, runId: string, seal: Seal): void {
  const run = endOf(store, runId)
  if (run === undefined || run.seal === null) return
  const [last, before] = lastEntries(store, runId)
  if (!last?.digest || !before?.digest || before.number !== run.entries) return
  if (seal(sealedText(run, before.number, before.digest)) === run.seal) put(store, run, { entries: last.number, digest: last.digest, seal })
}

function endOf(store: Store, runId: string): EndedRun | undefined {
  return store.sql<EndedRun, [string]>(`SELECT ${endColumns} FROM runs WHERE run_id = ? AND ended IS NOT NULL`).get(runId) ?? undefined
}

/** Returns the last two entries, the last one first; `number` counts the entries of the run. */
function lastEntries(store: Store, runId: string): { number: number; digest: string | null }[] {
  const { n } = store.sql<{ n: number }, [string]>('SELECT count(*) AS n FROM journal WHERE run_id = ?').get(runId) ?? { n: 0 }
  const last = store.sql<{ digest: string | null }, [string]>('SELECT digest FROM journal WHERE run_id = ? ORDER BY seq DESC LIMIT 2')
  return last.all(runId).map(({ digest }, at) => ({ number: n - at, digest }))
}

type NewSeal = { readonly entries: number; readonly digest: string; readonly seal: Seal }

function put(store: Store, run: EndedRun, { entries, digest, seal }: NewSeal): void {
  const sealed = seal(sealedText(run, entries, digest))
  if (sealed === undefined) return
  store.run('UPDATE runs SET seal = ?, entries = ? WHERE run_id = ?', sealed, entries, run.runId)
}
