/** `memory list | search | show | clear | export | pin | pins | unpin`. */

import { mkdirSync } from 'node:fs'
import type { CliContext } from '../../../channels/terminal/context.ts'
import { createRecord, inRecordWords, withMemory } from '../../../host/integrity/recovery.ts'
import { resolveConversation } from '../../../host/run/find-conversation.ts'
import { personaOf } from '../../../host/setup/agent-profile.ts'
import { setUp } from '../../../host/setup/setup.ts'
import { count } from '../../../kit/count.ts'
import type { JsonObject } from '../../../kit/json.ts'
import { flat } from '../../../kit/plain.ts'
import { agentFolder } from '../../../memory/agent-files/agent-folder.ts'
import { openPins } from '../../../memory/agent-files/agent-memory.ts'
import type { Pin, Pinned, Pins } from '../../../memory/agent-files/pins.ts'
import { clearing } from '../../../receipts/without-run.ts'
import type { Json } from '../../args/flags.ts'
import { CliExit, exitCodes } from '../../exit.ts'
import type { AgentOnly, ClearFlags, ListFlags } from '../../routes/types.ts'

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

/** It leaves a receipt, so that a clear and a loss look different; when that cannot be written, nothing is deleted. */
export async function clear(this: CliContext, { yes = false, json = false }: ClearFlags): Promise<void> {
  const setup = setUp(this)
  await withMemory(setup, (memory) => {
    const record = createRecord({ ...setup, redact: setup.redactor.json }, memory)
    const leave = (input: JsonObject) => void record.deed({ conversationId: 'none', tool: clearing, input, risk: 'medium' })
    const cleared = inRecordWords(() => memory.conversations.clear({ yes, leave }))
    if (!cleared.ok) throw new CliExit(exitCodes.usage, `error: ${cleared.message}`)
    this.process.stdout.write(
      json
        ? `${JSON.stringify(cleared)}\n`
        : `forgot ${count(cleared.conversations, 'conversation')} (${count(cleared.turns, 'turn')}); receipts stay${underWay(cleared)}\n`,
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

/** What somebody is just talking about is not forgotten under him. */
function underWay({ underWay: runs }: { readonly underWay: number }): string {
  return runs === 0 ? '' : `, and so ${runs === 1 ? 'does' : 'do'} ${count(runs, 'run')} still under way; clear again when that is over`
}

type PinFlags = Json & AgentOnly

export function pin(this: CliContext, { agent, json = false }: PinFlags, ...words: string[]): void {
  const text = this.redactor.text(words.join(' '))
  const pinned = mustPin(pinsToChange(this, agent).add(text))
  this.process.stdout.write(json ? `${JSON.stringify(pinned)}\n` : `pinned as ${pinned.number}: ${pinned.text}\n`)
}

export function unpin(this: CliContext, { agent, json = false }: PinFlags, number: number): void {
  const unpinned = mustPin(pinsToChange(this, agent).remove(number))
  this.process.stdout.write(json ? `${JSON.stringify(unpinned)}\n` : `unpinned: ${unpinned.text}\n`)
}

export function pins(this: CliContext, { agent, json = false }: PinFlags): void {
  const { pins: found, unreadable, trouble } = openPins(pinsOf(this, agent)).list()
  if (trouble !== undefined) throw new CliExit(exitCodes.error, `error: ${trouble}`)
  if (unreadable > 0) this.process.stderr.write(`warning: pins.jsonl has ${count(unreadable, 'unreadable line')}, left aside\n`)
  if (found.length === 0 && !json) this.process.stderr.write('nothing is pinned\n')
  this.process.stdout.write(json ? `${JSON.stringify(found)}\n` : found.map(pinLine).join(''))
}

function pinLine({ number, text }: Pin): string {
  return `${number}  ${text.replaceAll('\n', '\n   ')}\n`
}

/** The folder of the agent that is meant. @throws CliExit 2 when there is no such agent */
function pinsOf(context: CliContext, agent: string | undefined): Parameters<typeof openPins>[0] {
  const setup = setUp(context, agent === undefined ? {} : { agent })
  const { config, paths, log } = setup
  const folder = agentFolder({ agents: paths.agents, id: personaOf(setup).id, chosen: config.memory.agentDir })
  return { folder, now: Date.now, log }
}

function pinsToChange(context: CliContext, agent: string | undefined): Pins {
  const options = pinsOf(context, agent)
  mkdirSync(options.folder, { recursive: true, mode: 0o700 })
  return openPins(options)
}

function mustPin(pinned: Pinned): Pin {
  if (pinned.ok) return pinned.pin
  throw new CliExit(exitCodes.error, `error: ${pinned.message}`)
}

const when = (at: number) => new Date(at).toISOString().slice(0, 16).replace('T', ' ')
