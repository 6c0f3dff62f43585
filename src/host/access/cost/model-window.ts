/** Learns the window of each model of a home, and how dense its tokens are, from what servers tell, count and refuse. */

import { type Config, isWireProvider, reachableProviders, type WireProvider } from '../../../config/config.ts'
import { sleep } from '../../../kit/abort.ts'
import type { KnownModel, LearntWindow, ModelKey, WindowTable } from '../../../memory/spend/model-windows.ts'
import { promptTokens } from '../../../providers/metered.ts'
import type { AskedWindow } from '../../../providers/wire/facts/ask-window.ts'
import { vendorHosts } from '../../../providers/wire/facts/model-facts.ts'
import { baseUrlOf, vendors } from '../../../providers/wire/provider-settings.ts'
import type { FailureDetail, ModelWindow, Provider } from '../../../runtime/port.ts'
import { createProviderFetch } from '../../../workspace/net/provider-fetch.ts'
import { type Fact, factsFileOf, factsOf } from './model-facts.ts'

export type ModelWindows = ReturnType<typeof createModelWindows>

/** The bounds of a factor: a server that counts otherwise does not tell the truth, or not all of it. */
const bounded = (factor: number) => Math.min(4, Math.max(0.75, factor))
/** The part that each reply takes away from a factor that is too high; one that is too low rises at once. */
const fall = 0.05
/** Fewer tokens say more about the frame of a request than about the text in it. */
const fewTokens = 256
/** A factor is written when it differs by more than this part from the one on disk. */
const worthWriting = 0.1
/** No model has a smaller window, whatever its server says; the configuration allows no smaller one either. */
const leastWindow = 1024
/** How often a process asks a server for a model that the server has not loaded yet. */
const mostQuestions = 3

/**
 * Holds what this process knows of one model; its conversations share it. `proved`: the factor that refusals proved. `isGuess`: the server had
 * not loaded the model. `onDisk`: what is written, or about to be; `unwritten`: the part that waits.
 */
type Learner = {
  factor: number
  window?: LearntWindow
  proved: number
  isGuess?: boolean
  questions: number
  asking?: Promise<void>
  onDisk: KnownModel
  unwritten?: Partial<KnownModel>
}

/** One model as one conversation sees it. */
type Learning = { readonly model: AskedModel; readonly learner: Learner; readonly write: (news: Partial<KnownModel>) => void }

/** @param add writes with the next record of the process */
export function createModelWindows(table: WindowTable, add: (step: () => void) => Promise<void>) {
  const learners = new Map<string, Learner>()

  /** Starts with what this and other processes learnt. */
  function learning(model: AskedModel): Learning {
    const id = JSON.stringify(model.key)
    const learner = learners.get(id) ?? { factor: 1, proved: 0, questions: 0, onDisk: { factor: 1 } }
    learners.set(id, learner)
    const row = model.isConfigured && !learner.unwritten ? table.get(model.key) : undefined
    if (row && row.factor !== learner.onDisk.factor) learner.factor = bounded(row.factor)
    if (row?.window && !Bun.deepEquals(row.window, learner.onDisk.window)) learner.window = row.window
    if (row) learner.onDisk = row
    const write = (news: Partial<KnownModel>) => {
      if (!model.isConfigured) return
      const unwritten = { ...learner.unwritten, ...news }
      Object.assign(learner, { onDisk: { ...learner.onDisk, ...news }, unwritten })
      const done = () => learner.unwritten === unwritten && delete learner.unwritten
      void add(() => table.put(model.key, unwritten)).then(done, () => {})
    }
    return { model, learner, write }
  }

  return {
    /** Returns the window of requests that any of these models may answer: the smallest of theirs. */
    of: (models: readonly AskedModel[]) => windowOver(() => models.map(learning)),
    /** Writes what is not on disk yet; what cannot be written is learnt again. */
    flush() {
      try {
        for (const [id, { unwritten }] of learners) if (unwritten) table.put(JSON.parse(id), unwritten)
      } catch {}
    },
  }
}

/** Combines the models of a request: each learns from its own replies and refusals. */
function windowOver(current: () => readonly Learning[]): ModelWindow {
  const state = { models: current(), scale: 1 }
  const rescale = () => {
    state.scale = Math.max(...state.models.map(({ learner }) => learner.factor))
  }
  const named = (provider = '') =>
    state.models.length === 1 ? state.models[0] : state.models.find(({ model }) => model.key.provider === provider)
  rescale()
  return {
    async ready(signal) {
      try {
        state.models = current()
        await Promise.all(state.models.map((each) => ask(each, signal)))
      } catch {
        // The code that needs the database reports that it cannot be read.
      }
      rescale()
    },
    tokens: () => Math.min(...state.models.map(tokensIn)),
    isKnown: () => state.models.every(({ model, learner }) => windowOf(model, learner.window).from !== assumed),
    scale: () => state.scale,
    replied(estimated, { usage, provider }) {
      const answering = named(provider)
      const least = Math.min(estimated, usage.inputTokens)
      if (!answering || usage.estimated || !(least >= fewTokens)) return
      count(answering, (usage.inputTokens * state.scale) / estimated)
      const { window } = answering.learner
      // Only a window that was concluded from a refusal can have been taken for too small.
      if (window?.source === 'inferred' && least > tokensIn(answering)) learn(answering, { ...window, tokens: least })
      rescale()
    },
    refused(estimated, failure) {
      const refusing = named(failure.provider)
      const notice = refusing && refuse(refusing, estimated, state.scale, failure)
      rescale()
      return notice
    },
  }
}

function tokensIn({ model, learner }: Learning): number {
  return windowOf(model, learner.window).tokens
}

/** A server is asked once, and again only when it had not loaded the model. */
async function ask(each: Learning, signal: AbortSignal): Promise<void> {
  const { model, learner } = each
  if (!model.ask || model.known || (learner.window?.basis === 0 && !learner.isGuess)) return
  learner.asking ??= model.ask(signal).then(({ isServer, tokens, isLoaded = true }) => {
    learner.questions += 1
    if (signal.aborted || (!isLoaded && learner.questions < mostQuestions)) delete learner.asking
    if (signal.aborted || !isServer) return
    if (isLoaded) learn(each, { tokens: tokens ?? 0, source: tokens === undefined ? 'unknown' : 'server', basis: 0 })
    else Object.assign(learner, { window: { tokens, source: 'server', basis: 0 }, isGuess: true })
  })
  await learner.asking
}

function learn({ learner, write }: Learning, window: LearntWindow): void {
  Object.assign(learner, { window, isGuess: false })
  write({ window })
}

function count({ learner, write }: Learning, factor: number): void {
  const target = bounded(Math.max(learner.proved, factor))
  learner.factor = target > learner.factor ? target : learner.factor - (learner.factor - target) * fall
  if (Math.abs(learner.factor / learner.onDisk.factor - 1) > worthWriting) write({ factor: learner.factor })
}

/** A named window that is not smaller explains a refusal only by a request that was longer than estimated. */
function refuse(each: Learning, estimated: number, scale: number, { windowTokens, sentTokens }: FailureDetail): string | undefined {
  const { learner, model } = each
  const before = tokensIn(each)
  const sent = sentTokens ?? (windowTokens !== undefined && windowTokens >= before ? Math.max(windowTokens, estimated) : undefined)
  if (sent !== undefined && estimated >= fewTokens) {
    learner.proved = Math.max(learner.proved, (sent * scale) / estimated)
    count(each, learner.proved)
  }
  const guess = Math.min(sent ?? estimated, before) * (learner.window?.source === 'inferred' ? 0.5 : 0.75)
  const tokens = Math.max(leastWindow, windowTokens ?? Math.floor(guess))
  if (tokens >= before) return undefined
  learn(each, { tokens, source: windowTokens === undefined ? 'inferred' : 'named', basis: model.known?.value ?? 0 })
  const { provider } = model.key
  const [less, more] = [tokens, before].map((value) => value.toLocaleString('en'))
  const why = windowTokens === undefined ? 'because a longer request was refused' : 'says its server'
  const setting = model.isConfigured ? `; to set it, write context_tokens = ${tokens} under [providers.models.${provider}]` : ''
  return `the window of ${provider}/${model.key.model} is ${less} tokens and not ${more}, ${why}${setting}`
}

/** The origin of a window of which nothing is known. */
export const assumed = 'assumed'

/** Returns the window that counts, and its origin for people. A refusal beats what was configured when it came, and nothing set later. */
export function windowOf({ known, usual }: Pick<AskedModel, 'known' | 'usual'>, learnt?: LearntWindow): { tokens: number; from: string } {
  const { source = 'unknown', tokens = usual, basis } = learnt ?? {}
  const isRefusal = (source === 'named' || source === 'inferred') && basis === (known?.value ?? 0)
  if (isRefusal) return { tokens, from: source === 'named' ? 'named in a refusal of its server' : 'a longer request was refused' }
  if (known) return { tokens: known.value, from: `${known.origin.name}${known.origin.date ? `, ${known.origin.date}` : ''}` }
  return source === 'server' ? { tokens, from: 'its server says so' } : { tokens: usual, from: assumed }
}

/** Returns the models that may answer when `provider` is asked, which is the configured one or the caller's own. */
export async function askedModels(around: WireContext, provider: Provider): Promise<readonly AskedModel[]> {
  const { config } = around
  const leaves = reachableProviders(config, provider.name).filter(({ kind }) => kind !== 'reliable' && kind !== 'router')
  // A caller's own model does not say what it takes.
  const usual = provider.capabilities().contextTokens || 128_000
  if (!leaves.some(isWireProvider)) return [otherModel(provider.name, config.defaultModel, usual)]
  return Promise.all(
    leaves.map((leaf) => (isWireProvider(leaf) ? wireModel(around, leaf) : otherModel(leaf.name, leaf.name, Number.POSITIVE_INFINITY))),
  )
}

function otherModel(provider: string, model: string, usual: number): AskedModel {
  return { key: { provider, address: '', model }, usual, isConfigured: false }
}

/** Returns the same provider; where it sends a limit of the answer, prompt and answer fit in the window together. */
export function withAnswerRoom(provider: Provider, window: ModelWindow): Provider {
  const roomOf = (request: Parameters<Provider['chat']>[0]) => window.tokens() - Math.ceil(promptTokens(request) * window.scale())
  return { ...provider, chat: (request, signal) => provider.chat({ answerRoom: () => roomOf(request), ...request }, signal) }
}

/** One model that may answer a request. */
export type AskedModel = {
  readonly key: ModelKey
  /** The window when nothing is known of it. */
  readonly usual: number
  /** From the configuration or the table of known models. */
  readonly known?: Fact<number> | undefined
  /** Tells whether `context_tokens` can be set for its provider; what was learnt of another one is not kept. */
  readonly isConfigured: boolean
  /** Asks the server; absent: there is none to ask. */
  readonly ask?: (signal: AbortSignal) => Promise<AskedWindow>
}

export type WireContext = {
  readonly config: Config
  readonly context: { readonly home: string; readonly env: { readonly [name: string]: string | undefined } }
}

/** Returns the model that a provider over the network is asked for. */
export async function wireModel({ config, context }: WireContext, found: WireProvider): Promise<AskedModel> {
  const model = found.name === config.defaultProvider ? config.defaultModel : found.model
  const { contextTokens: known } = await factsOf(found, model, await factsFileOf(context.home))
  const { origin = '', hostname = '', pathname = '' } = URL.parse(baseUrlOf(found) ?? '') ?? {}
  const isAsked = found.kind !== 'plugin' && origin !== '' && !Object.hasOwn(vendorHosts, hostname)
  return {
    key: { provider: found.name, address: `${origin}${pathname}`, model },
    usual: vendors[found.kind].contextTokens,
    known,
    isConfigured: true,
    ...(isAsked ? { ask: (signal) => askServer(found, model, context.env[found.apiKeyEnv ?? ''], signal) } : {}),
  }
}

async function askServer({ name, kind, ...found }: WireProvider, model: string, apiKey: string | undefined, signal: AbortSignal) {
  const base = baseUrlOf({ ...found, kind }) ?? ''
  const headers = apiKey ? vendors[kind].headers(apiKey) : {}
  const deps = { fetch: createProviderFetch({ baseUrl: base }), sleep: sleep }
  const { askWindow } = await import('../../../providers/wire/facts/ask-window.ts')
  return askWindow({ name, base, headers, model, deps, signal })
}
