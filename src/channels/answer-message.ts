/** Answers one message of a channel: it runs the turn, sends the answer, and only then compacts the history. */

import type { Conversation } from '../host/api.ts'
import type { Schedules } from '../host/contract/schedules-api.ts'
import { FailureError } from '../host/failure.ts'
import { schedulesCommand } from '../host/schedules/chat-schedules.ts'
import { atEnd, errorText } from '../kit/errors.ts'
import type { ChannelStore } from '../memory/recovery/channel-store.ts'
import type { AgentEvent, Ending } from '../runtime/event.ts'
import { endingNote, isUnanswered, rememberedOf } from '../runtime/history-text.ts'
import type { Log } from '../runtime/port.ts'
import type { AdmittedMessage } from './inbox/admission.ts'
import { jobsCommand, statusAnswer } from './jobs-command.ts'
import type { ChannelQuestions } from './outbox/ask-in-channel.ts'
import { continueTurn, refusedBy, takeTurn } from './take-turn.ts'

/** A conversation that answers messages. */
export type AnsweringConversation = {
  readonly conversation: Conversation
  /** Summarises long history. Never rejects. */
  compact(): Promise<void>
}

type AnswerOptions = {
  readonly log: Log
  /**
   * Returns the conversation of a message. May reject: this message then gets an error reply, and the next one tries again.
   */
  readonly answering: (message: Pick<AdmittedMessage, 'conversation' | 'access'>) => Promise<AnsweringConversation>
  readonly questions: ChannelQuestions
  readonly schedules: () => Promise<Schedules>
  /** Answers `/sop`. @returns undefined when the text is something else */
  readonly sops: (text: string, message: AdmittedMessage) => Promise<string | undefined>
  readonly troubles: ChannelStore['troubles']
}

/** Discord's "typing" indicator fades after ten seconds, Telegram's after five. */
const WORKING_MS = 4_500

export function createAnswers({ log, answering, questions, schedules, sops, troubles }: AnswerOptions) {
  const compacting = new Map<string, Promise<void>>()

  /** Answers one message; never rejects. */
  async function take(message: AdmittedMessage): Promise<void> {
    const { from, channel } = message
    try {
      const at = await answering(message)
      message.taken?.(at.conversation.id)
      const reply = await showWorking(message, () => replyTo(at, message))
      await message.answer(reply.text, { conversationId: at.conversation.id })
      if (reply.remembered !== undefined) compact(at)
    } catch (error) {
      log('error', 'turn failed', { from, channel, why: errorText(error) })
      await message.answer('[failed; the log of the daemon says why]')
    } finally {
      message.settled?.()
    }
  }

  async function replyTo({ conversation }: AnsweringConversation, message: AdmittedMessage): Promise<ChannelReply> {
    const { from, channel, access } = message
    const report: TurnReport = {}
    const text = message.complete ? await message.complete({ conversation, access }) : message.text
    if (text === undefined) return { text: '[stopped]' }
    const answer =
      (await jobsCommand(text, conversation, from)) ??
      // A procedure runs with the operator's rights.
      (access.profile === 'operator' ? await sops(text, message) : undefined) ??
      (access.schedules && (await schedulesCommand(text, schedules, { channel: access.channel, recipient: conversation.id })))
    if (answer !== undefined) return { text: answer }
    if (text.trim() === '/status') return { text: statusAnswer(troubles(), access.profile === 'chat') }
    const turn = text.trim() === '/continue' ? await continueTurn(conversation).catch(refusalOf) : { prompt: text }
    if (typeof turn === 'string') return { text: `[${turn}]` }
    const ending = await takeTurn({
      conversation,
      ...turn,
      show: (event) => note(report, event),
      onGate: message.asks ? (gateId, proposal) => questions.ask(message, { conversation, gateId, proposal }) : refusedBy(conversation),
    }).catch(refusalOf)
    if (typeof ending === 'string') return { text: `[${ending}]` }
    if (ending.code !== 'answered') log('warn', 'turn not answered', { from, channel, code: ending.code, why: ending.message })
    return replyOf({ ending, ...report, open: conversation.unanswered() })
  }

  /** Compacts in parallel with the next turn: a summary takes model time, and people must not wait for it. */
  function compact({ conversation: { id }, compact: make }: AnsweringConversation): void {
    if (compacting.has(id)) return
    compacting.set(
      id,
      make().finally(() => compacting.delete(id)),
    )
  }

  return { take /** Resolves when no compaction is running. */, settled: async () => void (await Promise.all(compacting.values())) }
}

function refusalOf(error: unknown): string {
  if (error instanceof FailureError && error.code === 'usage') return error.message
  throw error
}

async function showWorking<T>({ working }: AdmittedMessage, work: () => Promise<T>): Promise<T> {
  working?.()
  const again = working && setInterval(working, WORKING_MS)
  using _end = atEnd(() => clearInterval(again))
  return await work()
}

type TurnReport = { result?: string; isEmpty?: boolean }

function note(report: TurnReport, event: AgentEvent): void {
  if (event.type === 'done' && event.result !== undefined) report.result = event.result
  if (event.type === 'error') report.isEmpty = event.code === 'provider.empty'
}

/** The two texts of the original program: for a brain that did not answer in time, and for one that failed. */
const apologies = { timeout: "I'm temporarily unavailable.", provider: 'Temporarily unavailable' } as const

type ChannelReply = {
  readonly text: string
  /** The text for the history; absent when the message was not answered. An apology is not an answer. */
  readonly remembered?: string
}

type RunReport = {
  readonly ending: Ending
  /** The last text of the model, if there was one. */
  readonly result?: string
  /** The model answered with nothing, which is not a failure to apologise for. */
  readonly isEmpty?: boolean
  /** Questions that remain open: an operator at the machine can still answer them. */
  readonly open: readonly string[]
}

/**
 * Formats the answer, or a plain reason why there is none. Always names a refusal beside the model's own text: "done" must not stand alone when a
 * call was denied.
 */
export function replyOf({ ending, result = '', isEmpty, open }: RunReport): ChannelReply {
  const text = result.trim()
  const isAnswered = ending.code === 'answered'
  if (isAnswered && open.length === 0) return text === '' ? { text } : { text, remembered: text }
  if (ending.code === 'provider' && isEmpty) return { text: '' }
  if (isUnanswered(ending)) return { text: ending.code === 'timeout' ? apologies.timeout : apologies.provider }
  const note = `[${isAnswered ? 'approval needed' : endingNote(ending)}${approvalAdvice(open)}]`
  return text === '' ? { text: note } : { text: `${text}\n\n${note}`, remembered: rememberedOf(ending, text) }
}

/** Shows people how to approve. The history omits it, because a model that reads it would be tempted to approve by itself. */
function approvalAdvice(open: readonly string[]): string {
  if (open.length === 0) return ''
  return `. On the machine: ${open.map((id) => `braidclaw approvals allow ${id}`).join('; ')}; then ask again`
}
