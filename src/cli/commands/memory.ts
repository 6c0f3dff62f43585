/** `memory list | search | show | clear | export`. */

import { resolveConversation } from '../conversation.ts'
import { CliExit, exitCodes } from '../exit.ts'
import { withMemory } from '../records.ts'
import type { Json } from '../routes/flags.ts'
import type { ClearFlags, ListFlags } from '../routes/types.ts'
import { setUp } from '../setup.ts'
import type { CliContext } from '../world.ts'

export async function list(this: CliContext, { limit, json = false }: ListFlags): Promise<void> {
  await withMemory(setUp(this), ({ conversations }) => {
    const found = conversations.list({ limit })
    if (json) return this.process.stdout.write(`${JSON.stringify(found)}\n`)
    if (found.length === 0) this.process.stderr.write('no conversations yet\n')
    for (const { conversationId, updated, turns, title } of found) {
      this.process.stdout.write(`${conversationId}  ${when(updated)}  ${String(turns).padStart(3)}  ${flat(title)}\n`)
    }
  })
}

export async function search(this: CliContext, { limit, json = false }: ListFlags, ...words: string[]): Promise<void> {
  await withMemory(setUp(this), (memory) => {
    const hits = memory.search({ query: words.join(' '), limit })
    if (json) return this.process.stdout.write(`${JSON.stringify(hits)}\n`)
    if (hits.length === 0) this.process.stderr.write(`nothing found for "${words.join(' ')}"\n`)
    for (const { conversationId, at, role, snippet } of hits) {
      this.process.stdout.write(`${conversationId}  ${when(at)}  ${role.padEnd(9)}  ${flat(snippet)}\n`)
    }
  })
}

export async function show(this: CliContext, { json = false }: Json, id: string): Promise<void> {
  await withMemory(setUp(this), (memory) => {
    const turns = memory.conversations.show(resolveConversation(memory, id))
    if (json) return this.process.stdout.write(`${JSON.stringify(turns)}\n`)
    for (const { timestamp, role, content, tool_calls, tool_results } of turns) {
      const tools = [tool_calls, tool_results].flatMap((each) => (each ? [`  ${JSON.stringify(each)}\n`] : [])).join('')
      this.process.stdout.write(`[${timestamp}] ${role}\n${content === '' ? '' : `  ${content.replaceAll('\n', '\n  ')}\n`}${tools}`)
    }
  })
}

export async function clear(this: CliContext, { yes = false, json = false }: ClearFlags): Promise<void> {
  await withMemory(setUp(this), ({ conversations }) => {
    const cleared = conversations.clear({ yes })
    if (!cleared.ok) throw new CliExit(exitCodes.usage, `error: ${cleared.message}`)
    this.process.stdout.write(
      json ? `${JSON.stringify(cleared)}\n` : `forgot ${cleared.conversations} conversations (${cleared.turns} turns); receipts stay\n`,
    )
  })
}

export async function exportAll(this: CliContext, _flags: NonNullable<unknown>, id?: string): Promise<void> {
  await withMemory(setUp(this), (memory) => {
    for (const line of memory.conversations.exportJsonl(id === undefined ? undefined : resolveConversation(memory, id))) {
      this.process.stdout.write(line.endsWith('\n') ? line : `${line}\n`)
      if (this.outputClosed()) return
    }
  })
}

const when = (at: number) => new Date(at).toISOString().slice(0, 16).replace('T', ' ')

const flat = (text: string) => text.replace(/\s+/g, ' ').trim()
