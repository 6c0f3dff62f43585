/** The daemon at work: all its channels are listened to, and their conversations held side by side, until it is told to stop. */

import { channelSettings } from '../config/config.ts'
import type { Channel, ChannelHost, ConversationOptions, Setup } from '../host/api.ts'
import { openHost } from '../host/open-host.ts'
import type { AgentProfile } from '../host/setup/agent-profile.ts'
import type { Provider } from '../runtime/port.ts'
import { createAgentConversations } from './agent-conversations.ts'
import { createAnswers } from './answer-message.ts'
import { createChannelQuestions } from './ask-in-channel.ts'
import { channelKinds } from './list.ts'
import { createMessageQueue } from './message-queue.ts'

export type ServeOptions = Pick<ConversationOptions, 'tools' | 'sandbox'> & {
  readonly setup: Setup
  readonly agentProfile: AgentProfile
  readonly dir: string
  readonly provider: Provider
  /** What is said when everybody can be heard. */
  readonly ready: () => void
  /** Aborted: stop. */
  readonly signal: AbortSignal
}

/** How long the answers at hand may still take after we were told to stop, and then to be written once they are cancelled. */
const FINISH_MS = 3_000
const CANCELLED_MS = 500
/** How long a channel may take to leave, and a summary to be given up. */
const LEAVE_MS = 1_000
/** What was written before we were told to stop has been heard by then. */
const HEARD_MS = 20

/** Resolves when all is stopped. @throws FailureError for what keeps it from starting, or from going on */
export async function serve({ setup, dir, ready, ...options }: ServeOptions): Promise<void> {
  const { signal } = options
  const host = openHost(setup, { ahead: false })
  const { log } = setup
  try {
    const conversations = createAgentConversations({ ...options, host })
    // What is wrong with it is said before anybody is heard.
    await conversations.answering(undefined)
    const kinds = channelKinds
      .map((kind) => ({ kind, settings: channelSettings(setup.config, kind) }))
      .filter(({ kind, settings }) => kind.isOn(settings))
    const channels = await Promise.all(
      kinds.map(async ({ kind, settings }) => ({ kind, channel: await kind.create({ settings, setup, dir }) })),
    )
    const questions = createChannelQuestions()
    const answers = createAnswers({ log, answering: conversations.answering, questions })
    const queue = createMessageQueue({ take: answers.take, log })
    const channelHost: ChannelHost = {
      ...host,
      receive(message) {
        if (!questions.hear(message)) queue.put(message)
      },
    }
    const deaf = new AbortController()
    const vital = Promise.withResolvers<void>()
    const running = channels.map(({ kind, channel }) => {
      const over = run(channel, channelHost, deaf.signal)
      if (!kind.vital) return over.catch((error: unknown) => log('error', 'channel failed', { channel: kind.name, why: wordsOf(error) }))
      return over.then(vital.resolve, vital.reject)
    })
    ready()
    const ended = await Promise.race([aborted(signal), vital.promise]).then(
      () => undefined,
      (error: unknown) => ({ error }),
    )
    await finish(queue.close, conversations.cancel, deaf)
    await Promise.race([Promise.all([...running, answers.settled()]), Bun.sleep(LEAVE_MS)])
    if (ended) throw ended.error
  } finally {
    await host.close()
  }
}

/** Begins at once, so that whoever is told that we are ready is heard. */
async function run(channel: Channel, host: ChannelHost, signal: AbortSignal): Promise<void> {
  await channel.start(host, signal)
}

/** The answers at hand get a moment, then they are cancelled, and say so. What was heard meanwhile is told that it is not answered. */
async function finish(close: () => Promise<void>, cancel: (by: string) => void, deaf: AbortController): Promise<void> {
  const late = setTimeout(() => cancel('SIGTERM'), FINISH_MS)
  const tooLate = setTimeout(() => deaf.abort(), FINISH_MS + CANCELLED_MS)
  await close()
  await Bun.sleep(HEARD_MS)
  await close()
  clearTimeout(late)
  clearTimeout(tooLate)
  deaf.abort()
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => (signal.aborted ? resolve() : signal.addEventListener('abort', () => resolve(), { once: true })))
}

function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
