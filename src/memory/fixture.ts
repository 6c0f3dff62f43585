/** Provides tests and benchmarks with a memory in a new folder, and the events of a small run. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { AppendResult, Checkpoint, Ledger, ReceiptDraft } from '../receipts/contract.ts'
import type { Call, ExternalEvent, InternalEvent, Judgement, Part } from '../runtime/event.ts'
import type { Log, RunIdentity } from '../runtime/port.ts'
import { createSearch } from './conversations/search-turns.ts'
import { type Memory, openMemory } from './memory.ts'
import { createRecordWriter, type ReceiptPort, RecordFailure, type RecordWriterOptions } from './record-writer.ts'
import { recoverRuns } from './recovery/interrupted-runs.ts'
import { createPendingChanges, type FateOf } from './recovery/pending-changes.ts'

export type MemoryStage = {
  readonly folder: string
  readonly path: string
  readonly memory: Memory
  readonly clock: { now: number }
  remove(): void
}

/** 2026-05-12T12:00:00Z */
export const noon = 1_778_587_200_000

/** Its clock advances by a millisecond with each reading. */
export function createMemoryStage(folder = mkdtempSync(join(tmpdir(), 'braidclaw-memory-')), log: Log = () => {}): MemoryStage {
  const path = join(folder, 'home', 'memory.sqlite')
  const clock = { now: noon }
  const opened = openMemory({ path, log, now: () => clock.now++ })
  if (!opened.ok) throw new Error(opened.failure.message)
  const { memory } = opened
  const remove = () => {
    memory.close()
    rmSync(folder, { recursive: true, force: true })
  }
  return { folder, path, memory, clock, remove }
}

export function runOf(number: number, own: Partial<RunIdentity> = {}): RunIdentity {
  const ids = { runId: `run-${number}`, conversationId: 'conversation-1', turnId: `turn-${number}` }
  return { ...ids, provider: 'mock', model: 'mock-1', channel: 'cli', ...own }
}

export const judgement: Judgement = {
  verdict: 'allow',
  risk: 'low',
  rule: 'read',
  reason: 'inside the workspace',
  plan: 'plan-1',
  summary: 'file_read a.txt',
  writes: [],
}

export function callOf(id: string, input: Call['input'] = { path: 'a.txt' }): Call {
  return { id, name: 'file_read', input }
}

export function started(prompt: string): ExternalEvent {
  return { type: 'run.start', prompt, mode: 'structured', at: noon, model: 'mock-1' }
}

export function replied(parts: readonly Part[]): ExternalEvent {
  const proposals = parts.flatMap((part) => (part.type === 'call' ? [{ call: part, judgement }] : []))
  return { type: 'model.done', parts, proposals, usage: { inputTokens: 3, outputTokens: 5 }, model: 'mock-2' }
}

export function acting(call: Call, approval?: string): Extract<InternalEvent, { type: 'act' }> {
  return { type: 'act', id: call.id, call, judgement, ...(approval ? { approval } : {}) }
}

export function refusing(call: Call): Extract<InternalEvent, { type: 'deny' }> {
  return {
    type: 'deny',
    id: call.id,
    call,
    judgement: { ...judgement, verdict: 'deny', risk: 'high' },
    by: 'safety',
    reason: 'outside the workspace',
  }
}

export const finish: Extract<InternalEvent, { type: 'finish' }> = {
  type: 'finish',
  ending: { stop: 'end_turn', code: 'answered', message: 'done' },
}

/** Searches with the clock of the stage. */
export function searchIn({ memory, clock }: Pick<MemoryStage, 'memory' | 'clock'>): ReturnType<typeof createSearch> {
  return createSearch(memory.store, () => clock.now++)
}

/** Writes a record event by event, as most tests do. */
export function recordSteps(options: RecordWriterOptions) {
  const { write, ...writer } = createRecordWriter(options)
  return {
    ...writer,
    write,
    recover: (fateOf?: FateOf) => recoverRuns({ ...writer, write }, fateOf),
    applyPending: createPendingChanges(options.memory, writer).apply,
    /** Returns the event as journalled, with the receipt of a result in it. */
    external(run: RunIdentity, event: ExternalEvent): ExternalEvent {
      const { receipts } = write(run, [{ kind: 'external', event }])
      const receipt = event.type === 'tool.done' ? receipts.get(event.id) : undefined
      return event.type === 'tool.done' && receipt ? { ...event, outcome: { ...event.outcome, receipt } } : event
    },
    intent: (run: RunIdentity, act: Extract<InternalEvent, { type: 'act' }>) => void write(run, [{ kind: 'intent', act }]),
    denied: (run: RunIdentity, deny: Extract<InternalEvent, { type: 'deny' }>) =>
      write(run, [{ kind: 'denied', deny }]).receipts.get(deny.id),
    gate: (run: RunIdentity, gate: Extract<InternalEvent, { type: 'gate.open' }>, expires: number) =>
      write(run, [{ kind: 'gate', gate, expires }]).earlier.get(gate.id),
    /** Returns why the changes may not be applied. */
    applying: (run: RunIdentity, apply: Extract<InternalEvent, { type: 'apply' }>) =>
      write(run, [{ kind: 'apply', apply }]).unusable.get(apply.id),
    dropped: (run: RunIdentity, drop: Extract<InternalEvent, { type: 'drop' }>) =>
      write(run, [{ kind: 'dropped', drop }]).receipts.get(drop.id),
    finished: (run: RunIdentity, finish: Extract<InternalEvent, { type: 'finish' }>, digest: string) =>
      void write(run, [{ kind: 'finish', finish, digest }]),
  }
}

export type AppendReceipts = (drafts: readonly ReceiptDraft[], checkpoint: Checkpoint | undefined) => AppendResult

/** Wraps an append function as a receipts log; the ids are counted. */
export function receiptsBy(append: AppendReceipts): ReceiptPort {
  return {
    after: () => [],
    begin(checkpoint) {
      const drafts: ReceiptDraft[] = []
      const settled = append([], checkpoint)
      if (!settled.ok) return settled
      const { adopted, tornBytes } = settled
      const ledger: Ledger = {
        adopted,
        tornBytes,
        add: (draft) => `receipt-${(settled.checkpoint?.count ?? 0) + drafts.push(draft)}`,
        count: () => drafts.length,
        cut: (count) => void drafts.splice(count),
        disown: () => {},
        prove: () => ({ ok: true }),
        write: () => append(drafts, settled.checkpoint),
        close: () => {},
      }
      return { ok: true, ledger }
    },
  }
}

/** A receipts log that counts instead of hashing, and stores the drafts of each append. */
export function countingReceipts(): { readonly port: ReceiptPort; readonly drafts: ReceiptDraft[]; readonly appends: number[] } {
  const drafts: ReceiptDraft[] = []
  const appends: number[] = []
  const port = receiptsBy((wanted, checkpoint) => {
    drafts.push(...wanted)
    if (wanted.length > 0) appends.push(wanted.length)
    const before = checkpoint?.count ?? 0
    const count = before + wanted.length
    const receiptIds = wanted.map((_, at) => `receipt-${before + at + 1}`)
    return {
      ok: true,
      receiptIds,
      checkpoint: { logId: 'log', count, head: `h${count}`, mac: `m${count}`, size: count },
      adopted: 0,
      tornBytes: 0,
    }
  })
  return { port, drafts, appends }
}

/** Creates a record with its own memory, counted receipts and a stored log. */
export function createRecordStage() {
  const memoryStage = createMemoryStage()
  const counted = countingReceipts()
  const lines: string[] = []
  const recorder = (own: Partial<RecordWriterOptions> = {}) =>
    recordSteps({
      memory: memoryStage.memory,
      receipts: counted.port,
      log: (level, event) => lines.push(`${level} ${event}`),
      now: () => memoryStage.clock.now++,
      redact: (event) => event,
      ...own,
    })
  return { memoryStage, counted, lines, recorder }
}

/** A receipts log with a full disk. */
export const fullReceipts: AppendReceipts = () => ({ ok: false, failure: { code: 'full', message: 'the disk is full' } })

export function recordFailure(body: () => unknown): RecordFailure {
  try {
    body()
  } catch (error) {
    if (error instanceof RecordFailure) return error
    throw error
  }
  throw new Error('it did not fail')
}
