/** The daemon at work: channels are listened to, messages answered one by one, until it is told to stop. */

import { existsSync } from 'node:fs'
import type { Animal, Past, Setup, Wish } from '../host/api.ts'
import { FailureError } from '../host/failure.ts'
import { wake } from '../host/run/conversation.ts'
import { type Persona, runAgent, sessionOf, soulOf } from '../host/setup/agent-profile.ts'
import { historyTokens } from '../host/setup/run-limits.ts'
import type { ToolWish } from '../host/toolset/tool-selection.ts'
import { openRecall, type Recall } from '../memory/agent-files/agent-memory.ts'
import type { Provider } from '../runtime/port.ts'
import { openLines } from '../service/fifo/fifo-reader.ts'
import { openWriter } from '../service/fifo/fifo-writer.ts'
import { createTurns } from './answer-message.ts'
import { openDiscord } from './discord/channel.ts'
import { fifoMessages } from './fifo/channel.ts'
import { createDesk } from './message-queue.ts'

export type ServeOptions = {
  readonly setup: Setup
  readonly persona: Persona
  readonly dir: string
  readonly provider: Provider
  readonly tools?: ToolWish
  readonly sandbox?: Wish['sandbox']
  /** What is said when everybody can be heard. */
  readonly ready: () => void
  /** Aborted: stop. */
  readonly signal: AbortSignal
}

/** How long the answer at hand may still take after we were told to stop, and then to be written once it is cancelled. */
const FINISH_MS = 3_000
const CANCELLED_MS = 500
/** A reader who is away may come back; a reader who never comes must not stop the others. */
const READER_MS = 10_000
/** What was written before we were told to stop has been heard by then. */
const HEARD_MS = 20

/** Resolves when all is stopped. @throws FailureError for what keeps it from starting, or from going on */
export async function serve(options: ServeOptions): Promise<void> {
  const { setup, persona, dir, provider, tools, sandbox, signal } = options
  const { log } = setup
  const recall = recallOf(setup, persona)
  const animal = await wake(setup, {
    channel: 'daemon',
    conversation: sessionOf(persona),
    provider,
    agent: { ...runAgent(persona), remembers: true },
    past: () => pastOf({ recall, setup, persona, provider, alone: tools?.builtIn.length === 0 }),
    ...(tools ? { tools } : {}),
    ...(sandbox ? { sandbox } : {}),
  })
  const [deaf, gone] = [new AbortController(), new AbortController()]
  const turns = createTurns({ setup, animal, recall, provider, signal })
  const desk = createDesk({ take: turns.take, log })
  const discord = await openDiscord({ setup, signal: gone.signal })
  const writer = openWriter(`${dir}/interact_out`)
  const write = (line: string) => writer.write(line, { timeoutMs: READER_MS, signal: gone.signal })
  const lines = openLines(`${dir}/interact_in`, { signal: deaf.signal })
  const fifo = desk.listen(fifoMessages({ lines, write, log }))
  const others = discord.map(desk.listen)
  options.ready()
  await Promise.race([aborted(signal), fifo])
  await finish(desk.close(), animal, gone)
  await Bun.sleep(HEARD_MS)
  deaf.abort()
  gone.abort()
  await Promise.all([fifo, ...others, turns.settled()])
  writer.close()
  animal.close()
  if (!signal.aborted) throw new FailureError('error', `the FIFOs in "${dir}" were removed by somebody; start again`)
}

/** The answer at hand gets a moment, then it is cancelled, and says so. */
async function finish(closed: Promise<void>, { agent }: Animal, gone: AbortController): Promise<void> {
  const late = setTimeout(() => agent.cancel('SIGTERM'), FINISH_MS)
  const tooLate = setTimeout(() => gone.abort(), FINISH_MS + CANCELLED_MS)
  await closed
  clearTimeout(late)
  clearTimeout(tooLate)
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => (signal.aborted ? resolve() : signal.addEventListener('abort', () => resolve(), { once: true })))
}

function recallOf({ config, log, redactor }: Setup, { paths }: Persona): Recall {
  const { historyMax: max, historyKeep: keep } = config.memory
  const opened = openRecall({ folder: paths.folder, now: Date.now, log, redact: redactor.text, max, keep })
  if (opened.ok) return opened.recall
  throw new FailureError('error', `${opened.message}`)
}

type Remembering = {
  readonly recall: Recall
  readonly setup: Setup
  readonly persona: Persona
  readonly provider: Provider
  /** Without any tool of ours nothing is said of where they work: the soul speaks alone. */
  readonly alone: boolean
}

async function pastOf({ recall, setup, persona, provider, alone }: Remembering): Promise<Past> {
  const { messages, omittedTurns } = recall.context(historyTokens(setup.config, provider))
  if (omittedTurns > 0) setup.log('debug', 'context trimmed', { omittedTurns })
  const words = isComposed(setup, persona) ? await soulOf(setup, persona) : recall.system()
  return alone ? { history: messages, systemPrompt: words } : { history: messages, soul: words }
}

/** More than soul.md, summary and pins. */
function isComposed({ config }: Setup, { id, paths }: Persona): boolean {
  return existsSync(paths.context) || (Object.hasOwn(config.agents, id) && config.agents[id]?.soul !== undefined)
}
