/** `replay`: past runs again from the journal, or what another policy would have done in them. Nothing is run, asked or fetched. */

import type { CliSetup } from '../../../channels/terminal/context.ts'
import { alteration, withAlteration } from '../../../host/integrity/altered-entry.ts'
import { judgeBy } from '../../../host/integrity/other-policy.ts'
import { sealsOf, withMemory } from '../../../host/integrity/recovery.ts'
import { everyRun, resolveRun } from '../../../host/integrity/run-lookup.ts'
import { runLimits } from '../../../host/setup/run-limits.ts'
import { setUp } from '../../../host/setup/setup.ts'
import type { RunRecord } from '../../../memory/journal/journal.ts'
import type { Memory } from '../../../memory/memory.ts'
import type { RunLimits } from '../../../runtime/program.ts'
import type { Arguments, Command, Flags } from '../../args/command.ts'
import { jsonFlag, workspaceFlag } from '../../args/flags.ts'
import { CliExit, exitCodes } from '../../exit.ts'
import { policyLines, replayLines } from './replay-report.ts'

const flags = {
  policy: { type: 'text', about: 'What would this configuration have decided?' },
  all: { type: 'boolean', about: 'Every run of this home' },
  ...workspaceFlag,
  ...jsonFlag,
} as const satisfies Flags
const args = { run: { type: 'text', optional: true, about: 'Run id, or "last"' } } as const satisfies Arguments

/** Exit 0 when every run is as it was journalled, 9 when one is not; with `--policy` it is a question, and the exit is 0. */
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
    const setup = setUp(context, { workspace })
    await withMemory(setup, async (memory) => {
      const runs = wanted === undefined ? memory.journal.runs({ limit: everyRun }).reverse() : [resolveRun(memory, wanted)]
      if (policy === undefined) return again({ setup, memory, runs, json, stream: !all })
      const { rejudge } = await import('../../../runtime/replay/rejudge.ts')
      const judgeOf = await judgeBy(setup, policy, memory)
      for (const run of runs) {
        const { entries, limits, rules } = await material(setup, memory, run)
        const found = await rejudge({ entries, limits, rules, judge: judgeOf(entries) })
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

/** One run shows its events on stdout, one a line, the same bytes as then; several only what became of them. */
async function again({ setup, memory, runs, json, stream }: Again): Promise<void> {
  const { replayRun } = await import('../../../runtime/replay/replay.ts')
  const { stdout, stderr } = setup.context.process
  const altered: string[] = []
  const seal = sealsOf(setup)
  for (const { runId } of runs) {
    const { entries, limits, rules, guessed } = await material(setup, memory, { runId })
    const found = withAlteration(replayRun({ runId, entries, limits, rules }), alteration(memory, runId, seal))
    if (found.divergence) altered.push(runId)
    if (guessed) stderr.write(`warning: ${runId} does not say under which limits it ran; those of the configuration are taken\n`)
    if (json) stdout.write(`${JSON.stringify({ runId, ...found })}\n`)
    else {
      if (stream) for (const event of found.events) stdout.write(`${JSON.stringify(event)}\n`)
      stderr.write(`${replayLines(runId, found).join('\n')}\n`)
    }
    if (setup.context.outputClosed()) return
  }
  if (altered.length > 0) throw new CliExit(exitCodes.integrity)
}

/** @throws CliExit 9 when the rules of the run cannot be read back. */
async function material(setup: CliSetup, { journal }: Memory, { runId }: Pick<RunRecord, 'runId'>) {
  const { limitsOf, rulesOf } = await import('../../../runtime/replay/journal-reader.ts')
  const entries = journal.events(runId)
  const [limits, rules] = [limitsOf(entries), rulesOf(entries)]
  if (rules === undefined)
    throw new CliExit(exitCodes.integrity, `error: ${runId}: event 1: the rules of this run cannot be read back from its journal`)
  return { entries, rules, limits: limits ?? guessed(setup), guessed: limits === undefined }
}

/** A run that does not say its limits is older than the rule against circles. */
function guessed({ config }: CliSetup): RunLimits {
  const { maxSameResults: _, ...limits } = runLimits(config)
  return limits
}
