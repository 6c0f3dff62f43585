/** `run list | show`: what ran, and what its journal holds. */

import type { CliContext } from '../../../channels/terminal/context.ts'
import { withMemory } from '../../../host/integrity/recovery.ts'
import { resolveRun } from '../../../host/integrity/run-lookup.ts'
import { setUp } from '../../../host/setup/setup.ts'
import { count } from '../../../kit/count.ts'
import { isObject } from '../../../kit/json.ts'
import { visible } from '../../../kit/text.ts'
import type { JournalEntry } from '../../../memory/journal/journal-entry.ts'
import type { Json } from '../../args/flags.ts'
import type { ListFlags } from '../../routes/types.ts'

export async function list(this: CliContext, { limit, json = false }: ListFlags): Promise<void> {
  await withMemory(setUp(this), ({ journal }) => {
    const runs = journal.runs({ limit })
    if (json) return this.process.stdout.write(`${JSON.stringify(runs)}\n`)
    if (runs.length === 0) this.process.stderr.write('no runs yet\n')
    for (const { runId, started, code, model, channel, conversationId } of runs) {
      this.process.stdout.write(
        `${runId}  ${when(started)}  ${(code ?? 'unfinished').padEnd(15)}  ${channel.padEnd(6)}  ${model}  ${conversationId}\n`,
      )
    }
  })
}

export async function show(this: CliContext, { json = false }: Json, wanted: string): Promise<void> {
  await withMemory(setUp(this), (memory) => {
    const run = resolveRun(memory, wanted)
    const entries = memory.journal.events(run.runId)
    if (json) return this.process.stdout.write(`${JSON.stringify({ ...run, entries })}\n`)
    const { runId, conversationId, started, ended, code, message, digest } = run
    this.process.stdout.write(
      `${runId} of ${conversationId}\n${when(started)} to ${ended === null ? 'no end' : when(ended)}: ${code ?? 'unfinished'}${message ? ` (${message})` : ''}\n`,
    )
    for (const [at, entry] of entries.entries()) this.process.stdout.write(`${entryLine(entry, at + 1)}\n`)
    this.process.stdout.write(`digest ${digest ?? 'none'}\n`)
  })
}

/** `   3  intent    act call_1  file_read`: the number is the one that a divergence names. */
export function entryLine({ kind, type, body }: JournalEntry, number: number): string {
  return `${String(number).padStart(4)}  ${kind.padEnd(8)}  ${type}${isObject(body) ? details(body) : ''}`
}

function details(body: { readonly [key: string]: unknown }): string {
  const { id, name, by, call, outcome, ending, proposals } = body
  const words = [
    id,
    name,
    isObject(call) ? call.name : undefined,
    isObject(outcome) ? outcome.status : undefined,
    isObject(ending) ? ending.code : undefined,
    by === undefined ? undefined : `by ${by}`,
    Array.isArray(proposals) ? count(proposals.length, 'call') : undefined,
  ]
  return words.map((word) => (word === undefined ? '' : ` ${visible(String(word))}`)).join('')
}

const when = (at: number) => new Date(at).toISOString().slice(0, 19).replace('T', ' ')
