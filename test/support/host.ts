/** Opens a host over the test's own home and workspace, in this process, with a model that is a function. */

import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { channelRows } from '../../src/channels/list.ts'
import type { Conversation, Host, Setup } from '../../src/host/api.ts'
import { silentContext } from '../../src/host/open/library.ts'
import { openHost } from '../../src/host/open/open-host.ts'
import { loadSetup } from '../../src/host/setup/setup.ts'
import { type ModelCall, modelCallProvider } from '../../src/providers/model-call.ts'
import type { AgentEvent } from '../../src/runtime/event.ts'

export type Place = {
  readonly home: string
  readonly cwd: string
  setup(flags?: Parameters<typeof loadSetup>[1], log?: (line: string) => void): Setup
  host(flags?: Parameters<typeof loadSetup>[1]): Promise<Host>
  [Symbol.dispose](): void
}

export function place(config = ''): Place {
  const dir = mkdtempSync(join(tmpdir(), 'braidclaw-place-'))
  const [home, cwd] = [join(dir, '.braidclaw'), join(dir, 'work')]
  for (const folder of [home, cwd]) mkdirSync(folder)
  writeFileSync(join(cwd, 'notes.md'), 'hello\n')
  writeFileSync(join(home, 'config.toml'), config)
  const env = { HOME: dir, PATH: process.env.PATH }
  const setup: Place['setup'] = (flags, log) =>
    loadSetup({ ...silentContext({ channels: channelRows, home, env, ...(log ? { log } : {}) }), cwd }, { workspace: cwd, ...flags })
  return {
    home,
    cwd,
    setup,
    host: (flags) => openHost(setup(flags)),
    [Symbol.dispose]: () => rmSync(dir, { recursive: true, force: true }),
  }
}

/** Opens a host over a home of another test helper. */
export function hostOf(home: string, workspace: string, user = workspace): Promise<Host> {
  const context = { ...silentContext({ channels: channelRows, home, env: { HOME: user, PATH: process.env.PATH } }), cwd: workspace }
  return openHost(loadSetup(context, { workspace }), { ahead: false })
}

/** A model that calls this tool for each question, and then repeats the tool's result. */
export function calling(name: string, input: object): ModelCall {
  return async function* (messages) {
    const last = messages.at(-1)
    if (last?.role === 'tool') yield { type: 'text', content: last.content }
    else yield { type: 'tool_use', name, input: { ...input } }
  }
}

export const says = (text: string): ModelCall =>
  async function* () {
    yield { type: 'text', content: text }
  }

/** A model that answers when the test says so, or never. */
export function waiting(): { readonly model: ModelCall; readonly asked: () => number; go(): void } {
  const gate = Promise.withResolvers<void>()
  const state = { asked: 0 }
  return {
    async *model() {
      state.asked += 1
      await gate.promise
      yield { type: 'text', content: 'at last' }
    },
    asked: () => state.asked,
    go: gate.resolve,
  }
}

export function begin(host: Host, model: ModelCall, more: object = {}): Promise<Conversation> {
  return host.conversation({ kind: 'new' }, { channel: 'test', provider: modelCallProvider(model), ...more })
}

export async function events(conversation: Conversation, message = 'go', signal?: AbortSignal): Promise<AgentEvent[]> {
  return Array.fromAsync(conversation.run(message, signal))
}

/** Counts the system resources that this process holds. */
export function held(): { readonly descriptors: number; readonly watches: number; readonly children: number } {
  const fds = readdirSync('/proc/self/fdinfo')
  const infos = fds.map((fd) => {
    try {
      return readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8')
    } catch {
      return ''
    }
  })
  const watches = infos.flatMap((info) => info.split('\n').filter((line) => line.startsWith('inotify'))).length
  return { descriptors: fds.length, watches, children: childrenOf(process.pid) }
}

function childrenOf(pid: number): number {
  return readdirSync('/proc').filter((name) => {
    try {
      const [state, parent] = (/^\d+ \(.*\) (.*)$/s.exec(readFileSync(`/proc/${name}/stat`, 'utf8'))?.[1] ?? '').split(' ')
      return Number(parent) === pid && state !== 'Z'
    } catch {
      return false
    }
  }).length
}
