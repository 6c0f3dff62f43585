/** Runs one question and its answer as a channel: for the filter, and for `agent` with a message. */

import type { Conversation, ConversationChoice, ConversationOptions, Host, Setup } from '../../host/api.ts'
import { openHost } from '../../host/open/open-host.ts'
import { atAsyncEnd } from '../../kit/errors.ts'
import type { AttendedChannel } from '../inbox/channel-api.ts'
import { tellOnStderr } from '../terminal/audience.ts'
import { type TurnOptions, turn } from '../terminal/run-turn.ts'

type OneQuestion = Omit<TurnOptions, 'conversation'> & {
  readonly which: ConversationChoice
  readonly options: Omit<ConversationOptions, 'setup' | 'ask' | 'tell'>
  /** Called before the prompt is sent. */
  readonly begun?: (conversation: Conversation, host: Host) => void
  /** Returns the next message when the answer is not what was asked for. */
  readonly again?: (() => string | undefined) | undefined
}

type QuestionChannel = AttendedChannel & {
  /** The exit code of the turn; undefined before it has ended. */
  exitCode(): number | undefined
}

export function createQuestionChannel({ which, options, begun, again, ...shown }: OneQuestion): QuestionChannel {
  const { setup, ask, format } = shown
  const state: { conversation?: Conversation; exitCode?: number } = {}
  return {
    name: options.channel,
    async start(host, signal) {
      const tell = format === 'text' ? tellOnStderr(setup.context) : undefined
      const conversation = await host.conversation(which, { setup, ...options, ask, tell })
      state.conversation = conversation
      begun?.(conversation, host)
      signal.addEventListener('abort', () => conversation.cancel(), { once: true })
      const isText = format === 'text' || shown.renderer
      const renderer = isText ? shown.renderer : (await import('./json-render.ts')).createJsonRender
      state.exitCode = await turn({ ...shown, renderer, conversation })
      for (let prompt = again?.(); prompt; prompt = again?.())
        state.exitCode = await turn({ ...shown, renderer, prompt, pictures: undefined, conversation })
    },
    async send(conversationId, message) {
      if (state.conversation?.id !== conversationId) throw new Error(`${conversationId} is not the conversation of this call`)
      setup.context.process.stdout.write(`${message}\n`)
    },
    supportsDraftUpdates: () => shown.renderer === undefined,
    exitCode: () => state.exitCode,
  }
}

/**
 * Runs a channel with a host of its own, which closes when the channel has ended. @throws what opening the host throws, and the error that ended
 * the channel
 */
export async function runChannel(setup: Setup, channel: AttendedChannel): Promise<void> {
  const host = await openHost(setup)
  await using _end = atAsyncEnd(() => host.close())
  await channel.start(host, new AbortController().signal)
}
