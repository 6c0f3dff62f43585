/** The daemon at work: channels are listened to, messages answered one by one, until it is told to stop. */

import { fifoMessages } from '../../channels/fifo.ts'
import { openRecall, type Recall } from '../../memory/recall/recall.ts'
import type { Provider } from '../../runtime/port.ts'
import { openLines } from '../../service/fifo/read.ts'
import { openWriter } from '../../service/fifo/write.ts'
import { CliExit, exitCodes } from '../exit.ts'
import { createMirror, sessionOf } from '../mirror.ts'
import type { Persona } from '../persona.ts'
import type { ToolWish } from '../toolbox.ts'
import type { Animal, Past, Setup } from '../world.ts'
import { createDesk } from './desk.ts'
import { openDiscord } from './discord.ts'
import { createTurns } from './turns.ts'

export type ServeOptions = {
  readonly setup: Setup
  readonly persona: Persona
  readonly dir: string
  readonly provider: Provider
  readonly tools: ToolWish
  readonly sandbox?: Parameters<Setup['context']['wake']>[1]['sandbox']
  /** What is said when everybody can be heard. */
  readonly ready: () => void
  /** Aborted: stop. */
  readonly signal: AbortSignal
}

/** How long the answer at hand may still take after we were told to stop, and then to end once it is cancelled. */
const FINISH_MS = 3_000
/** A reader who is away may come back; a reader who never comes must not stop the others. */
const READER_MS = 10_000

/** Resolves when all is stopped. @throws CliExit for what keeps it from starting */
export async function serve(options: ServeOptions): Promise<void> {
  const { setup, persona, dir, provider, tools, signal } = options
  const recall = recallOf(setup, persona)
  const facts = tools.builtIn.length > 0
  const animal = await setup.context.wake(setup, {
    channel: 'daemon',
    conversation: sessionOf(persona),
    provider,
    tools,
    past: () => pastOf({ recall, setup, facts }),
    ...(options.sandbox ? { sandbox: options.sandbox } : {}),
  })
  const stopping = new AbortController()
  const writer = openWriter(`${dir}/interact_out`)
  const write = (line: string) => writer.write(line, { timeoutMs: READER_MS, signal: stopping.signal })
  const desk = createDesk({
    take: createTurns({ setup, animal, recall, mirror: createMirror(setup, persona), provider, signal: stopping.signal }),
    log: setup.log,
  })
  const discord = await openDiscord(setup, signal)
  const listening = [
    desk.listen(fifoMessages({ lines: openLines(`${dir}/interact_in`, { signal }), write, log: setup.log })),
    ...discord.map(desk.listen),
  ]
  options.ready()
  await aborted(signal)
  await finish(desk.close(), animal, stopping)
  writer.close()
  await Promise.all(listening)
  animal.close()
}

/** The answer at hand gets a moment, then it is cancelled, and says so. */
async function finish(closed: Promise<void>, { agent }: Animal, stopping: AbortController): Promise<void> {
  const timer = setTimeout(() => agent.cancel('SIGTERM'), FINISH_MS)
  const impatient = setTimeout(() => stopping.abort(), FINISH_MS + 500)
  await closed
  clearTimeout(timer)
  clearTimeout(impatient)
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => (signal.aborted ? resolve() : signal.addEventListener('abort', () => resolve(), { once: true })))
}

function recallOf({ config, log, redactor }: Setup, { paths }: Persona): Recall {
  const { historyMax: max, historyKeep: keep } = config.memory
  const opened = openRecall({ folder: paths.folder, now: Date.now, log, redact: redactor.text, max, keep })
  if (opened.ok) return opened.recall
  throw new CliExit(exitCodes.error, `error: ${opened.message}`)
}

/** With tools of our own the model is also told where it works; without, the soul speaks alone. */
function pastOf({ recall, setup, facts }: { readonly recall: Recall; readonly setup: Setup; readonly facts: boolean }): Past {
  const { messages, omittedTurns } = recall.context(setup.config.limits.contextTokens)
  if (omittedTurns > 0) setup.log('debug', 'context trimmed', { omittedTurns })
  const words = recall.system()
  return facts ? { history: messages, soul: words } : { history: messages, systemPrompt: words }
}
