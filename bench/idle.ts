#!/usr/bin/env bun

/**
 * What conversations cost that are open and say nothing: memory, processor time, descriptors, watches, children. `bun bench/idle.ts [N] [--json]`;
 * N is 1,000 when absent. Once as they are opened, and once after each has had a turn with a tool.
 */

import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { channelRows } from '../src/channels/list.ts'
import type { Conversation } from '../src/host/api.ts'
import { silentContext } from '../src/host/open/library.ts'
import { openHost } from '../src/host/open/open-host.ts'
import { loadSetup } from '../src/host/setup/setup.ts'
import { type ModelCall, modelCallProvider } from '../src/providers/model-call.ts'

const seconds = 5

const model: ModelCall = async function* (messages) {
  const last = messages.at(-1)
  if (last?.role === 'tool') yield { type: 'text', content: 'listed' }
  else yield { type: 'tool_use', name: 'file_list', input: { path: '.' } }
}

async function main(words: readonly string[]): Promise<void> {
  const count = Number(words.find((word) => /^\d+$/.test(word)) ?? 1_000)
  const folder = mkdtempSync(join(tmpdir(), 'braidclaw-bench-'))
  const [home, cwd] = [join(folder, 'home'), join(folder, 'work')]
  for (const each of [home, cwd]) mkdirSync(each)
  const setup = loadSetup(
    { ...silentContext({ channels: channelRows, home: join(home, '.braidclaw'), env: { HOME: home, PATH: process.env.PATH } }), cwd },
    { workspace: cwd },
  )
  const host = await openHost(setup)
  const provider = modelCallProvider(model)
  const begin = () => host.conversation({ kind: 'new' }, { channel: 'bench', provider })
  // What is loaded once is loaded by the first.
  await turn(await begin())
  const before = await rest()
  const open: Conversation[] = []
  for (let at = 0; at < count; at++) open.push(await begin())
  const opened = await rest()
  for (const conversation of open) await turn(conversation)
  const talked = await rest()
  const figures = {
    conversations: count,
    opened_mb: megabytes(opened.bytes - before.bytes),
    after_a_turn_mb: megabytes(talked.bytes - before.bytes),
    idle_cpu_percent: talked.cpu,
    more_descriptors: talked.descriptors - before.descriptors,
    more_children: talked.children - before.children,
  }
  await host.close()
  rmSync(folder, { recursive: true, force: true })
  console.log(
    words.includes('--json')
      ? JSON.stringify(figures)
      : Object.entries(figures)
          .map(([name, value]) => `${name} ${value}`)
          .join('\n'),
  )
}

async function turn(conversation: Conversation): Promise<void> {
  for await (const event of conversation.run('What is here?')) if (event.type === 'error') throw new Error(event.message)
}

/** After some seconds in which nothing happens. */
async function rest() {
  Bun.gc(true)
  await Bun.sleep(200)
  Bun.gc(true)
  const used = process.cpuUsage()
  await Bun.sleep(seconds * 1_000)
  const { user, system } = process.cpuUsage(used)
  return {
    bytes: process.memoryUsage.rss(),
    cpu: Math.round((user + system) / seconds / 1_000) / 10,
    descriptors: readdirSync('/proc/self/fd').length,
    children: readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8').split(' ').length,
  }
}

const megabytes = (bytes: number) => Math.round(bytes / 1e5) / 10

if (import.meta.main) await main(process.argv.slice(2))
