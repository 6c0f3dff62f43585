/** Starts the effects that a run selects, and reports their results: calls of tools, checks, questions to a person, the model's reply. */

import { cut } from '../kit/text.ts'
import type { CheckFinding, ExternalEvent, InternalEvent, ToolOutcome } from './event.ts'
import { gateIdOf } from './gate-id.ts'
import { notApplied } from './outcome.ts'
import type {
  Act,
  ActOutcome,
  ChangePorts,
  CheckPort,
  Decision,
  ModelWindow,
  ProviderFailure,
  Question,
  Questions,
  Redact,
  RunIdentity,
} from './port.ts'
import type { RunMessages } from './request/run-messages.ts'
import { type ModelQuestion, think, unasked } from './request/think.ts'

type Internal<Type extends InternalEvent['type']> = Extract<InternalEvent, { type: Type }>

type CarryOutOptions = {
  readonly act: Act
  readonly changes?: ChangePorts
  readonly checks?: CheckPort
  readonly redact: Redact
  /** Registers an effect that can be aborted. */
  readonly begin: (id: string) => AbortSignal
  /** Reports what became of it. */
  readonly end: (id: string, event: Extract<ExternalEvent, { type: 'tool.done' | 'tool.changed' | 'check.done' }>) => void
  readonly fail: (error: unknown) => void
}

/**
 * Carries out the calls of a run: acts, and then applies or drops what an act changed on its private view of the workspace. `refusal`: why
 * an act or an application may not be carried out after all.
 */
export function createCarryOut({ act, changes, checks, redact, begin, end, fail }: CarryOutOptions) {
  /** The outcomes of calls whose changes are not applied or dropped yet. */
  const ran = new Map<string, ToolOutcome>()

  function done(id: string, outcome: Promise<ToolOutcome>): void {
    void outcome.then((outcome) => end(id, { type: 'tool.done', id, outcome: redact(outcome) }), fail)
  }

  function report({ id, call, judgement }: Internal<'act'>, { changes: review, ...rest }: ActOutcome): void {
    const outcome = redact(rest)
    if (review !== undefined) ran.set(id, outcome)
    end(
      id,
      review === undefined
        ? { type: 'tool.done', id, outcome }
        : { type: 'tool.changed', id, call, judgement, outcome, review: redact(review) },
    )
  }

  /** A stop that came while the event was being recorded counts: then nothing is applied. */
  function apply(event: Internal<'apply'>, refusal: string | undefined): void {
    const { id } = event
    const signal = begin(id)
    const outcome = ran.get(id) ?? { status: 'failed', output: '' }
    ran.delete(id)
    if (changes && refusal === undefined && !signal.aborted) {
      done(id, changes.apply(event, signal, outcome))
      return
    }
    const reason = refusal === undefined ? 'the run was stopped' : `approval.unusable: ${refusal}`
    changes?.drop({ ...event, type: 'drop', outcome, by: 'runtime', reason })
    done(id, Promise.resolve(notApplied(outcome, 'denied', reason)))
  }

  return {
    act(event: Internal<'act'>, refusal: string | undefined): void {
      const signal = begin(event.id)
      if (refusal === undefined) void act(event, signal).then((outcome) => report(event, outcome), fail)
      else done(event.id, Promise.resolve(notApproved(refusal)))
    },
    apply,
    check(event: Internal<'check'>): void {
      const { id } = event
      const finding = checks?.run(event, begin(id)) ?? Promise.resolve(noChecks)
      const short = (found: CheckFinding) => redact({ ...found, evidence: cut(found.evidence.toWellFormed(), longestEvidence) })
      void finding.then((found) => end(id, { type: 'check.done', id, ...short(found) })).catch(fail)
    },
    drop(event: Internal<'drop'>): void {
      ran.delete(event.id)
      changes?.drop(event)
    },
  }
}

const noChecks: CheckFinding = { pass: false, evidence: 'this conversation has no checks', notRun: true }

/** In characters. */
const longestEvidence = 8_000

/** The outcome is the same as for a call that changed after the judgement. */
function notApproved(reason: string): ToolOutcome {
  return { status: 'denied', output: '', error: `approval.unusable: ${reason}` }
}

type GatesOptions = {
  readonly identity: RunIdentity
  readonly questions: Questions
  readonly after: (ms: number, then: () => void) => () => void
  readonly ttlMs: number
  /** Sends a decision about this plan to the run. */
  readonly decide: (callId: string, plan: string, decision: Decision) => Promise<string | undefined>
  /** Reports that the record could not be read: nothing further may happen. */
  readonly fail: (error: unknown) => void
}

type OpenGate = { readonly question: Question; readonly takeBack: readonly (() => void)[]; readonly closed: PromiseWithResolvers<void> }

/** Tracks the open gates of one run: who may answer, until when, and whether another process already has. */
export function createGates({ identity, questions, after, ttlMs, decide, fail }: GatesOptions) {
  /** Indexed by the gate's id. */
  const gates = new Map<string, OpenGate>()

  /** Opens a gate. `earlier`: an approval of the same plan from a run that could not wait; then nobody is asked. */
  function open({ id, call, judgement, changes }: Internal<'gate.open'>, earlier: Decision | undefined): void {
    const gateId = gateIdOf(identity.runId, id, changes && 'changes')
    const question = { call, judgement, ...(changes ? { changes } : {}) }
    const answer = (decision: Decision) => decide(id, judgement.plan, decision)
    if (earlier) {
      void answer(earlier)
      return
    }
    const note = `no answer within ${Math.round(ttlMs / 1000)} s`
    const takeBack = [
      after(ttlMs, () => void answer({ allow: false, by: 'expiry', note })),
      questions.watch(identity, { gateId, proposal: question, answer, fail }),
    ]
    gates.set(gateId, { question, takeBack, closed: Promise.withResolvers() })
  }

  /** Accepts an answer from another process; the first answer counts. */
  function answeredElsewhere(gateId: string, { call, judgement }: Question): boolean {
    try {
      const answer = questions.answered(gateId)
      if (answer) void decide(call.id, judgement.plan, answer)
      return answer !== undefined
    } catch (error) {
      fail(error)
      return true
    }
  }

  /** @returns undefined when the decision counted and is on disk, else the name of the rule that rejected it. */
  async function approve(gateId: string, decision: Decision): Promise<string | undefined> {
    const question = get(gateId)
    if (!question) return 'approval'
    return answeredElsewhere(gateId, question) ? 'approval' : await decide(question.call.id, question.judgement.plan, decision)
  }

  const get = (gateId: string) => gates.get(gateId)?.question

  function closeGate(gateId: string): void {
    const gate = gates.get(gateId)
    gates.delete(gateId)
    for (const takeBack of gate?.takeBack ?? []) takeBack()
    gate?.closed.resolve()
  }

  return {
    open,
    approve,
    get,
    /** Resolves when it has closed, at once when it is not open. */
    closed: async (gateId: string) => await gates.get(gateId)?.closed.promise,
    /** Closes the gate of a call that is decided or can no longer be decided. */
    close: (callId: string): void => {
      for (const [gateId, { question }] of gates) if (question.call.id === callId) closeGate(gateId)
    },
    closeAll: (): void => {
      for (const gateId of gates.keys()) closeGate(gateId)
    },
  }
}

/** Asks the model for the next reply: makes the request fit before, and repeats it smaller when the model refuses it for its length. */
type ModelRequest = {
  readonly question: Omit<ModelQuestion, 'request' | 'onFailure'>
  readonly request: Omit<ModelQuestion['request'], 'messages'>
  readonly messages: RunMessages
  readonly window?: ModelWindow
  /** Records a trim; resolves when it is on disk and `messages` has it: with undefined, or with what rejected it. */
  readonly record: (trim: Extract<ExternalEvent, { type: 'context.trimmed' }>) => Promise<string | undefined>
}

type ModelReply = Awaited<ReturnType<typeof think>>

/** How often a request that was refused for its length is repeated. */
const mostRepeats = 2

/** Estimates are rather too high, so a request that is a little above the window is sent. */
const surelyTooLong = 1.25

/** Never rejects. */
export async function askModel({ question, request, messages, window, record }: ModelRequest): Promise<ModelReply> {
  const ask = (onFailure?: (failure: ProviderFailure) => void) =>
    think({ ...question, request: { ...request, messages: messages.all() }, ...(onFailure ? { onFailure } : {}) })
  if (!window) return ask()
  await window.ready(question.signal)
  let refused: { readonly reply: Extract<ModelReply, { type: 'model.fail' }>; readonly note: string | undefined } | undefined
  for (let repeats = 0; ; repeats += 1) {
    const trim = repeats > mostRepeats ? undefined : await messages.trimToFit(question.signal, refused)
    if (trim && (await record(trim)) !== undefined) return unasked
    const tokens = window.tokens()
    if (refused && !trim) return tooLong(refused.reply, { used: messages.size(), tokens, note: refused.note })
    if (window.isKnown() && messages.bound() > tokens && messages.size() > tokens * surelyTooLong)
      return tooLong(unsent(messages.size()), { used: messages.size(), tokens, note: undefined })
    const failures: ProviderFailure[] = []
    const reply = await ask((failure) => void failures.push(failure))
    if (reply.type === 'model.done') {
      const { usage, model, provider = '' } = reply
      if (!usage.estimated) window.replied(messages.size(), { usage, model, provider })
      return { ...reply, context: { window: window.tokens(), used: usage.inputTokens || messages.size() } }
    }
    if (reply.code !== 'context_length' || question.signal.aborted) return reply
    refused = { reply, note: window.refused(messages.size(), failures[0]?.detail ?? {}) }
  }
}

/** Some servers cut the beginning of a long request without a word, so it is not sent. */
function unsent(used: number): Extract<ModelReply, { type: 'model.fail' }> {
  return { type: 'model.fail', code: 'context_length', message: `the request has about ${used} tokens and was not sent`, unbilled: true }
}

function tooLong(
  reply: Extract<ModelReply, { type: 'model.fail' }>,
  { used, tokens, note }: { readonly used: number; readonly tokens: number; readonly note: string | undefined },
): ModelReply {
  const sizes = used > tokens ? `, and the model's window has ${tokens}` : ''
  const what = `nothing more of it can be left out${sizes}: send a shorter message, put long text into a file, or use a model with a larger window`
  return { ...reply, message: [reply.message, what, ...(note ? [note] : [])].join('; ') }
}
