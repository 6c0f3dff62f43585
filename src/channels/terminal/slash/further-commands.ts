/** Answers the commands that few conversations use: /context, /compact, /cost, /model, /effort and /wiggum. */

import { isWireProvider, reachableProviders } from '../../../config/config.ts'
import { factsFileOf, factsOf } from '../../../host/access/cost/model-facts.ts'
import { missingKey, modelOf } from '../../../host/setup/answering-provider.ts'
import { idsOf } from '../../../host/setup/found-models.ts'
import { within } from '../../../kit/abort.ts'
import { tokensOf } from '../../../kit/content/tokens.ts'
import { count, didYouMean, grouped, quote, visible } from '../../../kit/text.ts'
import type { Compaction } from '../../../memory/conversations/compact.ts'
import { estimateTokens } from '../../../memory/conversations/model-context.ts'
import { pinsHeading, summaryHeading } from '../../../memory/conversations/summary-words.ts'
import type { Spend } from '../../../memory/spend/spend.ts'
import { tellOnStderr } from '../audience.ts'
import { usageLine } from '../screen/usage-line.ts'
import { onInterrupt } from '../signals.ts'
import { effortLevels, type Slash } from './contract.ts'
import { readWiggumLine, wiggumTurn } from './wiggum-turn.ts'

export const furtherAnswers = {
  '/wiggum': wiggum,
  '/model': changeModel,
  '/effort': changeEffort,
  '/context': contextReport,
  '/cost': costReport,
  '/compact': (typed: Slash, argument: string) => compactNow(typed, argument.replace(/^keep\b\s*/, '')),
}

async function wiggum({ line, host, setup, ask }: Slash): Promise<string> {
  const work = readWiggumLine(line.slice('/wiggum'.length).trim())
  if (typeof work === 'string') return `${work}\n`
  await wiggumTurn({ host, setup, ask, work })
  return ''
}

async function contextReport({ conversation }: Slash): Promise<string> {
  const { sections, tools, history, window } = await conversation.requestParts()
  const named = sections.flatMap(([name, text]) => (name === 'soul' ? soulParts(text) : [[name, text] as const]))
  const [first] = history
  const isSummary = first?.role === 'user' && first.content.startsWith(summaryHeading)
  const rows: readonly (readonly [string, number])[] = [
    ...named.map(([name, text]) => [name, tokensOf(text)] as const),
    [count(tools.length, 'tool'), tokensOf(JSON.stringify(tools))],
    ...(isSummary ? [['summary of older turns', estimateTokens([first])] as const] : []),
    [count(history.length - (isSummary ? 1 : 0), 'message'), estimateTokens(isSummary ? history.slice(1) : history)],
  ]
  const used = rows.reduce((sum, [, tokens]) => sum + tokens, 0)
  const all = [...rows, ['used', used] as const, ['free', Math.max(0, window - used)] as const]
  const share = (tokens: number) => `${((tokens / Math.max(1, window)) * 100).toFixed(1)} %`
  const lines = all.map(([name, tokens]) => `  ${name.padEnd(24)} ${grouped(tokens).padStart(10)} ${share(tokens).padStart(8)}\n`)
  return `${conversation.model}: ${grouped(window)} tokens; what the next request holds before your message, estimated\n${lines.join('')}`
}

/** Splits what an agent remembers from its soul. */
function soulParts(text: string): (readonly [string, string])[] {
  const parts = text.split(new RegExp(`\\n---\\n(?=${summaryHeading}|${pinsHeading})`))
  const memory = parts.slice(1).join('\n')
  return [['soul', parts[0] ?? ''], ...(memory === '' ? [] : [['memory', memory] as const])]
}

async function compactNow({ conversation, setup }: Slash, keep: string): Promise<string> {
  using interrupt = onInterrupt(() => {})
  const [tell, signal] = [tellOnStderr(setup.context), interrupt.signal]
  const state: { messages: number; last?: Compaction | undefined } = { messages: 0 }
  do {
    state.last = await conversation.compact({ tell, signal, now: { keep } })
    if (state.last?.state === 'done') state.messages += state.last.messages
  } while (state.last?.state === 'done')
  const done = state.messages === 0 ? '' : `summarised: ${count(state.messages, 'message')}; the whole of them stays searchable\n`
  return `${done}${whyNot(state.last) ?? (done === '' ? 'nothing to summarise: the latest turn stays as it is\n' : '')}`
}

function whyNot(ended: Compaction | undefined): string | undefined {
  if (ended === undefined || ended.state === 'done' || ended.state === 'idle') return undefined
  const why = 'message' in ended ? visible(ended.message) : reasons[ended.state]
  const next = ended.state === 'waiting' ? `; the next attempt is possible at ${new Date(ended.until).toISOString()}` : ''
  return `not summarised: ${why}${next}\n`
}

const reasons = { cancelled: 'cancelled', changed: 'the conversation was changed meanwhile', busy: 'another process does it' }

async function costReport({ host, conversation }: Slash): Promise<string> {
  const [all, today] = await Promise.all([host.cost({ by: 'conversation', days: 3660, limit: 10_000 }), host.cost({ days: 1 })])
  const mine = all.rows.find(({ key }) => key === conversation.id)
  return `  this conversation  ${spendText(mine)}\n  today (UTC)        ${spendText(today.total)}\nbraidclaw cost shows more\n`
}

function spendText(spend: Spend | undefined): string {
  if (!spend || spend.calls === 0) return 'nothing yet'
  const { calls, inputTokens, outputTokens, cachedTokens: cachedInputTokens, micros, unpricedCalls } = spend
  const unpriced = unpricedCalls > 0 ? `, ${count(unpricedCalls, 'call')} without a known price` : ''
  const cost = unpricedCalls < calls ? { costMicros: micros } : {}
  const used = usageLine({ inputTokens, outputTokens, cachedInputTokens, ...cost })
  return `${count(calls, 'call')}${used ? `, ${used}` : ''}${unpriced}`
}

/** Switches to the model, or to the only one that has these words; else lists those that are configured and that their servers have. */
async function changeModel({ conversation, replace, setup }: Slash, words: string): Promise<string> {
  const isName = words.includes('/') || Object.hasOwn(setup.config.providers.models, words)
  const all = isName ? [] : await modelsToChoose(setup)
  const exact = all.filter((each) => each.endsWith(`/${words}`))
  const found = exact.length === 1 ? exact : all.filter((each) => each.toLowerCase().includes(words.toLowerCase()))
  const ids = all.map((each) => each.slice(each.indexOf('/') + 1))
  const near = found.length === 0 ? didYouMean(words, ids) : ''
  if (near !== '') return `no model matches ${quote(words)}${near}\n`
  if (words !== '' && found.length < 2) return `${(await replace({ model: found[0] ?? words })).model}\n`
  const rows = found.length < 2 ? [] : found.slice(0, shown).map((each) => `  ${visible(each)}\n`)
  const more = found.length > shown ? `  … and ${grouped(found.length - shown)} more: /model WORDS\n` : ''
  return `${words === '' ? `${conversation.model}\n` : ''}${rows.join('')}${more}`
}

/** Sets how much the model reasons, from the next turn on; `default` is what the configuration says. Alone, it shows the present level. */
async function changeEffort({ conversation: { model }, replace, setup: { config, context } }: Slash, word: string): Promise<string> {
  const [names, level] = [effortLevels.join(', '), effortLevels.find((each) => each === word)]
  if (word !== '' && !level) return `no level ${quote(word)}${didYouMean(word, effortLevels) || `; there are: ${names}`}\n`
  const asked = reachableProviders(config, config.defaultProvider).filter(isWireProvider)
  const file = await factsFileOf(context.home)
  const facts = await Promise.all(asked.map((each) => factsOf(each, modelOf(config, each), file)))
  if (level !== 'default' && facts.every(({ reasons }) => reasons?.value === false))
    return `${visible(model)} takes no effort: it is known not to reason (docs/models.md)\n`
  if (!level) return `effort: ${asked[0]?.effort ?? "the provider's own"}\nset it with /effort LEVEL: ${names}\n`
  await replace({ effort: level === 'default' ? undefined : level })
  return `effort: ${level === 'default' ? 'as configured' : level}, from the next turn on\n`
}

const shown = 20
/** A server that takes longer than this to list its models lists none. */
const askedMs = 2_000

async function modelsToChoose(setup: Slash['setup']): Promise<readonly string[]> {
  const { config } = setup
  const providers = Object.values(config.providers.models)
  const lists = await Promise.all(
    providers.map(async (provider) => {
      if (!isWireProvider(provider))
        return [provider.name === config.defaultProvider ? `${provider.name}/${config.defaultModel}` : provider.name]
      const isAsked = provider.kind !== 'plugin' && missingKey(setup, provider.name) === undefined
      const ids = (isAsked && (await within(askedMs, idsOf(setup, provider)))) || []
      return [modelOf(config, provider), ...ids].filter(Boolean).map((id) => `${provider.name}/${id}`)
    }),
  )
  return [...new Set(lists.flat())]
}
