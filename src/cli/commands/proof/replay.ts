/**
 * Implements `replay`: it replays past runs from the journal, or shows what another policy would have decided. It runs, asks and fetches
 * nothing.
 */

import { streamLine } from '../../../channels/filter/json-render.ts'
import type { CliSetup } from '../../../channels/terminal/context.ts'
import { withMemory } from '../../../host/open/open-records.ts'
import { judgeBy } from '../../../host/records/integrity/other-policy.ts'
import { brokenChain, checkChain } from '../../../host/records/integrity/receipt-check.ts'
import { type RunAgain, readablePastRun, runAgain } from '../../../host/records/integrity/run-again.ts'
import { everyRun, resolveRun } from '../../../host/records/records-base.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { count } from '../../../kit/text.ts'
import type { RunRecord } from '../../../memory/journal/journal.ts'
import type { Memory } from '../../../memory/memory.ts'
import { type Rejudgement, rejudge } from '../../../runtime/replay/rejudge.ts'
import type { Replay } from '../../../runtime/replay/replay.ts'
import { command } from '../../args/command.ts'
import { jsonFlag, workspaceFlag } from '../../args/turn-flags.ts'
import { CliExit, exitCodes, usageError } from '../../exit.ts'
import { printOne, progressOn } from '../../print-list.ts'

/** Exit code 0 when every run matches its journal, 9 when one does not, 1 when one needs threads of a program; with `--policy` always 0. */
export const replay = command({
  flags: {
    policy: { type: 'text', about: 'What would this configuration have decided?' },
    all: { type: 'boolean', about: 'Every run of this home' },
    ...workspaceFlag,
    ...jsonFlag,
  },
  args: { run: { type: 'text', optional: true, about: 'Run id, or "last"' } },
  examples: [
    ['last', 'the latest run'],
    ['--all --policy stricter.toml', 'what would that policy have done?'],
  ],
  exits: [9],
  async run(context, { policy, all = false, workspace, json = false }, { run: wanted }) {
    if (all === (wanted !== undefined))
      throw usageError('name one run ("last" is the latest; see: braidclaw run list), or all of them with --all')
    const setup = loadSetup(context, { workspace })
    await withMemory(setup, async (memory) => {
      const runs = wanted === undefined ? memory.journal.runs({ limit: everyRun }).reverse() : [resolveRun(memory, wanted)]
      if (policy === undefined) return again({ setup, memory, runs, json, stream: !all })
      const judgeOf = await judgeBy(setup, policy, memory)
      for (const run of runs) {
        const past = readablePastRun(setup, memory, run.runId)
        const found = await rejudge({ ...past, ...judgeOf({ runId: run.runId, entries: past.entries }) })
        printOne(context, { json, value: { runId: run.runId, ...found }, text: `${policyLines(run.runId, found).join('\n')}\n` })
        if (context.outputClosed()) return
      }
    })
  },
})

type Again = {
  readonly setup: CliSetup
  readonly memory: Memory
  readonly runs: readonly RunRecord[]
  readonly json: boolean
  readonly stream: boolean
}

/** For one run it prints the events to stdout, one per line, the same bytes as originally; for several runs it prints only the results. */
async function again({ setup, memory, runs, json, stream }: Again): Promise<void> {
  const { stdout, stderr } = setup.context.process
  const seen = { altered: false, missing: false }
  for (const { runId } of runs) {
    const past = readablePastRun(setup, memory, runId)
    const found = runAgain(setup, memory, past)
    if (found.divergence) seen.altered = true
    else if (found.missing) seen.missing = true
    if (past.guessed) stderr.write(`warning: ${runId} does not say under which limits it ran; those of the configuration are taken\n`)
    if (json) stdout.write(`${JSON.stringify({ runId, ...found })}\n`)
    else {
      if (stream) for (const event of found.events) stdout.write(streamLine(event, found.context))
      stderr.write(`${(found.missing ? notRunAgain(runId, found) : replayLines(runId, found)).join('\n')}\n`)
    }
    if (setup.context.outputClosed()) return
  }
  if (seen.altered) throw new CliExit(exitCodes.integrity)
  if (seen.missing) throw new CliExit(exitCodes.error)
}

/** Formats the result of `replay` for a person. */
function replayLines(runId: string, { events, digest, ended, divergence }: Replay): string[] {
  if (divergence) return [`${runId}: ALTERED, or another program wrote it: ${divergence.message} (journal entry ${divergence.seq})`]
  return [`${runId}: ${ended ? 'the same' : 'the same up to where it was interrupted'}, ${count(events.length, 'event')}, digest ${digest}`]
}

/** Reports what is known without replaying, because the record does not contain the code of a program's own threads. */
function notRunAgain(runId: string, { missing = [], divergence }: RunAgain): string[] {
  const record = divergence
    ? `its record was ALTERED: ${divergence.message} (journal entry ${divergence.seq})`
    : 'its record is as it was written'
  return [
    `${runId}: not run again: ${missing.join('; ')}`,
    `  ${record}; to run it again, call replay({ runId, threads }) of the library with the threads of the program that ran it (docs/threads.md)`,
  ]
}

/** Lists only the calls and changes that the policy would judge differently, and the changes that are no longer kept. */
function policyLines(runId: string, { calls, changes = [], divergence, missing = [] }: Rejudgement): string[] {
  const changed = calls.filter((call) => call.changed)
  const head = `${runId}: ${changed.length} of ${count(calls.length, 'call')} would be judged otherwise`
  const lines = changed.map(
    ({ event, id, summary, before, after }) =>
      `  event ${event}, ${id}: ${before.verdict} by ${before.rule} → ${after.verdict} by ${after.rule} (${after.reason})\n    ${summary}`,
  )
  return [
    head,
    ...lines,
    ...changes.flatMap(changeLines),
    ...(missing.length > 0 ? [`  where it would have gone another way is not known: ${missing.join('; ')}`] : []),
    ...(divergence ? [`  first difference: "${divergence.before}" then, "${divergence.after}" now; what came after it is not known`] : []),
  ]
}

function changeLines({ event, id, summary, before, after, changed }: NonNullable<Rejudgement['changes']>[number]): string[] {
  const what = `  event ${event}, the changes of ${id}`
  if (after === undefined) return [`${what}: ${before.verdict} by ${before.rule} as recorded; they are no longer kept, so not judged again`]
  return changed
    ? [`${what}: ${before.verdict} by ${before.rule} → ${after.verdict} by ${after.rule} (${after.reason})\n    ${summary}`]
    : []
}

/**
 * Implements `rebuild`: it rebuilds all data derived from the journal, or compares that data with the journal. Exit code 0 when turns,
 * conversations, search index and receipts match the journal, 9 when one does not.
 */
export const rebuild = command({
  flags: { check: { type: 'boolean', about: 'Only compare; change nothing (exit 9 when something differs)' }, ...jsonFlag },
  examples: [['--check', 'prove that they are what the journal says']],
  exits: [9],
  async run(context, { check = false, json = false }) {
    const setup = loadSetup(context)
    const { stdout } = context.process
    const [rebuilding, checking] = [progressOn(context, 'rebuilding'), progressOn(context, 'checking')]
    await withMemory(setup, async (memory) => {
      const projections = await memory.projections()
      const made = check ? undefined : projections.rebuild(rebuilding)
      rebuilding(1)
      if (made?.ok === false) throw new CliExit(exitCodes.integrity, `error: nothing was rebuilt: ${made.message}`)
      const mended = check ? undefined : projections.files.rebuild()
      const found = projections.check(checking)
      checking(1)
      const files = projections.files.check()
      const { found: chain, joined } = checkChain({ setup, memory, deep: true })
      const receipts = chain.problems.map(brokenChain)[0] ?? joined[0]?.message
      const equal = found.equal && files.difference === undefined && receipts === undefined
      if (json)
        stdout.write(`${JSON.stringify({ ...found, equal, rebuilt_anew: !check, files, ...mended, receipts: receipts ?? 'agree' })}\n`)
      else {
        if (made?.ok) stdout.write(`rebuilt: ${count(made.turns, 'turn')} from the journal\n`)
        stdout.write(found.equal ? `equal: ${count(found.turns, 'turn')}, digest ${found.live}\n` : `differs: ${found.difference}\n`)
        for (const path of mended?.written ?? []) stdout.write(`rebuilt: ${path}\n`)
        for (const what of mended?.lost ?? []) stdout.write(`not brought back: ${what}\n`)
        if (files.difference !== undefined) stdout.write(`differs: ${files.difference}\n`)
        else if (files.files > 0) stdout.write(`${count(files.files, 'file')} of agents agree with the journal${later(files.untaken)}\n`)
        stdout.write(receipts === undefined ? 'receipts agree with the journal\n' : `receipts and journal disagree: ${receipts}\n`)
      }
      if (!equal) throw new CliExit(exitCodes.integrity)
    })
  },
})

function later(untaken: number): string {
  return untaken === 0 ? '' : `; the next turn takes in ${count(untaken, 'line')} of other programs`
}
