/** A home with MCP servers: it writes their files, approves them, and opens the tools of a conversation as a turn does. */

import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createHostContext } from '../../src/host/setup/context.ts'
import { policyOf } from '../../src/host/setup/effective-policy.ts'
import { loadSetup } from '../../src/host/setup/setup.ts'
import { openMcp } from '../../src/host/toolset/guests/mcp/open-mcp.ts'
import { createToolRuntime } from '../../src/host/toolset/tool-executor.ts'
import { everything } from '../../src/host/toolset/tools-option.ts'
import type { JsonObject } from '../../src/kit/json.ts'
import type { Judgement } from '../../src/runtime/event.ts'
import type { SandboxKind } from '../../src/sandbox/contract.ts'

export const signal = () => AbortSignal.timeout(30_000)

export const echo = {
  name: 'echo',
  description: 'Says the text again',
  inputSchema: { type: 'object', properties: { text: { type: 'string' } } },
} as const

const own = join(import.meta.dir, 'small-server.mjs')

type StageOptions = {
  readonly config?: string
  readonly env?: { readonly [name: string]: string }
  readonly sandbox?: SandboxKind
  /** The home of a person that is there already, with its workspace. */
  readonly at?: { readonly home: string; readonly workspace: string }
}

export function guestStage({ config = '', env = {}, sandbox = 'auto', at }: StageOptions = {}) {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'braidclaw-mcp-')))
  const { home: user, workspace } = at ?? { home: join(root, 'home'), workspace: join(root, 'ws') }
  const servers = join(root, 'servers')
  const home = join(user, '.braidclaw')
  for (const path of [workspace, home, servers]) mkdirSync(path, { recursive: true })
  writeFileSync(join(home, 'config.toml'), `workspace_dir = "${workspace}"\n${config}`)
  const lines: string[] = []
  const load = () => {
    const context = createHostContext({ env: { HOME: user, ...env }, channels: [], say: (line) => void lines.push(line) })
    return loadSetup({ ...context, cwd: workspace })
  }
  /** Writes the tools of a small server. @returns its table */
  const small = (id: string, tools: readonly object[] = [echo], more: JsonObject = {}): JsonObject => {
    const file = join(servers, `${id}.json`)
    writeFileSync(file, JSON.stringify(tools))
    const folders = [servers, import.meta.dir]
    return { command: 'node', args: [own, file], ...more, permissions: { folders, ...Object(more.permissions) } }
  }
  const mcp = () => openMcp({ setup: load(), sandbox })
  /** Approves a configured server with all that it offers. */
  const approve = async (id: string) => {
    const opened = mcp()
    try {
      await opened.allowStart(id)
      const status = await opened.probe(id, signal())
      if ('why' in status) throw new Error(status.why)
      await opened.approve(id, status)
      return status
    } finally {
      await opened.close()
    }
  }
  const add = async (id: string, table: JsonObject) => {
    await mcp().add(id, table)
    return approve(id)
  }
  const open = async () => {
    const setup = load()
    const policy = policyOf(setup.config, setup.paths, setup.context.env)
    return createToolRuntime({ setup, policy, conversationId: 'c', tools: everything(setup), sandbox })
  }
  const on = (runtime: Awaited<ReturnType<typeof open>>) => {
    const judge = (name: string, input: JsonObject = {}) => runtime.judge({ id: 'c1', name, input })
    const act = (judgement: Judgement, name: string, input: JsonObject = {}) =>
      runtime.act({ type: 'act', id: 'c1', call: { id: 'c1', name, input }, judgement }, signal())
    return { judge, act, call: async (name: string, input: JsonObject = {}) => act(await judge(name, input), name, input) }
  }
  /** Returns what small servers that see no workspace wrote down. */
  const calls = () => {
    const states = join(home, 'mcp', 'state')
    const folders = existsSync(states) ? readdirSync(states) : []
    return folders
      .flatMap((name) => (existsSync(join(states, name, 'calls.log')) ? [readFileSync(join(states, name, 'calls.log'), 'utf8')] : []))
      .join('')
  }
  const dispose = () => rmSync(root, { recursive: true, force: true })
  return { root, user, home, workspace, servers, lines, load, small, mcp, approve, add, open, on, calls, [Symbol.dispose]: dispose }
}
