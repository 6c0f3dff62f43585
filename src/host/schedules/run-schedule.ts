/** Runs a schedule once: an ordinary turn that nobody attends, and then the check that decides whether the run counts as good. */

import { errorText } from '../../kit/errors.ts'
import type { FiredEnd, ScheduleRow } from '../../memory/schedule-store.ts'
import type { AgentEvent, Continued, Ending, Proposal } from '../../runtime/event.ts'
import { endingNote } from '../../runtime/history-text.ts'
import { autonomyLevels } from '../../security/settings.ts'
import { type ChannelProfile, channelProfileOf } from '../access/channel-profile.ts'
import type { Conversation, ConversationChoice, ConversationOptions, Host, Setup } from '../api.ts'
import { runCheck } from '../checks/check.ts'
import { FailureError } from '../failure.ts'
import { activeAgentOf } from '../setup/agent-profile.ts'
import { iso, timeText } from './schedule-view.ts'

/** How an entrance runs a turn that nobody attends. */
export type UnattendedTurns = {
  takeTurn(turn: {
    readonly conversation: Conversation
    readonly prompt: string
    readonly continues?: Continued | undefined
    readonly show: (event: AgentEvent) => void
    readonly onGate: (gateId: string, proposal: Proposal) => Promise<void>
  }): Promise<Ending>
  /** Refuses a call, because nobody can be asked. */
  refusedBy(conversation: Conversation): (gateId: string, proposal: Proposal) => Promise<void>
  /** Begins the procedure that a message such as `/sop NAME` names. @returns undefined when the text is something else */
  procedure?(text: string, host: Host, by: string, to: { readonly place: ScheduleRow }): Promise<string | undefined>
}

export type RunOptions = Pick<ConversationOptions, 'provider' | 'tools' | 'sandbox'> & {
  readonly host: Host
  readonly turns: UnattendedTurns
}

export type RunProgress = {
  /** Called before the run begins. */
  opened(conversation: Pick<Conversation, 'id' | 'cancel'>): void
  began(runId: string): void
  /** The conversation whose last turn continues: an earlier attempt at this run was interrupted in it. */
  readonly continues?: string | undefined
  /** Receives the events of the turn. */
  show?(event: AgentEvent): void
}

/** Never rejects: what keeps the run from beginning is its ending. */
export async function runSchedule(row: ScheduleRow, options: RunOptions, progress: RunProgress): Promise<Omit<FiredEnd, 'ended'>> {
  const turn = await turnOf(row, options, progress)
  const { ending, answer = '', unanswered = [], usage } = turn
  const checked = ending.code === 'answered' && row.checkCommand !== null ? await checkOf(row.checkCommand, row, options, progress) : null
  const isGood = ending.code === 'answered' && (checked === null || checked === 'passed')
  const wasStopped = ending.code === 'cancelled'
  const report = reportOf({ name: row.name, check: row.checkCommand, ending, answer, checked, unanswered })
  return {
    state: wasStopped ? 'interrupted' : isGood ? 'good' : 'bad',
    ending: ending.code,
    message: ending.code === 'answered' ? null : ending.message,
    checked,
    tokens: usage ? usage.inputTokens + usage.outputTokens : null,
    micros: usage?.costMicros ?? null,
    unsent: row.channel === null ? null : report,
  }
}

type ScheduledTurn = {
  readonly ending: Ending
  readonly answer?: string
  readonly unanswered?: readonly string[]
  readonly usage?: ReturnType<Conversation['usage']>
}

async function turnOf(row: ScheduleRow, options: RunOptions, progress: RunProgress): Promise<ScheduledTurn> {
  const { host, turns, ...common } = options
  const result: { answer?: string } = {}
  try {
    const setup = setupOf(host.setup, row)
    const begun = row.madeInChat
      ? undefined
      : await turns.procedure?.(row.message, { ...host, setup }, `schedule ${row.name}`, { place: row })
    if (begun !== undefined) return { ending: { stop: 'end_turn', code: 'answered', message: '' }, answer: begun }
    const agent = setup.config.defaultAgent === undefined ? {} : (await activeAgentOf(setup)).request
    const access = accessOf(host.setup, row)
    const conversation = await host.conversation(whichOf(row, progress), { ...conversationOptions(common, setup), ...agent, ...access })
    try {
      progress.opened(conversation)
      // What the chat's agent wrote may come from a text of others.
      if (row.madeInChat) await conversation.readsUntrusted()
      const show = (event: AgentEvent) => {
        if (event.type === 'init') progress.began(event.runId)
        if (event.type === 'done' && event.result !== undefined) result.answer = event.result
        progress.show?.(event)
      }
      const interrupted = progress.continues === undefined ? undefined : await conversation.interrupted()
      if (typeof interrupted === 'string')
        return { ending: { stop: 'cancelled', code: 'cancelled', message: `interrupted, and it cannot continue: ${interrupted}` } }
      const asked = interrupted?.continueWith(new Map()) ?? { prompt: promptOf(row) }
      const ending = await turns.takeTurn({ conversation, ...asked, show, onGate: turns.refusedBy(conversation) })
      return { ending, ...result, unanswered: conversation.unanswered(), usage: conversation.usage() }
    } finally {
      await conversation.close()
    }
  } catch (error) {
    const code = error instanceof FailureError && error.code !== 'usage' ? error.code : 'error'
    return { ending: { stop: 'error', code, message: errorText(error) } }
  }
}

/** Returns the limits of the channel for what a chat made. @throws FailureError when that channel permits no schedules any more */
function accessOf({ config }: Setup, { channel, madeInChat }: ScheduleRow): { readonly access?: ChannelProfile } {
  if (!madeInChat || channel === null) return {}
  const { schedules, ...access } = channelProfileOf(config, { name: channel })
  if (schedules) return { access }
  throw new FailureError('error', `channels.${channel} does not permit the tool schedule any more`)
}

/** A chat's own message stands alone, so its beginning says what it is. */
function promptOf({ message, madeInChat, created, zone }: ScheduleRow): string {
  if (!madeInChat) return message
  return `[A person in this chat asked for this on ${timeText(iso(created), zone)}, and now it is due. Your answer is sent to the chat.]\n${message}`
}

function whichOf({ conversation, id }: ScheduleRow, { continues }: RunProgress): ConversationChoice {
  if (continues !== undefined) return { kind: 'resume', id: continues }
  return conversation === 'same' ? { kind: 'called', name: id } : { kind: 'new' }
}

/** @returns `passed`, or why not */
async function checkOf(command: string, row: ScheduleRow, { host, sandbox }: RunOptions, { opened }: RunProgress): Promise<string> {
  const spec = { name: `of the schedule ${row.name}`, tier: 0, command } as const
  const { pass, exit, notRun, evidence } = await runCheck(spec, {
    host,
    setup: setupOf(host.setup, row),
    sandbox,
    channel: 'schedule',
    opened,
  })
  if (pass) return 'passed'
  if (notRun) return `not run: ${evidence}`
  return exit === undefined || exit === 0 ? (evidence.split('\n').at(-1) ?? '') : `exit code ${exit}`
}

function conversationOptions(
  { provider, tools, sandbox }: Pick<RunOptions, 'provider' | 'tools' | 'sandbox'>,
  setup: Setup,
): ConversationOptions {
  return { channel: 'schedule', setup, provider, tools, sandbox }
}

/** The settings of the process, with the schedule's own folder, agent and level. */
function setupOf(setup: Setup, { workspace, agent, autonomy }: ScheduleRow): Setup {
  const { config } = setup
  const level = autonomyLevels.find((each) => each === autonomy)
  return {
    ...setup,
    config: {
      ...config,
      workspaceDir: workspace,
      ...(agent === null ? {} : { defaultAgent: agent }),
      security: { ...config.security, ...(level === undefined ? {} : { autonomy: level }) },
    },
  }
}

type Reported = {
  readonly name: string
  readonly check: string | null
  readonly ending: Ending
  readonly answer: string
  /** `passed`, why not, or null when nothing was checked. */
  readonly checked: string | null
  /** The questions that an operator can still answer. */
  readonly unanswered: readonly string[]
}

/**
 * Formats what a channel gets of a run: the answer, or why there is none. Always names a failure beside the model's own text: "done" must
 * not stand alone when the run does not count as good.
 */
function reportOf({ name, check, ending, answer, checked, unanswered }: Reported): string {
  const text = answer.trim()
  if (ending.code !== 'answered') {
    const todo =
      ending.code === 'approval_needed' ? unanswered.map((id) => `. On the machine: braidclaw approvals allow ${id}`).join('') : ''
    return both(text, `[schedule "${name}": ${endingNote(ending)}${todo}]`)
  }
  if (checked === null || checked === 'passed') return text === '' ? `[schedule "${name}": there was no answer]` : text
  return both(text, `[schedule "${name}": the check "${check}" did not pass: ${checked}]`)
}

export function interruptedReport(name: string, why: string): string {
  return `[schedule "${name}": interrupted: ${why}]`
}

export function pausedReport(name: string, failures: number): string {
  return `[schedule "${name}" is paused, because ${failures} runs in a row failed; to continue: braidclaw schedule resume ${name}]`
}

export function both(...parts: readonly string[]): string {
  return parts.filter((part) => part !== '').join('\n\n')
}
