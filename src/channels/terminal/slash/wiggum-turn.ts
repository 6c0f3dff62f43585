/** Runs a wiggum run for a person at the command line: it shows the work, asks about a result that needs a yes, and says how it ended. */

import type { Conversation, Host } from '../../../host/api.ts'
import { commandCheck } from '../../../host/checks/find-checks.ts'
import { FailureError } from '../../../host/failure.ts'
import { beginWiggum, type WiggumChoices, type WiggumStart } from '../../../host/run/wiggum/begin-wiggum.ts'
import { own, type WiggumRecord } from '../../../host/run/wiggum/run-copy.ts'
import { workOn } from '../../../host/run/wiggum/wiggum-run.ts'
import type { AskPerson } from '../approval-prompt.ts'
import { tellOnStderr } from '../audience.ts'
import { askAboutChanges } from '../change-question.ts'
import type { CliSetup } from '../context.ts'
import { wantsColor } from '../printer.ts'
import type { Render, Screen } from '../render.ts'
import { renderOf, screenOf } from '../run-turn.ts'
import { onInterrupt } from '../signals.ts'

export type WiggumTurn = {
  readonly host: Host
  readonly setup: CliSetup
  /** Absent: text. */
  readonly renderer?: ((screen: Screen) => Render) | undefined
  readonly ask?: AskPerson | undefined
  /** A new run, or one that goes on. */
  readonly work: Pick<WiggumStart, 'prompt' | 'choices' | 'settings'> | WiggumRecord
}

/** @returns the exit code @throws FailureError when the run cannot begin or go on */
export async function wiggumTurn({ host, setup, renderer, ask, work }: WiggumTurn): Promise<number> {
  const { context } = setup
  const { exitCodeOf } = context
  const begin = performance.now()
  const say = tellOnStderr(context)
  const running: { conversation?: Conversation } = {}
  using interrupt = onInterrupt(() => {})
  const { signal } = interrupt
  const render = renderer ? renderer(screenOf(context)) : await renderOf(context)
  const record = 'id' in work ? ownRecord(setup, work) : await beginWiggum({ ...work, host, setup, channel: 'cli', say, signal })
  if (record === undefined) return exitCodeOf('answered')
  say(`works in ${record.base}, a copy of ${record.workspace}; Ctrl-C stops, and it can go on later`)
  const end = await workOn({
    ...{ host, setup, record, say, signal },
    show: render.show,
    opened: (conversation) => Object.assign(running, { conversation }),
    confirm:
      ask &&
      (async (set, review) => {
        const heading = `The checks pass, and the result needs a yes: ${review.reason}\n`
        const answer = await askAboutChanges({ heading, set, ask, color: wantsColor(context.env), signal })
        return answer?.kind === 'yes' || answer?.kind === 'always'
      }),
  })
  const { ending, iterations, set, notes } = end
  const exitCode = exitCodeOf(ending.code)
  const { conversation } = running
  const ids = { runId: conversation?.runId() ?? '', conversationId: conversation?.id ?? '', context: conversation?.context() }
  const spent = { usage: conversation?.usage(), model: conversation?.model ?? '/', durationMs: Math.round(performance.now() - begin) }
  render.end({ ending, exitCode, ...ids, ...spent, more: { iterations, notes, ...(set && { changes: set }) } })
  if (ending.code === 'cancelled') say('cancelled')
  for (const note of notes) say(note)
  say(`see: braidclaw run report ${ids.runId || record.runs.at(-1)}`)
  return exitCode
}

/** @throws FailureError `error` while another process works on it */
function ownRecord(setup: CliSetup, record: WiggumRecord): WiggumRecord {
  if (own(setup, record.id)) return record
  throw new FailureError('error', `another process works on the run ${record.runs.at(-1) ?? record.id}; wait for it, or end it first`)
}

const usage = "usage: /wiggum --check 'npm test' [--check …] [--max-iterations N] [--branch NAME] [--no-protect-tests] [--force] TASK"

/** Reads what a person typed behind `/wiggum`. @returns how it is used, when that is not understood */
export function readWiggumLine(text: string): { readonly prompt: string; readonly choices: WiggumChoices } | string {
  const words = [...text.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map((found) => found[1] ?? found[2] ?? found[3] ?? '')
  const checks: string[] = []
  const rest: string[] = []
  const chosen: { maxIterations?: number; branch?: string; protectTests?: boolean; force?: boolean } = {}
  for (let word = words.shift(); word !== undefined; word = words.shift()) {
    if (word === '--check') checks.push(words.shift() ?? '')
    else if (word === '--max-iterations') chosen.maxIterations = Number(words.shift())
    else if (word === '--branch') chosen.branch = words.shift() ?? ''
    else if (word === '--no-protect-tests') chosen.protectTests = false
    else if (word === '--force') chosen.force = true
    else if (word.startsWith('--') && rest.length === 0) return usage
    else rest.push(word)
  }
  if (checks.length === 0 || checks.includes('') || rest.length === 0 || Number.isNaN(chosen.maxIterations)) return usage
  return { prompt: rest.join(' '), choices: { ...chosen, checks: checks.map(commandCheck) } }
}
