/** Implements `agent --wiggum`: a run that works until its checks pass, and goes on after a stop or a crash. */

import { createJsonRender } from '../../../channels/filter/json-render.ts'
import { terminalPrompt } from '../../../channels/terminal/audience.ts'
import type { CliContext, CliSetup } from '../../../channels/terminal/context.ts'
import type { Screen } from '../../../channels/terminal/render.ts'
import { type WiggumTurn, wiggumTurn } from '../../../channels/terminal/slash/wiggum-turn.ts'
import { commandCheck, configuredChecks } from '../../../host/checks/find-checks.ts'
import { openHost } from '../../../host/open/open-host.ts'
import { findRecord, isInterrupted, listRecords, type WiggumRecord } from '../../../host/run/wiggum/run-copy.ts'
import { readTime, readZone } from '../../../host/schedules/read-timing.ts'
import { withFoundModels } from '../../../host/setup/provider-pool.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { sayWhere, workspaceOf } from '../../../host/setup/workspace-folder.ts'
import { atAsyncEnd } from '../../../kit/errors.ts'
import { count } from '../../../kit/text.ts'
import type { Given } from '../../args/command.ts'
import { type checkFlags, formatOf, messageOf, type turnFlags, type wiggumFlags } from '../../args/turn-flags.ts'
import { CliExit, usageError } from '../../exit.ts'
import { noteOffline } from '../../offline-notice.ts'

const alone = ['attempts', 'keep', 'role', 'confined'] as const

type AgentFlags = Given<typeof turnFlags & typeof checkFlags & typeof wiggumFlags> & {
  readonly [name in 'message' | 'role']?: string
} & { readonly [name in 'attempts' | 'keep']?: number } & { readonly [name in 'confined' | 'continueTurn']?: boolean }

/** @throws CliExit and FailureError for every exit code but 0 */
export async function wiggum(context: CliContext, given: AgentFlags): Promise<void> {
  const wrong = alone.find((name) => given[name] !== undefined)
  if (wrong !== undefined) throw usageError(`--${wrong} does not go with --wiggum; leave it out`)
  if (given.sandbox === 'none') throw usageError('a wiggum run works without questions, so it needs a sandbox; leave out --sandbox none')
  if (given.protectTests && given.noProtectTests) throw usageError('--protect-tests and --no-protect-tests contradict each other')
  const setup = loadSetup(context, settingsOf(given))
  if (given.continue || given.resume !== undefined || given.continueTurn) {
    if (given.message !== undefined || given.check !== undefined)
      throw usageError('a run that goes on has its task and its checks already; leave out the message and --check')
    return goOn(context, given, findRecord(setup, given.resume, workspaceOf(setup)))
  }
  const advice = 'say what is to be done: agent --wiggum --check "npm test" "task"'
  const prompt = await messageOf({ message: given.message, advice }, context)
  if (prompt === undefined) throw usageError('--wiggum needs a task: agent --wiggum --check "npm test" "Make the tests pass"')
  await take(setup, given, { prompt, choices: choicesOf(setup, given), settings: settingsOf(given) })
}

/** Goes on with a run whose process died in this folder. @returns false when there is none */
export async function continueInterrupted(context: CliContext, given: AgentFlags): Promise<boolean> {
  const setup = loadSetup(context, settingsOf(given))
  const workspace = workspaceOf(setup)
  const found = listRecords(setup).find((record) => record.workspace === workspace && isInterrupted(setup, record))
  if (found) await goOn(context, given, found)
  return found !== undefined
}

/** Uses the settings that the run began with, and what is given now instead. */
async function goOn(context: CliContext, given: AgentFlags, record: WiggumRecord): Promise<void> {
  const chosen = Object.fromEntries(Object.entries(settingsOf(given)).filter(([, value]) => value !== undefined))
  const now = { until: untilOf(given), maxIterations: given.maxIterations }
  const changed = Object.fromEntries(Object.entries(now).filter(([, value]) => value !== undefined))
  await take(loadSetup(context, { ...record.settings, ...chosen, workspace: record.workspace }), given, { ...record, ...changed })
}

async function take(loaded: CliSetup, given: AgentFlags, work: WiggumTurn['work']): Promise<void> {
  const setup = await withFoundModels(loaded)
  noteOffline(setup)
  sayWhere(setup)
  const host = await openHost(setup)
  await using _end = atAsyncEnd(() => host.close())
  const format = formatOf(given)
  const renderer = format === 'text' ? undefined : (screen: Screen) => createJsonRender(format, screen)
  const code = await wiggumTurn({ host, setup, renderer, ask: terminalPrompt(setup.context), work })
  if (code !== 0) throw new CliExit(code)
}

function settingsOf({ workspace, model, effort, agent, autonomy, maxTurns, approveAllMedium }: AgentFlags) {
  return { workspace, model, effort, agent, autonomy, maxTurns, approveAllMedium }
}

/** Uses the checks of the project where none is given. */
function choicesOf(setup: CliSetup, given: AgentFlags) {
  const { check = [], checkRuns: runs, checkPass: pass, maxIterations, branch, noProtectTests = false, force } = given
  if (pass !== undefined && pass > (runs ?? 1)) throw usageError(`--check-pass ${pass}: each check runs only ${count(runs ?? 1, 'time')}`)
  const specs = check.length > 0 ? check.map(commandCheck) : configuredChecks(setup)
  const checks = specs.map((spec) => ({ ...spec, ...(runs && { runs }), ...(pass && { pass }) }))
  return { checks, maxIterations, until: untilOf(given), branch, protectTests: !noProtectTests, force }
}

function untilOf({ until }: AgentFlags): number | undefined {
  const zone = () => readZone(Intl.DateTimeFormat().resolvedOptions().timeZone)
  return until === undefined ? undefined : readTime(until, { now: Date.now(), zone: zone() }, '--until')
}
