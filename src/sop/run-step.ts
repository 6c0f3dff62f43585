/**
 * Runs one step of a procedure as an ordinary turn: a tool step as a direct call through the gate, an agent step as a question to the model.
 * A step that had begun when its process died continues at its first call without a result, and is never repeated while that is in doubt.
 */

import type { Budget } from '../host/access/cost/budget.ts'
import type { Conversation, ConversationOptions, Host, InterruptedTurn, Setup } from '../host/api.ts'
import type { CallStep, HostRecords, RunFacts } from '../host/contract/records-api.ts'
import type { UnattendedTurns } from '../host/schedules/run-schedule.ts'
import { directCall } from '../host/toolset/direct-call.ts'
import { toolsFor } from '../host/toolset/tools-option.ts'
import { atAsyncEnd } from '../kit/errors.ts'
import type { JsonObject } from '../kit/json.ts'
import type { AgentEvent } from '../runtime/event.ts'

/** A person's answer about a step that may have happened. */
export type DoubtAnswer = 'done' | 'again' | 'skip'

/** `code`: how the turn of a failed step ended. */
export type StepEnd = {
  readonly state: 'done' | 'failed'
  readonly output: string
  readonly why: string
  readonly code?: string | undefined
}

/** `asked`: it may have happened, as `why` says. `stopped`: the process was told to end; the step continues later. */
export type StepOutcome = (
  | StepEnd
  | { readonly state: 'waiting'; readonly question: string }
  | { readonly state: 'asked'; readonly why: string }
  | { readonly state: 'stopped' }
) & { readonly conversationId?: string }

export type StepTurn = {
  /** Equal in every process that tries this attempt, so that it finds the turn that a dead one began. */
  readonly name: string
  readonly setup: Setup
  readonly work:
    | { readonly tool: string; readonly input: JsonObject }
    | { readonly prompt: string; readonly readsOutputs: boolean; readonly budget?: Budget | undefined }
  readonly timeoutMs?: number | undefined
  /** The question about a call that it waited for, in the state of now. */
  readonly question?: NonNullable<ReturnType<HostRecords['sops']['question']>>
  readonly answer?: DoubtAnswer | undefined
  readonly signal: AbortSignal
}

export type StepTurns = {
  readonly host: Pick<Host, 'conversation'>
  readonly records: Pick<HostRecords, 'runs'>
  readonly takeTurn: UnattendedTurns['takeTurn']
  readonly onGate: UnattendedTurns['refusedBy']
  readonly options?: Pick<ConversationOptions, 'sandbox' | 'provider'>
  readonly show?: (event: AgentEvent) => void
}

export async function runTurn(turn: StepTurn, turns: StepTurns): Promise<StepOutcome> {
  const { setup, name, work } = turn
  const conversation = await turns.host.conversation(
    { kind: 'called', name },
    {
      ...{ setup, channel: 'sop', sandbox: turns.options?.sandbox },
      ...('tool' in work
        ? { provider: directCall({ name: work.tool, input: work.input }), tools: toolsFor(setup, work.tool, undefined), systemPrompt: '' }
        : { provider: turns.options?.provider, budget: work.budget }),
    },
  )
  await using _end = atAsyncEnd(() => conversation.close())
  return { ...(await inConversation(conversation, turn, turns)), conversationId: conversation.id }
}

async function inConversation(conversation: Conversation, turn: StepTurn, turns: StepTurns): Promise<StepOutcome> {
  const { records, takeTurn, onGate, show = () => {} } = turns
  const begin = await beginningOf(conversation, turn, turns)
  if ('state' in begin) return begin
  if ('prompt' in turn.work && turn.work.readsOutputs) await conversation.readsUntrusted()
  const late: { isLate?: true } = {}
  const cancel = () => conversation.cancel('SIGTERM')
  turn.signal.addEventListener('abort', cancel, { once: true })
  const timer =
    turn.timeoutMs !== undefined &&
    setTimeout(() => {
      late.isLate = true
      conversation.cancel('the time limit of the step')
    }, turn.timeoutMs)
  const ending = await takeTurn({ conversation, ...begin, show, onGate: onGate(conversation) }).finally(() => {
    turn.signal.removeEventListener('abort', cancel)
    if (timer !== false) clearTimeout(timer)
  })
  if (late.isLate) return failed(`it ran longer than ${(turn.timeoutMs ?? 0) / 1_000} s`)
  if (turn.signal.aborted || ending.code === 'estop') return { state: 'stopped' }
  const [question] = ending.code === 'approval_needed' ? conversation.unanswered() : []
  if (question !== undefined) return { state: 'waiting', question }
  const end = await endOf(turn, conversation.id, records)
  return end.state === 'failed' && end.why === '' ? { ...end, why: ending.message } : end
}

type Beginning = { readonly prompt: string; readonly continues?: ReturnType<InterruptedTurn['continueWith']>['continues'] }

/** Returns how the turn begins or continues, or what became of the step already. */
async function beginningOf(conversation: Conversation, turn: StepTurn, { records }: StepTurns): Promise<Beginning | StepOutcome> {
  const { work, answer, question } = turn
  const prompt = 'tool' in work ? `procedure: ${work.tool}` : work.prompt
  const [last] = runsIn(records, conversation.id)
  if (last === undefined) return { prompt }
  const interrupted = await conversation.interrupted()
  if (typeof interrupted !== 'string') return continued(interrupted, 'tool' in work, answer)
  // A later turn has used the answer already.
  if (question && question.runId === last.runId) {
    if (!question.isOver) return { state: 'waiting', question: question.id }
    if (question.state === 'denied')
      return failed(`denied by ${question.decidedBy ?? 'nobody'}${question.note ? `: ${question.note}` : ''}`)
    if (question.changes === 1)
      return question.state === 'used'
        ? { state: 'done', output: (await lastCall(records, conversation.id))?.outcome?.output ?? '', why: '' }
        : failed('nobody approved its changes in time')
    return { prompt: 'tool' in work ? prompt : 'What was asked about is answered now. Continue.' }
  }
  if (last.running) return failed(`its turn ${last.runId} is under way in another process`)
  const call = await lastCall(records, conversation.id)
  const neverRan = call?.outcome === undefined || call.outcome.status === 'denied'
  if ((last.code === 'estop' || last.code === 'cancelled') && neverRan) return { prompt }
  return endOf(turn, conversation.id, records)
}

function continued(interrupted: InterruptedTurn, isTool: boolean, answer: DoubtAnswer | undefined): Beginning | StepOutcome {
  const { unknown } = interrupted
  if (unknown.length > 0 && answer === undefined)
    return { state: 'asked', why: unknown.map(({ judgement }) => judgement.summary).join('; ') }
  // A direct call has no model that could read the answer.
  if (unknown.length > 0 && isTool && answer === 'done') return { state: 'done', output: '', why: 'a person says that it was done' }
  if (unknown.length > 0 && isTool && answer === 'skip') return failed('it may have happened, and a person decided not to repeat it')
  return interrupted.continueWith(new Map(unknown.map(({ call }) => [call.id, answer ?? 'skip'])))
}

function failed(why: string): StepEnd {
  return { state: 'failed', output: '', why }
}

function runsIn(records: StepTurns['records'], conversationId: string): readonly RunFacts[] {
  return records.runs.list({ conversationId, limit: 50 }).runs
}

/** Reads the end of a step from the journal, whichever process wrote it. */
async function endOf({ work }: StepTurn, conversationId: string, records: StepTurns['records']): Promise<StepEnd> {
  const [last] = runsIn(records, conversationId)
  if ('tool' in work) {
    const { outcome } = (await lastCall(records, conversationId)) ?? {}
    if (outcome === undefined) return failed(last?.message ?? '')
    return outcome.status === 'allowed' ? { state: 'done', output: outcome.output, why: '' } : failed(outcome.error ?? outcome.output)
  }
  if (last?.code !== 'answered') return { ...failed(last?.message ?? ''), code: last?.code }
  const reply = (await records.runs.show(last.runId)).steps.findLast((step) => step.type === 'reply')
  return { state: 'done', output: reply?.type === 'reply' ? reply.text : '', why: '' }
}

/** Returns the latest call that has a result, else the latest call. */
async function lastCall(records: StepTurns['records'], conversationId: string): Promise<CallStep | undefined> {
  let open: CallStep | undefined
  for (const { runId } of runsIn(records, conversationId))
    for (const step of (await records.runs.show(runId)).steps.toReversed()) {
      if (step.type !== 'call') continue
      if (step.outcome) return step
      open ??= step
    }
  return open
}
