/** Begins a wiggum run: it freezes the checks, copies the workspace, and runs the checks once before any model is asked. */

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { quote } from '../../../kit/text.ts'
import { readHead, readRefs } from '../../../workspace/git/read-settings.ts'
import type { Host, Setup } from '../../api.ts'
import { runChecks } from '../../checks/check.ts'
import type { CheckResult, CheckSpec } from '../../checks/contract.ts'
import { freezeChecks } from '../../checks/frozen-checks.ts'
import { FailureError } from '../../failure.ts'
import { assertWorkspaceExists, workspaceOf } from '../../setup/workspace-folder.ts'
import { sandboxState } from '../../toolset/sandbox/command-sandbox.ts'
import { protection, testCount, testsIn } from './protection.ts'
import { createCopy, foldersOf, removeRun, type WiggumRecord, writeRecord } from './run-copy.ts'
import { setupOfChecks } from './wiggum-run.ts'

/** A person's choices for a run; see `agent --wiggum --help`. */
export type WiggumChoices = {
  readonly checks: readonly CheckSpec[]
  readonly maxIterations?: number | undefined
  /** The run ends when files and failure were the same so many times in a row; default: 3. */
  readonly maxSame?: number | undefined
  /** Milliseconds since 1970. */
  readonly until?: number | undefined
  readonly branch?: string | undefined
  readonly protectTests?: boolean | undefined
  /** The data set whose rollout it is: its result is never applied. */
  readonly rollout?: string | undefined
  /** Begins although the checks pass already. */
  readonly force?: boolean | undefined
}

export type WiggumStart = {
  readonly host: Host
  readonly setup: Setup
  readonly prompt: string
  readonly choices: WiggumChoices
  /** The settings of the command line. */
  readonly settings?: { readonly [name: string]: string | number | boolean | undefined }
  readonly channel: string
  /** Receives lines for the person. */
  readonly say: (line: string) => void
  readonly signal: AbortSignal
}

const usualIterations = 20

/**
 * Returns the record of the run, which `workOn` works on; undefined when the checks pass already. This process owns the run. @throws FailureError
 * `usage` for choices that make no sense, `error` without a sandbox or when a check cannot be run, `cancelled`
 */
export async function beginWiggum(start: WiggumStart): Promise<WiggumRecord | undefined> {
  const { host, setup, prompt, choices, settings = {}, channel, say, signal } = start
  const { checks, maxIterations = usualIterations, maxSame, until, rollout, protectTests = true, branch } = choices
  const workspace = await assertPossible(setup, choices)
  const now = Date.now()
  const { id, base, before } = await createCopy({ host, setup, workspace, signal })
  const { copy } = foldersOf({ base })
  const specs = checks.toSorted((a, b) => a.tier - b.tier)
  const frozen = freezeChecks(specs, copy)
  const measured = {
    checks: specs.flatMap((spec, at) => (frozen[at] ? [{ spec, frozen: frozen[at], tests: 0 }] : [])),
    ...{ tests: [...testsIn(before)], protectTests },
  }
  const record: WiggumRecord = {
    ...{ id, workspace, base, prompt, maxIterations, channel, started: now, ...measured, rules: protection(measured) },
    ...{ maxSame, until, rollout, branch, head: branch && headOf(workspace) },
    settings: Object.fromEntries(Object.entries(settings).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]))),
    ...{ runs: [], state: 'running' },
  }
  try {
    const results = await preflight(start, record)
    if (choices.force !== true && results.every(({ pass }) => pass)) {
      say(
        `the checks pass already: ${results.map(({ name }) => name).join(', ')}. Nothing was done; --force works on the task all the same`,
      )
      await removeRun(setup, record)
      return undefined
    }
    return writeRecord(setup, {
      ...record,
      checks: record.checks.map((each, at) => ({ ...each, tests: testCount(results[at]?.evidence ?? '') })),
    })
  } catch (error) {
    await removeRun(setup, record)
    throw error
  }
}

/** Runs every check on the copy before the model does anything. */
async function preflight({ host, setup, say, signal }: WiggumStart, record: WiggumRecord): Promise<readonly CheckResult[]> {
  const on = { host, setup: setupOfChecks(setup, record), signal }
  const specs = record.checks.map(({ spec }) => spec)
  const results = await runChecks(specs, on, ({ pass, name }) => say(`before the run: ${pass ? 'passed' : 'failed'}: ${name}`))
  if (signal.aborted) throw new FailureError('cancelled', 'cancelled before the run began; nothing was changed')
  // A judge is asked only when everything else has passed.
  const broken = results.find((result) => result.notRun && (result.tier < 3 || results.every(({ pass, tier }) => pass || tier === 3)))
  if (broken) throw new FailureError('error', `the check ${quote(broken.name)} cannot be run: ${broken.evidence}`)
  return results
}

/** @returns the real path of the workspace @throws FailureError */
async function assertPossible(setup: Setup, { checks, maxIterations, until, branch }: WiggumChoices): Promise<string> {
  const wrong = (problem: string) => new FailureError('usage', problem)
  if (checks.length === 0) throw wrong('--wiggum needs at least one --check: a command that exits with 0 when the work is done')
  const names = checks.map(({ name }) => name)
  const twice = names.find((name, at) => names.indexOf(name) !== at)
  if (twice !== undefined) throw wrong(`two checks are called ${quote(twice)}; leave one out`)
  if (maxIterations !== undefined && !(maxIterations >= 1 && maxIterations <= 1_000))
    throw wrong(`${maxIterations} iterations: a run has 1 to 1000`)
  if (until !== undefined && until <= Date.now()) throw wrong(`the time for the run is over already: ${new Date(until).toISOString()}`)
  if (setup.config.security.autonomy === 'readonly')
    throw wrong('autonomy is readonly, so nothing could be changed; pass --autonomy supervised')
  assertWorkspaceExists(setup.config)
  const trial = await sandboxState(setup)
  if (!trial.ok)
    throw new FailureError('error', [
      `a wiggum run works without questions, so it needs a sandbox, and there is none: ${trial.missing}`,
      ...trial.remedy,
    ])
  const workspace = workspaceOf(setup)
  if (branch !== undefined) assertBranch(workspace, branch)
  return workspace
}

const git = (workspace: string) => join(workspace, '.git')

function assertBranch(workspace: string, branch: string): void {
  const wrong = (problem: string) => new FailureError('usage', `--branch ${quote(branch)}: ${problem}`)
  if (!/^[A-Za-z0-9][\w./-]{0,199}$/.test(branch) || /\.\.|\/\/|\/\.|\.lock(\/|$)|[./]$/.test(branch))
    throw wrong('this is not the name of a branch; use letters, digits, "-", "_" and "/"')
  if (!existsSync(join(git(workspace), 'objects')))
    throw wrong('the folder is not the root of a git repository; leave --branch out, or name the root with -C')
  if (headOf(workspace) === undefined) throw wrong('the repository has no commit yet; make one first')
  const refs = [...readRefs(git(workspace)).keys()]
  const other = refs.find((ref) => `${ref}/`.startsWith(`refs/heads/${branch}/`) || `refs/heads/${branch}`.startsWith(`${ref}/`))
  if (other !== undefined) throw wrong(`the branch ${other.slice('refs/heads/'.length)} exists; choose another name`)
}

function headOf(workspace: string): string | undefined {
  return readHead(git(workspace), readRefs(git(workspace))).id
}
