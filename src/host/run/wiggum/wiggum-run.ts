/**
 * Works on a wiggum run until its checks pass or it ends otherwise: in its copy of the workspace, in one conversation, and again after a crash
 * or a failure of the provider by the code that continues an interrupted turn.
 */

import { readdirSync, unlinkSync } from 'node:fs'
import { basename, join } from 'node:path'
import { sleep } from '../../../kit/abort.ts'
import { errorText } from '../../../kit/errors.ts'
import { count, quote } from '../../../kit/text.ts'
import type { AgentEvent, Continued, Ending, Usage } from '../../../runtime/event.ts'
import type { CheckPort } from '../../../runtime/port.ts'
import { isTemporaryName } from '../../../workspace/sweep.ts'
import type { Conversation, ConversationOptions, Host, Setup } from '../../api.ts'
import { createTreeDigest, type Manifest } from '../../changes/workspace-copy.ts'
import { runCheck } from '../../checks/check.ts'
import { freezeChecks, whyChanged } from '../../checks/frozen-checks.ts'
import { FailureError } from '../../failure.ts'
import { realFolder } from '../../setup/workspace-folder.ts'
import { type Applying, applyResult, holdResult, type WiggumEnd } from './apply-result.ts'
import { testCount } from './protection.ts'
import { disown, foldersOf, manifestOf, removeCopy, type WiggumRecord, writeRecord } from './run-copy.ts'

export type WiggumWork = Pick<Applying, 'confirm'> & {
  readonly host: Host
  /** The setup of the user's folder. */
  readonly setup: Setup
  readonly record: WiggumRecord
  readonly show: (event: AgentEvent) => void
  /** Receives lines for the person. */
  readonly say: (line: string) => void
  /** Its reason, when that is a text, names who cancels. */
  readonly signal: AbortSignal
  /** Parts that the calling program brings. */
  readonly brought?: Pick<ConversationOptions, 'provider' | 'tools' | 'threads' | 'agent'>
  readonly rest?: typeof sleep
  /** Called when the conversation is open. */
  readonly opened?: (conversation: Conversation) => void
}

/** Returns the setup of conversations in the copy: the user's own, with the rules that protect the checks. */
export function setupInCopy(setup: Setup, record: Pick<WiggumRecord, 'base' | 'rules' | 'workspace'>): Setup {
  const { workspace } = record
  const { copy } = foldersOf(record)
  const { env, home } = setup.context
  // What is forbidden in the user's folder is forbidden in its copy.
  const too = (paths: readonly string[]) =>
    paths.flatMap((path) => {
      const plain = path.startsWith('~/') ? `${env.HOME ?? home}${path.slice(1)}` : path
      return plain.startsWith(`${workspace}/`) ? [path, `${copy}${plain.slice(workspace.length)}`] : [path]
    })
  const { security } = setup.config
  const forbidden = { forbiddenPaths: too(security.forbiddenPaths), forbiddenReads: too(security.forbiddenReads) }
  const config = { ...setup.config, workspaceDir: copy, copyOf: workspace, security: { ...security, ...forbidden } }
  return { ...setup, config, ownRules: [...(setup.ownRules ?? []), ...record.rules] }
}

/** Returns the setup in which checks run: within a turn, so that they may not wait until there is room for another turn. */
export function setupOfChecks(setup: Setup, record: Parameters<typeof setupInCopy>[1]): Setup {
  const inCopy = setupInCopy(setup, record)
  const limits = { ...inCopy.config.limits, maxTurnsAtOnce: Number.MAX_SAFE_INTEGER }
  return { ...inCopy, config: { ...inCopy.config, limits } }
}

/**
 * Works on a run that `beginWiggum` began, or that is interrupted or waiting. Removes the copy when the result is applied. Rejects only before
 * anything was done. @throws FailureError when another process works on it, or its conversation cannot be opened
 */
export async function workOn(work: WiggumWork): Promise<WiggumEnd> {
  const { host, setup, say } = work
  const state = { record: work.record }
  const keep = (change: Partial<WiggumRecord>) => {
    state.record = writeRecord(setup, { ...state.record, ...change })
    return state.record
  }
  if (realFolder(host.setup.config.workspaceDir) !== state.record.workspace)
    throw new FailureError('error', `the run belongs to ${state.record.workspace}; go on there (-C)`)
  const before = manifestOf(setup, state.record)
  if (state.record.runs.length > 0) removeTemporary(foldersOf(state.record).copy, before)
  const digest = createTreeDigest(foldersOf(state.record).copy, before)
  const checks = checkPort({ ...work, digest })
  const { maxIterations, maxSame, until, conversation: id, channel } = state.record
  keep({ state: 'running' })
  const conversation = await host.conversation(id === undefined ? { kind: 'new' } : { kind: 'session', id }, {
    channel,
    setup: setupInCopy(setup, state.record),
    tell: say,
    checks,
    ...work.brought,
  })
  const rejected = await conversation.setMode({ newMode: 'wiggum', maxIterations, ...(maxSame && { maxSame }), ...(until && { until }) })
  if (rejected !== undefined) throw new FailureError('error', `the run cannot begin: ${rejected}`)
  work.opened?.(conversation)
  const cancel = () => conversation.cancel(byOf(work.signal))
  work.signal.addEventListener('abort', cancel, { once: true })
  try {
    if (id !== conversation.id) keep({ conversation: conversation.id })
    const { ending, iterations, usage } = await turns(work, conversation, (runId) => keep({ runs: [...state.record.runs, runId] }))
    const applying = { ...work, record: state.record, before, digest }
    const end = state.record.rollout
      ? { ending, notes: [] }
      : await (ending.code === 'answered' ? applyResult(applying) : holdResult(applying, ending))
    const { code, message } = end.ending
    if (ending.code === 'answered' && code !== 'answered') work.show({ type: 'error', code, message, recoverable: false })
    // Whoever ends the machine or the service wants the run to go on afterwards.
    const wasEnded = code === 'cancelled' && /^SIG(TERM|HUP)$/.test(byOf(work.signal))
    const ended = { code, message, at: Date.now(), notes: [...end.notes] }
    keep(wasEnded ? {} : { state: code === 'answered' ? 'done' : 'waiting', ended })
    if (code === 'answered') await removeCopy(host, state.record)
    return { ...end, iterations, usage }
  } finally {
    work.signal.removeEventListener('abort', cancel)
    await conversation.close()
    disown(setup, state.record.id)
  }
}

/** A write that was killed leaves its temporary file, which would be a part of the result. */
function removeTemporary(copy: string, before: Manifest): void {
  const names = readdirSync(copy, { recursive: true, encoding: 'latin1' })
  for (const raw of names) if (isTemporaryName(basename(raw)) && !before.has(raw)) unlinkSync(join(copy, raw))
}

const byOf = ({ reason }: AbortSignal): string => (typeof reason === 'string' ? reason : 'user')

type TurnEnd = { readonly ending: Ending; readonly iterations: number; readonly usage?: Usage | undefined }
type NextTurn = { readonly prompt: string; readonly continues?: Continued }

const [firstWaitMs, longestWaitMs] = [5_000, 300_000]
/** How long a provider may fail without `--until`. */
const outageMs = 3_600_000

/** Runs the turn, and continues it while the provider fails and there is time. */
async function turns(work: WiggumWork, conversation: Conversation, began: (runId: string) => void): Promise<TurnEnd> {
  const { record, signal, say, rest = sleep } = work
  const seen = { iterations: 0 }
  const show = (event: AgentEvent) => {
    if (event.type === 'init') began(event.runId)
    if (event.type === 'iteration') {
      seen.iterations = event.count
      say(`iteration ${event.count} of ${record.maxIterations}`)
    }
    work.show(event)
  }
  let asked = await firstAsked(conversation, record)
  const failing = { since: 0, waitMs: firstWaitMs }
  while (asked !== undefined) {
    const iteration = seen.iterations
    for await (const event of conversation.run(asked.prompt, undefined, asked.continues)) {
      if (signal.aborted) conversation.cancel(byOf(signal))
      show(event)
      if (event.type === 'approval_gate') await conversation.approve(event.gateId, { allow: false, by: 'wiggum', note: nobody })
    }
    const ending = conversation.ending() ?? { stop: 'error', code: 'error', message: 'the run ended without an ending' }
    const end = { ending, ...seen, usage: conversation.usage() }
    if (ending.code !== 'provider') return end
    // Whoever answered in between was there again.
    if (failing.since === 0 || seen.iterations > iteration) Object.assign(failing, { since: Date.now(), waitMs: firstWaitMs })
    const last = record.until ?? failing.since + outageMs
    if (signal.aborted || Date.now() + failing.waitMs > last) return end
    say(`the provider failed (${ending.message}); trying again in ${failing.waitMs / 1_000} s, until ${new Date(last).toISOString()}`)
    await rest(failing.waitMs, signal)
    failing.waitMs = Math.min(failing.waitMs * 2, longestWaitMs)
    if (signal.aborted) return { ...end, ending: { stop: 'cancelled', code: 'cancelled', message: 'cancelled while the provider failed' } }
    const turn = await conversation.interrupted()
    if (typeof turn === 'string') return end
    asked = turn.continueWith(new Map())
  }
  return { ending: { stop: 'end_turn', code: 'answered', message: '' }, ...seen }
}

const nobody = 'nobody is asked during a wiggum run, so do without it'

/** @returns what the first turn of this process is asked; undefined when the checks passed already and only the result is left to apply */
async function firstAsked(conversation: Conversation, { prompt, runs }: WiggumRecord): Promise<NextTurn | undefined> {
  const turn = await conversation.interrupted()
  if (typeof turn !== 'string') return turn.continueWith(new Map())
  if (turn.includes('was answered')) return undefined
  if (runs.length === 0 || turn.startsWith('nothing was asked')) return { prompt }
  throw new FailureError('error', `the run cannot go on: ${turn}; "braidclaw run report" shows what was done`)
}

type CheckFinding = Awaited<ReturnType<CheckPort['run']>>

type Checking = Pick<WiggumWork, 'host' | 'setup' | 'record' | 'say'> & { readonly digest: () => Promise<string> }

/** Runs the frozen checks on the copy, each on a view of it that is dropped. */
function checkPort({ host, setup, record, say, digest }: Checking): CheckPort {
  const inCopy = setupOfChecks(setup, record)
  const { copy } = foldersOf(record)
  /** The findings of the checks before in this iteration, for a judge. */
  const found: string[] = []
  async function find(name: string, signal: AbortSignal): Promise<CheckFinding> {
    const check = record.checks.find(({ spec }) => spec.name === name)
    if (check === undefined) return { pass: false, evidence: `the run has no check ${quote(name)}`, notRun: true }
    const tree = await digest()
    const [now] = freezeChecks([check.spec], copy)
    const changed = now && whyChanged(check.frozen, now)
    if (changed !== undefined) return { pass: false, evidence: `${changed}; it cannot pass until that is as it was at the beginning`, tree }
    if (record.checks[0] === check) found.length = 0
    const work = { evidence: found.join('\n\n') }
    const { pass, evidence, ms, exit, notRun } = await runCheck(check.spec, { host, setup: inCopy, signal, work })
    found.push(`${name}: ${pass ? 'pass' : 'fail'}\n${evidence}`)
    const ran = { tree, ms, exit, ...(notRun && { notRun }) }
    const tests = testCount(evidence)
    if (pass && record.protectTests && tests < check.tests)
      return { ...ran, pass: false, evidence: `${fewer(check.tests, tests)}\n${evidence}` }
    return { ...ran, pass, evidence }
  }
  return {
    list: record.checks.map(({ frozen: { name, tier, digest } }) => ({ name, tier, digest })),
    async run({ name, iteration }, signal) {
      const finding = await find(name, signal).catch(
        (error: unknown): CheckFinding => ({ pass: false, evidence: errorText(error), notRun: true }),
      )
      const exit = finding.exit === undefined || finding.pass ? '' : ` (exit ${finding.exit})`
      say(`iteration ${iteration} of ${record.maxIterations}: check ${finding.pass ? 'passed' : 'failed'}: ${name}${exit}`)
      return finding
    },
  }
}

function fewer(before: number, now: number): string {
  const ran = now === 0 ? 'does not say how many tests it ran' : `ran ${count(now, 'test')}`
  return `the check exits with 0, but it ${ran}, and before this run it ran ${before}: tests must not be left out`
}
