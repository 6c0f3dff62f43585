/** Declares what a channel is to the host: how it listens and sends, and what it hands over with each message. */

import type { ChannelProfile, People } from '../../host/access/channel-profile.ts'
import type { Conversation, Host, Setup } from '../../host/api.ts'
import type { Rows, Values } from '../../kit/settings.ts'
import type { ChannelStore, ChannelTrouble } from '../../memory/recovery/channel-store.ts'

/** The place where a message is answered. */
export type TurnPlace = { readonly conversation: Conversation; readonly access: ChannelProfile }

/** `conversationId`: whose text it is. `closed`: the text is a question that matters only until then. */
export type AnswerContext = { readonly conversationId?: string; readonly closed?: Promise<unknown> }

/** A message from outside, from any channel, with the way to send its answer. */
export type InboundMessage = {
  /** The channel that gets the answer: the wire's channel or Discord's. */
  readonly channel: string
  readonly text: string
  /** The origin of the message, for the log. */
  readonly from: string
  /** Messages with the same name are answered in order; different names run in parallel. Absent: the agent's own conversation. */
  readonly conversation?: string
  /** The author, as the channel's own server vouches for: never a name that the author chose. Absent: unknown. */
  readonly person?: string
  /** A conversation is found again by its name and topic; another topic begins a new one in the same place. */
  readonly topic?: string
  /** Names the place where it is not `channel`: it has moved there. */
  readonly place?: string
  /** Called in place of a turn, and only for people who may talk there: a command of the channel itself. */
  command?(): void
  /** Called when the turn of the message begins, with the id of its conversation. */
  taken?(conversationId: string): void
  /**
   * Returns the text with what has to be fetched first, such as a photo; called once, when the turn begins. Undefined: the person stopped the
   * turn.
   */
  complete?(at: TurnPlace): Promise<string | undefined>
  /** Called once, when nothing more will come of the message: it is answered, refused, or was an answer itself. */
  settled?(): void
  /** Delivers the answer. Never rejects; failed deliveries are logged. */
  answer(text: string, about?: AnswerContext): Promise<void>
  /** Shows that the message is being worked on, where the channel can show that. */
  working?(): void
}

/** The host as a channel that receives messages sees it. */
export type ChannelHost = Host & {
  /** Accepts a message and answers it in its conversation when its turn comes. */
  receive(message: InboundMessage): void
  /** Aborted when the process begins to stop; the signal of `start` aborts when the time for running turns is over. */
  readonly stopping: AbortSignal
  /** The names of the channels that listen. */
  running(): readonly string[]
  /** Notes that this channel does not reach its service, and why; with nothing, that it does. */
  trouble(why?: string): void
  /** Keeps on disk which channels do not work now, and the answers that are not delivered. */
  readonly channelStore: ChannelStore
}

/** @returns one line for each, for a person */
export function troubleLines(troubles: readonly ChannelTrouble[]): string[] {
  return troubles.map(({ channel, state, why, since }) => `${channel}: ${state} since ${new Date(since).toISOString()}: ${why}`)
}

/** Returns the answer of GET /health. A server that answers is alive: to start it again would mend no channel. */
export function healthOf({ channelStore: { troubles } }: Pick<ChannelHost, 'channelStore'>, version: string) {
  const problems = troubleLines(troubles())
  return { ok: true, version, ...(problems.length > 0 ? { status: 'degraded' as const, problems } : {}) } as const
}

/** A place where people or programs talk to agents. */
export type Channel = {
  readonly name: string
  /**
   * Resolves when `signal` is aborted and the channel has stopped listening, or when the channel ends by itself. Rejects with the error
   * that ended it; it is then called again after a pause.
   */
  start(host: ChannelHost, signal: AbortSignal): Promise<void>
  /** `to`: an address of the channel itself. @throws Error that says why it could not deliver the message */
  send(to: string, message: string): Promise<void>
  supportsDraftUpdates(): boolean
  /** Returns where people reach it, for the line that says that all is ready; called after `start`. */
  readonly place?: () => string
}

/** A channel that runs its conversations itself because a person or program started it: the terminal, the filter. */
export type AttendedChannel = Omit<Channel, 'start'> & { start(host: Host, signal: AbortSignal): Promise<void> }

/** One entry of channels/list.ts. */
export type ChannelKind<R extends Rows = Rows> = {
  readonly name: string
  /** The rows of [channels.NAME] besides those that every channel has (access/channel-profile.ts). */
  readonly settings: R
  /** Describes the people at the other end. */
  readonly people?: People
  /** When a vital channel ends, the other channels end too. */
  readonly vital?: true
  isOn(settings: Values<R>): boolean
  /** Loads the heavy modules. `dir`: the folder of the FIFOs. @throws FailureError when the settings cannot work */
  create(making: { readonly settings: Values<R>; readonly setup: Setup; readonly dir: string }): Promise<Channel>
}
