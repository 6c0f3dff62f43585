/**
 * Implements `replay`: it replays past runs from the journal, or shows what another policy would have decided. It runs, asks and fetches
 * nothing.
 */

import type { CliSetup } from '../../../channels/terminal/context.ts'
import { withMemory } from '../../../host/open/open-records.ts'
import { judgeBy } from '../../../host/records/integrity/other-policy.ts'
import { everyRun, resolveRun } from '../../../host/records/integrity/run-lookup.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import type { RunRecord } from '../../../memory/journal/journal.ts'
import type { Memory } from '../../../memory/memory.ts'
import type { Arguments, Command, Flags } from '../../args/command.ts'
import { jsonFlag, workspaceFlag } from '../../args/flags.ts'
import { CliExit, exitCodes } from '../../exit.ts'
import { notRunAgain, policyLines, replayLines } from './replay-report.ts'

const flags = {
  policy: { type: 'text', about: 'What would this configuration have decided?' },
  all: { type: 'boolean', about: 'Every run of this home' },
  ...workspaceFlag,
  ...jsonFlag,
} as const satisfies Flags
const args = { run: { type: 'text', optional: true, about: 'Run id, or "last"' } } as const satisfies Arguments

/** Exit code 0 when every run matches its journal, 9 when one does not, 1 when one needs threads of a program; with `--policy` always 0. */
export const replay = {
  flags: flags,
  args: args,
  examples: [
    ['last', 'the latest run'],
    ['--all --policy stricter.toml', 'what would that policy have done?'],
  ],
  exits: [9],
  async run(context, { policy, all = false, workspace, json = false }, { run: wanted }) {
    if (all === (wanted !== undefined))
      throw new CliExit(exitCodes.usage, 'error: name one run ("last" is the latest; see: braidclaw run list), or all of them with --all')
    const setup = loadSetup(context, { workspace })
    await withMemory(setup, async (memory) => {
      const runs = wanted === undefined ? memory.journal.runs({ limit: everyRun }).reverse() : [resolveRun(memory, wanted)]
      if (policy === undefined) return again({ setup, memory, runs, json, stream: !all })
      const { rejudge } = await import('../../../runtime/replay/rejudge.ts')
      const { readablePastRun } = await import('../../../host/records/integrity/run-again.ts')
      const judgeOf = await judgeBy(setup, policy, memory)
      for (const run of runs) {
        const past = readablePastRun(setup, memory, run.runId)
        const found = await rejudge({ ...past, ...judgeOf({ runId: run.runId, entries: past.entries }) })
        context.process.stdout.write(
          json ? `${JSON.stringify({ runId: run.runId, ...found })}\n` : `${policyLines(run.runId, found).join('\n')}\n`,
        )
        if (context.outputClosed()) return
      }
    })
  },
} as const satisfies Command<typeof flags, typeof args>

type Again = {
  readonly setup: CliSetup
  readonly memory: Memory
  readonly runs: readonly RunRecord[]
  readonly json: boolean
  readonly stream: boolean
}

/** For one run it prints the events to stdout, one per line, the same bytes as originally; for several runs it prints only the results. */
async function again({ setup, memory, runs, json, stream }: Again): Promise<void> {
  const { readablePastRun, runAgain } = await import('../../../host/records/integrity/run-again.ts')
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
      if (stream) for (const event of found.events) stdout.write(`${JSON.stringify(event)}\n`)
      stderr.write(`${(found.missing ? notRunAgain(runId, found) : replayLines(runId, found)).join('\n')}\n`)
    }
    if (setup.context.outputClosed()) return
  }
  if (seen.altered) throw new CliExit(exitCodes.integrity)
  if (seen.missing) throw new CliExit(exitCodes.error)
}
