/** Implements `check`, `check run | init | list`, and the checks after a turn: what decides whether work is done. */

import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { createJsonRender } from '../../../channels/filter/json-render.ts'
import type { CliSetup } from '../../../channels/terminal/context.ts'
import { wantsColor } from '../../../channels/terminal/printer.ts'
import { createRender, type RunSummary } from '../../../channels/terminal/render.ts'
import type { TurnOptions } from '../../../channels/terminal/run-turn.ts'
import { onInterrupt } from '../../../channels/terminal/signals.ts'
import { isTerminal } from '../../../channels/terminal/tty.ts'
import { createTrust } from '../../../config/trust.ts'
import { runChecks } from '../../../host/checks/check.ts'
import type { CheckResult, CheckSpec } from '../../../host/checks/contract.ts'
import { checksFile, checksText, commandCheck, configuredChecks, suggestedChecks } from '../../../host/checks/find-checks.ts'
import { openHost } from '../../../host/open/open-host.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { sayWhere, workspaceOf } from '../../../host/setup/workspace-folder.ts'
import { atAsyncEnd, atEnd } from '../../../kit/errors.ts'
import { quoteText } from '../../../security/command/syntax/quote.ts'
import { command, type Flags, type Given } from '../../args/command.ts'
import { checkRunsFlags, jsonFlag, modelFlag, sandboxFlag, workspaceFlag } from '../../args/turn-flags.ts'
import { CliExit, commandError, exitCodes, exitOf, usageError } from '../../exit.ts'
import { printList } from '../../print-list.ts'

const flags = {
  ...checkRunsFlags,
  timeout: { type: 'whole', min: 1, max: 86_400, about: 'Seconds that one run of a check may take (default: limits.shell_timeout_max_s)' },
  ...sandboxFlag,
  ...modelFlag,
  ...workspaceFlag,
  ...jsonFlag,
} as const satisfies Flags
type CheckFlags = Given<typeof flags>

const exits = [9, 10, 11, 130] as const

export const check = command({
  flags,
  args: { command: { type: 'text', optional: true, many: true, about: 'A bash command that must exit with 0; without one: check run' } },
  examples: [
    ["'npm test'", 'exit 0 when it passes, 11 when it fails; the workspace stays as it is'],
    ["'npm test' 'tsc --noEmit' --json", 'two of them, as JSON for machines'],
    ["'npm test' --check-runs 3 --check-pass 2", 'a flaky one: two of three runs must pass'],
  ],
  exits,
  async run(context, given, { command: commands = [] }) {
    const setup = loadSetup(context, given)
    await runAndShow(setup, given, commands.length === 0 ? projectChecks(setup) : commands.map(commandCheck))
  },
})

export const run = command({
  flags,
  args: { name: { type: 'text', optional: true, many: true, about: 'The checks to run (default: all)' } },
  examples: [
    ['', 'all checks of the project'],
    ['test types', 'two of them'],
  ],
  exits,
  async run(context, given, { name: names = [] }) {
    const setup = loadSetup(context, given)
    await runAndShow(setup, given, projectChecks(setup, names))
  },
})

export const list = command({
  flags: { ...workspaceFlag, ...jsonFlag },
  examples: [['', 'name, tier, and what each check runs']],
  run(context, { workspace, json = false }) {
    const items = configuredChecks(loadSetup(context, { workspace }))
    printList(context, { items, json, lines: items.map(listLine), none: nothing })
  },
})

export const init = command({
  flags: { ...workspaceFlag, ...jsonFlag },
  examples: [['', 'scripts of package.json, static tools, stories']],
  run(context, { workspace, json = false }) {
    const setup = loadSetup(context, { workspace })
    const [file, specs] = [checksFile(setup), suggestedChecks(workspaceOf(setup))]
    if (existsSync(file)) throw commandError(`${file} is there already; edit it, or remove it first`)
    if (specs.length === 0) throw commandError('nothing in this folder suggests a check; run one by its command: braidclaw check COMMAND')
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, checksText(specs), { flag: 'wx' })
    printList(context, { items: specs, json, lines: [`wrote ${file}`, ...specs.map(listLine)], none: nothing })
    const { workspaceDir } = setup.config
    if (!createTrust(setup.paths.trustedFolders).isTrusted(workspaceDir))
      context.process.stderr.write(`note: it is used when you trust this folder: braidclaw trust ${quoteText(workspaceDir)}\n`)
  },
})

const nothing = 'this project has no checks; "braidclaw check init" finds some'

function listLine({ name, tier, command: line, stories, criteria }: CheckSpec): string {
  return `${name.padEnd(12)}  tier ${tier}  ${line ?? stories ?? criteria}`
}

function projectChecks(setup: CliSetup, names?: readonly string[]): readonly CheckSpec[] {
  const specs = configuredChecks(setup, names)
  if (specs.length === 0) throw usageError(nothing)
  return specs
}

/** @throws CliExit 11 when one did not pass, 130 when it was cancelled */
async function runAndShow(setup: CliSetup, given: CheckFlags, specs: readonly CheckSpec[]): Promise<void> {
  const { json = false, timeout, sandbox } = given
  sayWhere(setup)
  const limited = timeout === undefined ? specs : specs.map((spec) => ({ ...spec, timeoutMs: timeout * 1_000 }))
  const { stdout } = setup.context.process
  const show = json ? undefined : (result: CheckResult) => stdout.write(resultText(result))
  const results = await runAll(setup, { specs: repeated(limited, given), sandbox, show })
  const pass = results.every((result) => result.pass)
  if (json) stdout.write(`${JSON.stringify({ pass, checks: results })}\n`)
  if (!pass) throw new CliExit(exitCodes.checks_failed)
}

type TurnChecks = Given<typeof checkRunsFlags> & { readonly check: readonly string[]; readonly sandbox?: CheckFlags['sandbox'] }

type RunTurn = (renderer: TurnOptions['renderer']) => Promise<number>

/**
 * Runs the turn and then the checks of `agent --check`; what they say goes to stderr, and JSON of the turn waits for it. @throws CliExit with
 * the exit code of the turn, or 11 when a check did not pass
 */
export async function checkTurn(setup: CliSetup, { check: commands, sandbox, ...given }: TurnChecks, turn: RunTurn): Promise<void> {
  const { stderr } = setup.context.process
  const held: { end?: (ending?: Pick<RunSummary, 'ending' | 'exitCode'>) => void } = {}
  const code = await turn((format, screen) => {
    const { show, end } = format === 'text' ? createRender(screen) : createJsonRender(format, screen)
    return { show, end: (summary) => Object.assign(held, { end: (ending = {}) => end({ ...summary, ...ending }) }) }
  })
  const show = (result: CheckResult) => stderr.write(resultText(result))
  try {
    if (code !== 0) throw new CliExit(code)
    const results = await runAll(setup, { specs: repeated(commands.map(commandCheck), given), sandbox, show })
    const failed = results.filter((result) => !result.pass).map(({ name }) => JSON.stringify(name))
    if (failed.length > 0) throw new CliExit(exitCodes.checks_failed, `checks failed: ${failed.join(', ')} did not pass`)
    held.end?.()
  } catch (error) {
    const { code: exitCode, message } = exitOf(error)
    const ending = exitCode === exitCodes.checks_failed ? 'checks_failed' : exitCode === exitCodes.cancelled ? 'cancelled' : 'error'
    const stop = ending === 'cancelled' ? ending : 'error'
    held.end?.(code === 0 ? { ending: { stop, code: ending, message }, exitCode } : undefined)
    throw error
  }
}

function repeated(specs: readonly CheckSpec[], { checkRuns, checkPass }: Given<typeof checkRunsFlags>): readonly CheckSpec[] {
  if ((checkPass ?? 1) > (checkRuns ?? 1)) throw usageError(`--check-pass ${checkPass} needs at least as many --check-runs`)
  return checkRuns === undefined ? specs : specs.map((spec) => ({ ...spec, runs: checkRuns, pass: checkPass ?? checkRuns }))
}

type Running = {
  readonly specs: readonly CheckSpec[]
  readonly sandbox: CheckFlags['sandbox']
  readonly show: ((result: CheckResult) => void) | undefined
}

async function runAll(setup: CliSetup, { specs, sandbox, show }: Running): Promise<readonly CheckResult[]> {
  const host = await openHost(setup, { ahead: specs.some(({ tier }) => tier === 3) })
  await using _end = atAsyncEnd(() => host.close())
  using interrupt = onInterrupt(() => {})
  const { signal } = interrupt
  const { status, env } = setup.context
  using _status = atEnd(status.end)
  const begin = () => isTerminal(2) && wantsColor(env) && status.begin('checking')
  const ended = (result: CheckResult) => {
    status.end()
    if (!signal.aborted) show?.(result)
    begin()
  }
  begin()
  const results = await runChecks(specs, { host, setup, sandbox, signal }, ended)
  if (signal.aborted) throw new CliExit(exitCodes.cancelled, 'cancelled')
  return results
}

/** Shows why a check failed; of one that passed only a note about its runs is left. */
function resultText({ name, pass, notRun, flaky, evidence, ms, files = [] }: CheckResult): string {
  const state = pass ? 'pass' : notRun ? 'not run' : 'FAIL'
  const lines = pass ? [] : evidence.split('\n').slice(-40)
  const more = [...lines, ...files.map((file) => `${file.name}: ${file.path}`)].map((line) => `         ${line}\n`)
  return `${state.padEnd(7)}  ${name}${flaky ? ' (flaky)' : ''}  ${(ms / 1_000).toFixed(1)} s\n${more.join('')}`
}
