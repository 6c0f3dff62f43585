/**
 * Puts the hooks of a conversation where its verdicts are made: into the judgements of a call and of its changes, which the journal keeps, so
 * that a replay runs none of them. A hook makes a verdict stricter, never milder. Its program gets JSON on stdin and runs in the sandbox, unless
 * the person says otherwise, within its time, and never inside itself.
 */

import { resolve } from 'node:path'
import { createCollector } from '../../../../kit/content/output-limit.ts'
import { errorText } from '../../../../kit/errors.ts'
import { isJsonObject, type JsonObject } from '../../../../kit/json.ts'
import { lazy } from '../../../../kit/lazy.ts'
import { cut, flat, visible, visibleLines } from '../../../../kit/text.ts'
import type { ChangeReview } from '../../../../runtime/changes.ts'
import type { AgentEvent, Ending, Judgement, Proposal, ToolOutcome } from '../../../../runtime/event.ts'
import { notKept } from '../../../../runtime/outcome.ts'
import type { ActOutcome } from '../../../../runtime/port.ts'
import type { ChildEnvironment, PrivateView } from '../../../../sandbox/contract.ts'
import { cleanEnvironment, type Spawn, spawnPlain } from '../../../../tools/process.ts'
import { ranOn } from '../../../../tools/run-tool.ts'
import type { Setup } from '../../../api.ts'
import { FailureError } from '../../../failure.ts'
import { noteDaily } from '../../../setup/setup.ts'
import type { ToolRuntime } from '../../contract.ts'
import { loadReviewedViews } from '../../file-call-changes.ts'
import type { Hook, HookAnswer, HookBase, HookEnd, Occasion, ToolPorts } from './hook.ts'
import { loadHooks } from './load-hooks.ts'

type HooksOptions = {
  readonly setup: Setup
  readonly conversationId: string
  readonly runId: () => string | undefined
  readonly dryRun?: boolean | undefined
  readonly isNew: boolean
  readonly toolRuntime: () => Promise<ToolRuntime>
}
type Verdict = { readonly kind: 'veto' | 'ask'; readonly rule: string; readonly reason: string }
type Answered = HookResult & { readonly hook: Hook }
type Ask = ReturnType<typeof createAsk>

export type Hooks = NonNullable<ReturnType<typeof openHooks>>

/** @returns undefined when there are no hooks. @throws FailureError `usage` on a wrong file: a guard that nobody reads guards nothing */
export function openHooks(options: HooksOptions) {
  const { hooks, notices, problems } = loadHooks(options.setup)
  if (problems.length > 0) throw new FailureError('usage', problems)
  for (const notice of notices) noteDaily(options.setup, notice)
  if (hooks.length === 0) return undefined
  const asking = createAsk(hooks, options)
  const { run, ask, interrupt } = asking
  const state = { begun: false }
  return {
    around: (ports: ToolPorts) => withHooks(ports, asking, options),
    interrupt,
    /** Asks `session_start`, before the first message, and `prompt`. @returns what the model reads, or why nothing is asked */
    async prompted(message: string): Promise<{ readonly message: string } | { readonly refused: Ending }> {
      const source = options.isNew ? 'startup' : 'resume'
      const began = state.begun ? undefined : await ask({ event: 'session_start', facts: { source } })
      const { verdict, context } = began?.verdict ? began : await ask({ event: 'prompt', facts: { prompt: message } })
      if (verdict) return { refused: { stop: 'error', code: 'denied', message: `${verdict.rule}: ${verdict.reason}` } }
      state.begun = true
      return { message: [message, ...(began?.context ?? []), ...context].join('\n\n') }
    },
    /** Passes the events of a turn on, and runs `notification` and `stop`. */
    async *watch(events: AsyncGenerator<AgentEvent>): AsyncGenerator<AgentEvent> {
      for await (const event of events) {
        if (event.type === 'approval_gate') {
          const call = { name: event.toolName, input: isJsonObject(event.input) ? event.input : {} }
          void run({ event: 'notification', call, facts: { message: `a call of ${event.toolName} waits for a yes` } })
        }
        if (event.type === 'done') await run({ event: 'stop', facts: { stop: event.stopReason } })
        yield event
      }
    },
    /** @returns false when a hook vetoes the summary of older turns */
    mayCompact: async () => (await ask({ event: 'compact' })).verdict === undefined,
  }
}

function createAsk(hooks: readonly Hook[], { setup, conversationId, dryRun = false, toolRuntime }: HooksOptions) {
  const failures = new Map<string, number>()
  const failuresOf = ({ name }: Hook) => failures.get(name) ?? 0
  const state = { stop: new AbortController() }

  /** Hooks of one event run at the same time, but those that write: two formatters of one file would contradict each other. */
  async function run(occasion: Occasion, signal = state.stop.signal, then: (answered: Answered) => unknown = () => {}): Promise<void> {
    const chosen = hooks.filter((hook) => hook.event === occasion.event && failuresOf(hook) < mostFailures && hook.matches(occasion))
    if (chosen.length === 0) return
    const { spawn, policy } = await toolRuntime()
    const around = { setup, base: { conversation: conversationId, workspace: policy.workspace, dryRun }, spawn }
    const stop = AbortSignal.any([signal, state.stop.signal])
    const one = async (hook: Hook) => {
      const { answer, view } = await runHook(hook, occasion, { ...around, signal: stop })
      if (!stop.aborted) failures.set(hook.name, reportAnswer(hook, answer, failuresOf(hook), setup))
      await then({ hook, answer, view })
    }
    await Promise.all(chosen.filter(({ write }) => !write).map(one))
    for (const hook of chosen.filter(({ write }) => write)) await one(hook)
  }

  async function ask(occasion: Occasion, signal?: AbortSignal) {
    const answers: Answered[] = []
    await run(occasion, signal, (answered) => answers.push(answered))
    const verdicts = answers.flatMap(verdictOf)
    return { verdict: verdicts.find(({ kind }) => kind === 'veto') ?? verdicts[0], context: answers.flatMap(contextOf) }
  }

  return {
    run,
    ask,
    /** Ends the programs that run now, because the turn was cancelled. */
    interrupt() {
      state.stop.abort()
      state.stop = new AbortController()
    },
  }
}

/** Returns the ports of a tool runtime with the hooks in them. */
function withHooks(ports: ToolPorts, { run, ask }: Ask, options: HooksOptions): ToolPorts {
  const { toolRuntime } = options
  const settle = createSettle(options)
  /** Holds what hooks said about calls that have not ended, by call. */
  const notes = new Map<string, readonly string[]>()
  const note = ({ id }: { readonly id: string }, more: readonly string[]) =>
    more.length > 0 && notes.set(id, [...(notes.get(id) ?? []), ...more])

  async function reviewed(act: Proposal, ran: ActOutcome, review: ChangeReview, signal: AbortSignal): Promise<ActOutcome> {
    const { list, paths } = changesIn(act, review, await toolRuntime())
    const { verdict: gate, rule, summary } = review
    const changes = list.map(({ path, before, after }) => ({ path, change: before ? (after ? 'modified' : 'deleted') : 'created' }))
    const { verdict, context } = await ask({ event: 'changes', call: act.call, paths, facts: { gate, rule, summary, changes } }, signal)
    note(act.call, context)
    if (verdict === undefined) return ran
    const stricter = { ...review, rule: verdict.rule, reason: verdict.reason }
    if (verdict.kind === 'veto') return { ...ran, changes: { ...stricter, verdict: 'deny' } }
    // Only changes about which the gate asks are kept for a yes after the end of this process.
    return { ...(gate === 'ask' ? ran : notKept(ran)), changes: { ...stricter, verdict: 'ask' } }
  }

  async function ended({ call, judgement }: Proposal, outcome: ToolOutcome, paths: readonly string[], signal: AbortSignal) {
    const said = [...(notes.get(call.id) ?? [])]
    notes.delete(call.id)
    if (outcome.status === 'denied') return outcome
    const { status, output, error = null } = outcome
    const seen: JsonObject[] = []
    await run({ event: 'after_tool', call, paths, facts: { outcome: { status, output, error } } }, signal, async (answered) => {
      const objections = verdictOf(answered).map(({ rule, reason }) => `[${rule} objects, after the call: ${reason}]`)
      const settled = answered.view && (await settle(answered.hook, { call, judgement }, answered.view, paths))
      said.push(...contextOf(answered), ...objections, ...(settled?.said ?? []))
      seen.push(...(settled?.seen ?? []))
    })
    if (said.length === 0) return outcome
    const known = Array.isArray(outcome.metadata?.seen) ? outcome.metadata.seen : []
    const metadata = seen.length > 0 ? { ...outcome.metadata, seen: [...known, ...seen].slice(0, 100) } : outcome.metadata
    return { ...outcome, metadata, output: [output, ...said].filter((part) => part !== '').join('\n') }
  }

  return {
    async judge(call) {
      const judgement = await ports.judge(call)
      const { verdict: gate, risk, rule, summary, writes } = judgement
      if (gate === 'deny') return judgement
      const paths = await pathsIn(judgement, await toolRuntime())
      const { verdict, context } = await ask({ event: 'before_tool', call, paths, facts: { gate, risk, rule, summary } })
      note(call, context)
      if (verdict === undefined) return judgement
      const stricter = { ...judgement, rule: verdict.rule, reason: verdict.reason }
      return verdict.kind === 'veto' ? { ...stricter, verdict: 'deny', writes: [] } : { ...stricter, verdict: 'ask', writes }
    },
    async act(act, signal) {
      const ran = await ports.act(act, signal)
      if (ran.changes) return ran.changes.verdict === 'deny' ? ran : reviewed(act, ran, ran.changes, signal)
      return ended(act, ran, await pathsIn(act.judgement, await toolRuntime()), signal)
    },
    changes: {
      drop: ports.changes.drop,
      async apply(event, signal, ran) {
        const { paths } = changesIn(event, event.review, await toolRuntime())
        return ended(event, await ports.changes.apply(event, signal, ran), paths, signal)
      },
    },
  }
}

async function pathsIn({ plan, writes }: Judgement, { gate }: ToolRuntime): Promise<readonly string[]> {
  const paths = (await gate()).plan(plan)?.paths ?? []
  return [...new Set([...paths.map(({ path, real }) => real ?? path), ...writes])]
}

/** Returns what the call changed on its private view. */
function changesIn({ call, judgement }: Proposal, changes: ChangeReview, { policy, changesOf }: ToolRuntime) {
  const list = changesOf({ call, judgement, changes })?.changes ?? []
  return { list, paths: list.map(({ path }) => resolve(policy.workspace, path)) }
}

/** Only a call and its changes can be asked about; elsewhere a hook that asks vetoes. */
function verdictOf({ hook: { name, event, strict }, answer }: Answered): Verdict[] {
  const rule = `hook.${name}`
  if ('failed' in answer) return strict ? [{ kind: 'veto', rule, reason: `the hook failed, which refuses: ${answer.failed}` }] : []
  const { verdict, reason = '' } = answer
  return verdict ? [{ kind: event === 'before_tool' || event === 'changes' ? verdict : 'veto', rule, reason }] : []
}

function contextOf({ hook: { name }, answer }: Answered): string[] {
  return 'failed' in answer || !answer.context ? [] : [`[hook.${name} adds: ${answer.context}]`]
}

/** The number of failures in a row after which a hook is off for the rest of its conversation. */
const mostFailures = 3

/** Tells the person what a hook says, or that it failed. @returns how often it has failed in a row */
function reportAnswer({ name, file, strict }: Hook, answer: HookAnswer, before: number, { log }: Pick<Setup, 'log'>): number {
  if (!('failed' in answer)) {
    if (answer.message) log('warn', `hook ${name}: ${answer.message}`)
    return 0
  }
  const then = strict ? 'where it failed the answer was no, and it checks nothing further' : 'the run goes on without it'
  const off = `; it is off for the rest of this conversation after ${mostFailures} failures in a row: ${then}`
  log('warn', `hook ${name} failed: ${answer.failed}${before + 1 === mostFailures ? off : ''} (${file})`)
  return before + 1
}

/**
 * Returns a function that applies what a hook changed on its private view when nobody has to be asked about it, and drops everything else.
 * `write` in the file is the person's yes to harmless changes of this hook, as at the level "auto", and to no others.
 */
function createSettle({ setup, conversationId, runId, dryRun, toolRuntime }: HooksOptions) {
  const views = lazy(async () => {
    const [{ createReviewedViews }, { policy, gate }] = await Promise.all([loadReviewedViews(), toolRuntime()])
    const auto = { ...policy, approveAllMedium: true }
    return createReviewedViews({ setup, policy: auto, conversationId, runId: () => runId() ?? '', gate, dryRun })
  })
  /** @param paths what the call named or changed: of these files the conversation knows the new text */
  return async ({ name }: Hook, { call, judgement }: Proposal, view: PrivateView, paths: readonly string[]) => {
    const say = (text: string) => [`[hook.${name} ${text}]`]
    const own = { id: call.id, name: `hook.${name}`, input: {} }
    const act = { type: 'act', id: `${call.id}+${name}`, call: own, judgement: { ...judgement, plan: '' } } as const
    const { signal } = new AbortController()
    try {
      const [{ settle, apply, drop, changesOf }, { policy }] = await Promise.all([views.get(), toolRuntime()])
      const ran = await settle(act, { status: 'allowed', output: '', [ranOn]: view }, signal)
      const review = ran.changes
      if (review === undefined) return ran.error === undefined ? {} : { said: say(ran.error) }
      const changes = changesOf(act.id)?.changes ?? []
      const reason = `${review.rule}: ${review.reason}`
      if (review.verdict !== 'apply') drop({ ...act, type: 'drop', outcome: ran, review, by: review.rule, reason })
      const outcome = review.verdict === 'apply' ? await apply({ ...act, type: 'apply', review }, signal, ran) : { error: reason }
      if (outcome.error) return { said: say(`changed nothing. It wanted: ${review.summary}. ${outcome.error}`) }
      const seen = changes.flatMap(({ path, after }) =>
        after?.sha256 && paths.includes(resolve(policy.workspace, path)) ? [{ path, sha256: after.sha256 }] : [],
      )
      return { said: say(`changed the workspace (${review.summary}); read again what you rely on`), seen }
    } catch (error) {
      view.drop()
      return { said: say(`changed nothing: ${errorText(error)}`) }
    }
  }
}

/** `spawn` starts a program in the sandbox. */
type HookRun = {
  readonly setup: Pick<Setup, 'context' | 'redactor'>
  readonly base: HookBase
  readonly spawn: Spawn
  readonly signal: AbortSignal
}

/** `view` has what the hook changed; its receiver applies or drops it. */
type HookResult = { readonly answer: HookAnswer; readonly view?: PrivateView | undefined }

/** A hook that prints more is stopped: an answer is short. */
const mostOutput = 1024 * 1024
/** Names the hooks that led to this process, so that no hook starts itself without end. */
const chainVariable = 'BRAIDCLAW_HOOKS'
/** A hook outside the sandbox may show things to the person: it finds their programs and their screen, and none of our keys. */
const session = 'PATH LANG TZ USER DISPLAY WAYLAND_DISPLAY XDG_RUNTIME_DIR DBUS_SESSION_BUS_ADDRESS BRAIDCLAW_HOME'.split(' ')

const onOneLine = (text: string) => cut(visible(flat(text)), 1_000)

/** Never rejects. */
async function runHook(hook: Hook, occasion: Occasion, run: HookRun): Promise<HookResult> {
  const { env } = run.setup.context
  const chain = (env[chainVariable] ?? '').split(':').filter(Boolean)
  if (chain.includes(hook.name)) return { answer: { failed: 'it started this run itself, and does not run inside itself' } }
  const rights = hook.sandbox ? {} : Object.fromEntries(session.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])))
  const own = { ...rights, ...hook.env, [chainVariable]: [...chain, hook.name].join(':') }
  const { end, view } = await start(hook, occasion, run, { ...cleanEnvironment({ home: env.HOME || '/' }), ...own })
  const answer = 'failed' in end ? end : hook.answer(end)
  if ('failed' in answer) {
    view?.drop()
    return { answer: { failed: onOneLine(answer.failed) } }
  }
  const { verdict, reason, context, message } = answer
  const said = { reason: onOneLine(reason?.trim() || 'it gave no reason'), context: cut(visibleLines(context?.trim() ?? ''), 10_000) }
  return { answer: { verdict, ...said, message: onOneLine(message ?? '') }, view }
}

type Ended = { readonly end: HookEnd; readonly view?: PrivateView | undefined }

async function start(hook: Hook, occasion: Occasion, { setup, base, spawn, signal }: HookRun, env: ChildEnvironment): Promise<Ended> {
  const printed = { stdout: createCollector(65_536), stderr: createCollector(65_536) }
  const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() }
  const [timer, flood] = [AbortSignal.timeout(hook.timeoutS * 1000), new AbortController()]
  let bytes = 0
  const ended = await (hook.sandbox ? spawn : spawnPlain)({
    argv: ['/bin/sh', '-c', hook.run],
    cwd: base.workspace,
    env,
    readablePaths: hook.env.BRAIDCLAW_HOOK_DIR ? [{ path: hook.env.BRAIDCLAW_HOOK_DIR }] : [],
    ...(hook.write ? { view: 'private' } : { readOnly: true }),
    stdin: JSON.stringify(setup.redactor.json(hook.input(occasion, base))),
    signal: AbortSignal.any([signal, timer, flood.signal]),
    onOutput(chunk, from) {
      bytes += chunk.length
      if (bytes > mostOutput) flood.abort()
      else printed[from].push(decoders[from].decode(chunk, { stream: true }))
    },
  }).catch((error: unknown) => ({ ok: false as const, message: errorText(error) }))
  if (!ended.ok) return { end: { failed: ended.message } }
  const { code, view, stopped } = ended
  if (flood.signal.aborted) return { end: { failed: `it printed more than ${mostOutput} bytes and was stopped` }, view }
  if (timer.aborted) return { end: { failed: `it took longer than ${hook.timeoutS} s and was stopped` }, view }
  if (code === null) return { end: { failed: stopped ?? `it ended by ${ended.signal}` }, view }
  return { end: { code, stdout: printed.stdout.text(), stderr: printed.stderr.text() }, view }
}
