/**
 * Makes a home with a long past: `bun bench/many-receipts.ts HOME [RECEIPTS]`, a million unless told otherwise, with their journal, turns, seals and
 * checkpoint, so that `receipt verify --deep` and `rebuild --check` call it valid. The runs are written, not run: `replay` does not know them.
 */

import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { acting, callOf, finish, judgement, runOf, started } from '../src/memory/fixture.ts'
import { openMemory } from '../src/memory/memory.ts'
import { createRecordWriter, type RecordWriter } from '../src/memory/record-writer.ts'
import { createSealer } from '../src/receipts/key.ts'
import { createLedgers } from '../src/receipts/ledger.ts'
import type { RecordEntry, RunIdentity } from '../src/runtime/port.ts'

const callsOfRun = 50
const runsOfCommit = 100

/** One after another, some thousand receipts in each transaction. */
export function makeHome(home: string, receipts: number): void {
  const state = join(home, '.braidclaw')
  mkdirSync(state, { recursive: true, mode: 0o700 })
  const paths = { log: join(state, 'tool_receipts.log'), head: join(state, 'receipts.head'), key: join(state, 'receipt.key') }
  const opened = openMemory({ path: join(state, 'memory.sqlite'), log: () => {}, now: Date.now })
  if (!opened.ok) throw new Error(opened.failure.message)
  const { memory } = opened
  const port = { begin: createLedgers({ paths }), after: () => [], seal: createSealer(paths) }
  const record = createRecordWriter({ memory, receipts: port, log: () => {}, now: Date.now, redact: (event) => event })
  const runs = Math.ceil(receipts / callsOfRun)
  for (let run = 0; run < runs; run += runsOfCommit)
    record.transaction(() => {
      for (let number = run; number < Math.min(runs, run + runsOfCommit); number += 1)
        writeRun(record, number, Math.min(callsOfRun, receipts - number * callsOfRun))
    })
  memory.close()
}

function writeRun(record: RecordWriter, number: number, count: number): void {
  const run: RunIdentity = runOf(number, { conversationId: `conversation_${Math.floor(number / 5)}` })
  const calls = Array.from({ length: count }, (_, at) => callOf(`call_${number}_${at}`, { path: `file ${at} of run ${number}` }))
  const reply = { type: 'model.done' as const, usage: { inputTokens: 3, outputTokens: 5 }, model: 'mock-1' }
  const parts = calls.map((call) => ({ type: 'call' as const, ...call }))
  const entries: RecordEntry[] = [
    { kind: 'external', event: started(`question ${number}`) },
    { kind: 'external', event: { ...reply, parts, proposals: calls.map((call) => ({ call, judgement })) } },
    ...calls.flatMap((call): RecordEntry[] => [
      { kind: 'intent', act: acting(call) },
      { kind: 'external', event: { type: 'tool.done', id: call.id, outcome: { status: 'allowed', output: `what ${call.id} said` } } },
    ]),
    { kind: 'external', event: { ...reply, parts: [{ type: 'text', text: `answer ${number}` }], proposals: [] } },
    { kind: 'finish', finish, digest: '0'.repeat(64) },
  ]
  record.write(run, entries)
}

if (import.meta.main) {
  const [home, receipts = '1000000'] = process.argv.slice(2)
  if (home === undefined) throw new Error('usage: bun bench/many-receipts.ts HOME [RECEIPTS]')
  makeHome(home, Number(receipts))
}
