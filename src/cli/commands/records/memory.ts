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
import { clearConversations } from '../../../memory/conversations/delete-conversations.ts'
import { createSearch } from '../../../memory/conversations/search-turns.ts'
import { clearing } from '../../../receipts/without-run.ts'
import { command, type Flags } from '../../args/command.ts'
import { agentFlag, jsonFlag, limitOf20 } from '../../args/turn-flags.ts'
import { usageError } from '../../exit.ts'
import { printList, printOne } from '../../print-list.ts'

export const list = command({
  flags: { ...limitOf20, ...jsonFlag },
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
})

export const search = command({
  flags: { limit: { ...limitOf20.limit, default: 10 }, ...jsonFlag },
  args: { query: { type: 'text', many: true, about: 'Words to look for' } },
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
})

export const show = command({
  flags: jsonFlag,
  args: { conversation: { type: 'text', about: 'Conversation id, or "last"' } },
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
})

/** Writes a receipt first, so that a deletion and a loss can be told apart; when that fails, it deletes nothing. */
export const clear = command({
  flags: { yes: { type: 'boolean', about: 'Really' }, ...jsonFlag },
  examples: [['--yes', 'this cannot be undone']],
  exits: [9],
  async run(context, { yes = false, json = false }) {
    const setup = loadSetup(context)
    await withRecords(setup, ({ memory, record }) => {
      const leave = (input: JsonObject) => void record.recordAction({ conversationId: 'none', tool: clearing, input, risk: 'medium' })
      const cleared = inRecordWords(() => clearConversations(memory, { yes, leave }))
      if (!cleared.ok) throw usageError(cleared.message)
      const { conversations, turns } = cleared
      const text = `forgot ${count(conversations, 'conversation')} (${count(turns, 'turn')}); receipts stay${underWay(cleared)}\n`
      printOne(context, { json, value: cleared, text })
    })
  },
})

export const exportAll = command({
  args: { conversation: { type: 'text', optional: true, about: 'Only this conversation' } },
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
})

/** Reports the running turns, whose conversations are not deleted. */
function underWay({ underWay: runs }: { readonly underWay: number }): string {
  return runs === 0 ? '' : `, and so ${runs === 1 ? 'does' : 'do'} ${count(runs, 'run')} still under way; clear again when that is over`
}

const when = (at: number) => new Date(at).toISOString().slice(0, 16).replace('T', ' ')

const flags = { ...agentFlag, ...jsonFlag } as const satisfies Flags

export const pin = command({
  flags,
  args: { fact: { type: 'text', many: true, about: 'What is to be kept, word for word' } },
  examples: [['"I live in Lisbon"', 'for the agent of every turn']],
  run(context, { agent, json = false }, { fact: words }) {
    const pinned = pinsOf(context, agent).add(words.join(' '))
    printOne(context, { json, value: pinned, text: `pinned as ${pinned.number}: ${pinned.text}\n` })
  },
})

export const pins = command({
  flags,
  examples: [['--agent coder', 'to one agent']],
  run(context, { agent, json = false }) {
    const { pins: found, unreadable } = pinsOf(context, agent).listed()
    if (unreadable > 0) context.process.stderr.write(`warning: pins.jsonl has ${count(unreadable, 'unreadable line')}, left aside\n`)
    printList(context, { items: found, json, lines: found.map(pinLine), none: 'nothing is pinned' })
  },
})

export const unpin = command({
  flags,
  args: { number: { type: 'whole', about: 'As "memory pins" shows it' } },
  examples: [['2', 'the second']],
  run(context, { agent, json = false }, { number }) {
    const unpinned = pinsOf(context, agent).remove(number)
    printOne(context, { json, value: unpinned, text: `unpinned: ${unpinned.text}\n` })
  },
})

function pinLine({ number, text }: Pin): string {
  return `${number}  ${text.replaceAll('\n', '\n   ')}`
}

/** @throws FailureError `usage` when no agent has that id */
function pinsOf(context: CliContext, agent: string | undefined): PinRecords {
  return pinRecords(loadSetup(context, agent === undefined ? {} : { agent }))
}
