/** Implements `run list | show | report`: it lists runs, prints their journal entries, and reports on those that worked towards checks. */

import { proofLines } from '../../../channels/terminal/screen/usage-line.ts'
import { withMemory } from '../../../host/open/open-records.ts'
import { marksOfRun } from '../../../host/records/claims/proof-of-run.ts'
import { resolveRun } from '../../../host/records/records-base.ts'
import { htmlOf, markdownOf, reportOf } from '../../../host/run/wiggum/report.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { openChanges } from '../../../host/transactions/open-changes.ts'
import { changeTexts, isObject } from '../../../kit/json.ts'
import { count, visible } from '../../../kit/text.ts'
import type { JournalEntry } from '../../../memory/journal/journal-entry.ts'
import { command } from '../../args/command.ts'
import { jsonFlag, limitOf20 } from '../../args/turn-flags.ts'
import { printList, printOne } from '../../print-list.ts'

export const list = command({
  flags: { ...limitOf20, ...jsonFlag },
  examples: [
    ['', 'the latest twenty'],
    ['--limit 5', 'the latest five'],
  ],
  exits: [9],
  async run(context, { limit, json = false }) {
    await withMemory(loadSetup(context), ({ journal }) => {
      const runs = journal.runs({ limit })
      const lines = runs.map(
        ({ runId, started, code, model, channel, conversationId }) =>
          `${runId}  ${when(started)}  ${(code ?? 'unfinished').padEnd(15)}  ${channel.padEnd(6)}  ${model}  ${conversationId}`,
      )
      printList(context, { items: runs, json, lines, none: 'no runs yet' })
    })
  },
})

export const show = command({
  flags: jsonFlag,
  args: { run: { type: 'text', about: 'Run id, or "last"' } },
  examples: [
    ['last', 'the latest run'],
    ['run_4q2fqk8fd4spk980 --json', 'one of "run list", for scripts'],
  ],
  exits: [9],
  async run(context, { json = false }, { run: wantedRun }) {
    const setup = loadSetup(context)
    await withMemory(setup, async (memory) => {
      const run = resolveRun(memory, wantedRun)
      const entries = memory.journal.events(run.runId)
      const proof = await marksOfRun({ ...run, setup, journal: memory.journal })
      const { runId, conversationId, started, ended, code, message, digest } = run
      const end = `${ended === null ? 'no end' : when(ended)}: ${code ?? 'unfinished'}${message ? ` (${message})` : ''}`
      const head = [`${runId} of ${conversationId}`, `${when(started)} to ${end}`]
      const lines = [...head, ...entries.map((entry, at) => entryLine(entry, at + 1)), ...proofLines(proof), `digest ${digest ?? 'none'}`]
      const value = { ...run, entries, proof: proof.length > 0 ? proof : undefined }
      printOne(context, { json, value, text: lines.map((line) => `${line}\n`).join('') })
    })
  },
})

export const report = command({
  flags: { html: { type: 'boolean', about: 'Print one HTML page' }, ...jsonFlag },
  args: { run: { type: 'text', about: 'Run id, or "last"' } },
  examples: [
    ['last', 'task, checks, each iteration, how it ended and what to do next, as Markdown'],
    ['last --html > night.html', 'a page'],
  ],
  exits: [9],
  async run(context, { html = false, json = false }, { run: ref }) {
    const setup = loadSetup(context)
    await withMemory(setup, async (memory) => {
      const store = openChanges(setup, setup.config.workspaceDir)
      const found = changeTexts(reportOf({ setup, memory, store, ref }), setup.redactor.text)
      context.process.stdout.write(json ? `${JSON.stringify(found)}\n` : html ? htmlOf(found) : markdownOf(found))
    })
  },
})

/** Formats `   3  intent    act call_1  file_read`: the number is the one that a divergence names. */
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
