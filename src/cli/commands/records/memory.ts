/** Implements `memory list | search | show | clear | export | pin | pins | unpin`. */

import type { CliContext } from '../../../channels/terminal/context.ts'
import { withMemory, withRecords } from '../../../host/open/open-records.ts'
import { inRecordWords } from '../../../host/records/integrity/create-record.ts'
import { type PinRecords, pinRecords } from '../../../host/records/pins.ts'
import { resolveConversation } from '../../../host/run/find-conversation.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import type { JsonObject } from '../../../kit/json.ts'
import { count, flat } from '../../../kit/text.ts'
import type { Pin } from '../../../memory/agent-files/pins.ts'
import { createSearch } from '../../../memory/conversations/search-turns.ts'
import { clearing } from '../../../receipts/without-run.ts'
import type { Arguments, Command, Flags } from '../../args/command.ts'
import { agentFlag, jsonFlag, limitOf20 } from '../../args/turn-flags.ts'
import { CliExit, exitCodes } from '../../exit.ts'
import { printList } from '../../print-list.ts'

const listFlags = { ...limitOf20, ...jsonFlag } as const satisfies Flags
const searchFlags = { limit: { ...limitOf20.limit, default: 10 }, ...jsonFlag } as const satisfies Flags
const searchArgs = { query: { type: 'text', many: true, about: 'Words to look for' } } as const satisfies Arguments
const showArgs = { conversation: { type: 'text', about: 'Conversation id, or "last"' } } as const satisfies Arguments
const clearFlags = { yes: { type: 'boolean', about: 'Really' }, ...jsonFlag } as const satisfies Flags
const exportArgs = { conversation: { type: 'text', optional: true, about: 'Only this conversation' } } as const satisfies Arguments

export const list = {
  flags: listFlags,
  examples: [['--limit 5', 'the latest five']],
  exits: [9],
  async run(context, { limit, json = false }) {
    await withMemory(loadSetup(context), ({ conversations }) => {
      const found = conversations.list({ limit })
      const lines = found.map(
        ({ conversationId, updated, turns, title }) => `${conversationId}  ${when(updated)}  ${String(turns).padStart(3)}  ${flat(title)}`,
      )
      printList(context, { items: found, json, lines, none: 'no conversations yet' })
    })
  },
} as const satisfies Command<typeof listFlags>

export const search = {
  flags: searchFlags,
  args: searchArgs,
  examples: [['"previous topic"', 'best matches first']],
  exits: [9],
  async run(context, { limit, json = false }, { query: words }) {
    await withMemory(loadSetup(context), (memory) => {
      const hits = createSearch(memory.store, Date.now)({ query: words.join(' '), limit })
      const lines = hits.map(
        ({ conversationId, at, role, snippet }) => `${conversationId}  ${when(at)}  ${role.padEnd(9)}  ${flat(snippet)}`,
      )
      printList(context, { items: hits, json, lines, none: `nothing found for "${words.join(' ')}"` })
    })
  },
} as const satisfies Command<typeof searchFlags, typeof searchArgs>

export const show = {
  flags: jsonFlag,
  args: showArgs,
  examples: [
    ['last', 'the latest'],
    ['conversation_4q2fqk8fd4spk980 --json', 'one of "memory list", for scripts'],
  ],
  exits: [9],
  async run(context, { json = false }, { conversation: id }) {
    await withMemory(loadSetup(context), (memory) => {
      const turns = memory.conversations.show(resolveConversation(memory, id))
      if (json) return context.process.stdout.write(`${JSON.stringify(turns)}\n`)
      for (const { timestamp, role, content, tool_calls, tool_results } of turns) {
        const tools = [tool_calls, tool_results].flatMap((each) => (each ? [`  ${JSON.stringify(each)}\n`] : [])).join('')
        context.process.stdout.write(`[${timestamp}] ${role}\n${content === '' ? '' : `  ${content.replaceAll('\n', '\n  ')}\n`}${tools}`)
      }
    })
  },
} as const satisfies Command<typeof jsonFlag, typeof showArgs>

/** Writes a receipt first, so that a deletion and a loss can be told apart; when that fails, it deletes nothing. */
export const clear = {
  flags: clearFlags,
  examples: [['--yes', 'this cannot be undone']],
  exits: [9],
  async run(context, { yes = false, json = false }) {
    const setup = loadSetup(context)
    await withRecords(setup, ({ memory, record }) => {
      const leave = (input: JsonObject) => void record.recordAction({ conversationId: 'none', tool: clearing, input, risk: 'medium' })
      const cleared = inRecordWords(() => memory.conversations.clear({ yes, leave }))
      if (!cleared.ok) throw new CliExit(exitCodes.usage, `error: ${cleared.message}`)
      context.process.stdout.write(
        json
          ? `${JSON.stringify(cleared)}\n`
          : `forgot ${count(cleared.conversations, 'conversation')} (${count(cleared.turns, 'turn')}); receipts stay${underWay(cleared)}\n`,
      )
    })
  },
} as const satisfies Command<typeof clearFlags>

export const exportAll = {
  args: exportArgs,
  examples: [
    ['> memory.jsonl', 'everything'],
    ['last', 'the latest conversation'],
  ],
  exits: [9],
  async run(context, _, { conversation: id }) {
    await withMemory(loadSetup(context), (memory) => {
      for (const line of memory.conversations.exportJsonl(id === undefined ? undefined : resolveConversation(memory, id))) {
        context.process.stdout.write(line.endsWith('\n') ? line : `${line}\n`)
        if (context.outputClosed()) return
      }
    })
  },
} as const satisfies Command<Flags, typeof exportArgs>

/** Reports the running turns, whose conversations are not deleted. */
function underWay({ underWay: runs }: { readonly underWay: number }): string {
  return runs === 0 ? '' : `, and so ${runs === 1 ? 'does' : 'do'} ${count(runs, 'run')} still under way; clear again when that is over`
}

const when = (at: number) => new Date(at).toISOString().slice(0, 16).replace('T', ' ')

const flags = { ...agentFlag, ...jsonFlag } as const satisfies Flags
const pinArgs = { fact: { type: 'text', many: true, about: 'What is to be kept, word for word' } } as const satisfies Arguments
const unpinArgs = { number: { type: 'whole', about: 'As "memory pins" shows it' } } as const satisfies Arguments

export const pin = {
  flags,
  args: pinArgs,
  examples: [['"I live in Lisbon"', 'for the agent of every turn']],
  run(context, { agent, json = false }, { fact: words }) {
    const pinned = pinsOf(context, agent).add(words.join(' '))
    context.process.stdout.write(json ? `${JSON.stringify(pinned)}\n` : `pinned as ${pinned.number}: ${pinned.text}\n`)
  },
} as const satisfies Command<typeof flags, typeof pinArgs>

export const pins = {
  flags,
  examples: [['--agent coder', 'to one agent']],
  run(context, { agent, json = false }) {
    const { pins: found, unreadable } = pinsOf(context, agent).listed()
    if (unreadable > 0) context.process.stderr.write(`warning: pins.jsonl has ${count(unreadable, 'unreadable line')}, left aside\n`)
    if (found.length === 0 && !json) context.process.stderr.write('nothing is pinned\n')
    context.process.stdout.write(json ? `${JSON.stringify(found)}\n` : found.map(pinLine).join(''))
  },
} as const satisfies Command<typeof flags>

export const unpin = {
  flags,
  args: unpinArgs,
  examples: [['2', 'the second']],
  run(context, { agent, json = false }, { number }) {
    const unpinned = pinsOf(context, agent).remove(number)
    context.process.stdout.write(json ? `${JSON.stringify(unpinned)}\n` : `unpinned: ${unpinned.text}\n`)
  },
} as const satisfies Command<typeof flags, typeof unpinArgs>

function pinLine({ number, text }: Pin): string {
  return `${number}  ${text.replaceAll('\n', '\n   ')}\n`
}

/** @throws FailureError `usage` when no agent has that id */
function pinsOf(context: CliContext, agent: string | undefined): PinRecords {
  return pinRecords(loadSetup(context, agent === undefined ? {} : { agent }))
}
