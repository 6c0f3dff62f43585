/** The registry of MCP servers of seed 003: its listing runs word for word, over an official server in the sandbox. */

import { afterAll, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  type AuthConfig,
  createMcpRegistry,
  type MCPClient,
  type MCPMatch,
  type MCPServerConfig,
  type SearchOptions,
} from '../../src/library/agent/mcp-registry.ts'
import { given, needs } from '../support/needs.ts'
import { notesServer } from '../support/notes-server.ts'

const home = mkdtempSync(join(tmpdir(), 'braidclaw-registry-'))
afterAll(() => rmSync(home, { recursive: true, force: true }))
const foreign = join(import.meta.dir, '../control/foreign/node_modules')
const modules = existsSync(foreign) ? realpathSync(foreign) : foreign
const options = { home: join(home, '.braidclaw'), workspace: home, env: { HOME: home } }

const serverOf = (id: string): MCPServerConfig => ({
  ...{ id, name: id, transport: 'stdio' },
  command: ['node', join(modules, `@modelcontextprotocol/server-${id}/dist/index.js`)],
  permissions: { folders: [modules] },
})

type Registry = ReturnType<typeof createMcpRegistry>
type MCPTool = Parameters<Registry['tools']['register']>[0]
type MCPResource = Parameters<Registry['resources']['register']>[0]
type MCPPrompt = Parameters<Registry['prompts']['register']>[0]
type ToolMatch = MCPMatch<'tool', MCPTool>
type ResourceMatch = MCPMatch<'resource', MCPResource>
type PromptMatch = MCPMatch<'prompt', MCPPrompt>
type ToolResult = { readonly text: string; readonly isError: boolean }
type ResourceContent = ToolResult
type PromptContent = ToolResult
type ResourceUpdate = { readonly uri: string }

// biome-ignore-start format: the listings of the seed as they stand there, but that TypeScript wants a place for `args` before `serverId`
type SeedRegistry = {
  // === Tools ===
  tools: {
    search: (query: string, options?: SearchOptions) => Promise<ToolMatch[]>
    register: (tool: MCPTool, serverId: string) => Promise<void>
    execute: (name: string, args: unknown, serverId: string) => Promise<ToolResult>
  }

  // === Resources ===
  resources: {
    search: (query: string, options?: SearchOptions) => Promise<ResourceMatch[]>
    register: (resource: MCPResource, serverId: string) => Promise<void>
    read: (uri: string, serverId: string) => Promise<ResourceContent>
    subscribe?: (uri: string, serverId: string) => AsyncIterable<ResourceUpdate>
  }

  // === Prompts ===
  prompts: {
    search: (query: string, options?: SearchOptions) => Promise<PromptMatch[]>
    register: (prompt: MCPPrompt, serverId: string) => Promise<void>
    get: (name: string, args: unknown | undefined, serverId: string) => Promise<PromptContent>
  }

  // === Context Optimization ===
  discoverRelevant: (intent: string) => Promise<{ tools: ToolMatch[]; resources: ResourceMatch[]; prompts: PromptMatch[] }>

  // === Server Management ===
  servers: {
    add: (config: SeedServerConfig) => Promise<MCPClient>
    remove: (serverId: string) => Promise<void>
    list: () => SeedServerConfig[]
  }
}

type SeedServerConfig = {
  id: string
  name: string
  transport: 'http' | 'stdio'
  url?: string // For HTTP
  command?: string[] // For stdio
  auth?: AuthConfig
}
// biome-ignore-end format: see above

/** The registry has the type of the listing, and its configuration is one of the registry. */
const listed = (registry: Registry): SeedRegistry => registry
const accepted = (config: SeedServerConfig): MCPServerConfig => config

test('the members are those of the listing, and no others', () => {
  const { discoverRelevant, ...groups } = listed(createMcpRegistry(options))
  expect(typeof discoverRelevant).toBe('function')
  expect(Object.entries(groups).map(([name, group]) => `${name}: ${Object.keys(group).join(' ')}`)).toEqual([
    'tools: search register execute',
    'resources: search register read subscribe',
    'prompts: search register get',
    'servers: add remove list',
  ])
  expect(accepted({ id: 'a', name: 'A', transport: 'http', url: 'https://a.example', auth: { token: 't' } }).id).toBe('a')
})

describe('what is refused', () => {
  const registry = createMcpRegistry(options)

  test('a configuration that lacks what it needs, and a program that is not there; nothing of them stays', async () => {
    const add = (config: Partial<MCPServerConfig>) => registry.servers.add({ id: 'a', name: 'A', transport: 'stdio', ...config })
    await expect(add({})).rejects.toThrow('the MCP server "a" needs a program as "command"')
    await expect(add({ transport: 'http', url: 'file:///etc/passwd' })).rejects.toThrow('needs an http or https address as "url"')
    await expect(add({ command: ['/nowhere/server'] })).rejects.toThrow('the MCP server a cannot be used: ')
    expect(registry.servers.list()).toEqual([])
  })

  test('a private address, a server that was not added, and arguments that are no object', async () => {
    const inside = { id: 'b', name: 'B', transport: 'http', url: 'http://169.254.169.254/mcp' } as const
    await expect(registry.servers.add(inside)).rejects.toThrow('the MCP server b cannot be used: ')
    await expect(registry.tools.execute('echo', {}, 'b')).rejects.toThrow('no MCP server "b"')
    await expect(registry.tools.execute('echo', 'x', 'b')).rejects.toThrow('no MCP server "b"')
    await expect(registry.prompts.get('echo', 'x', 'b')).rejects.toThrow('echo takes its arguments as an object of JSON values; got "x"')
  })
})

describe.if(
  given(existsSync(join(foreign, '@modelcontextprotocol')), 'the official servers (scripts/setup-debian --tests)') &&
    needs('bwrap', 'node'),
)('over an official server', () => {
  test('it finds, calls, reads and gets, and the server sees no file and reaches no host', async () => {
    const registry = createMcpRegistry(options)
    const client = await registry.servers.add(serverOf('everything'))
    expect([client.id, client.server.name]).toEqual(['everything', expect.stringContaining('everything')])
    await expect(registry.servers.add(serverOf('everything'))).rejects.toThrow('there is an MCP server "everything" already')
    const [match] = await registry.tools.search('echo a message back', { serverId: 'everything' })
    expect(match).toMatchObject({ serverId: 'everything', tool: { name: 'echo' }, score: expect.any(Number) })
    expect(await registry.tools.execute('echo', { message: 'hi' }, 'everything')).toMatchObject({ text: 'Echo: hi', isError: false })
    expect((await registry.tools.execute('no-such-tool', {}, 'everything')).isError).toBe(true)
    const found = await registry.discoverRelevant('get the environment variables')
    expect(found.tools.map(({ tool }) => tool.name)).toContain('get-env')
    expect((await registry.tools.execute('get-env', {}, 'everything')).text).not.toContain(process.env.USER ?? 'nobody knows')
    const [prompt] = await registry.prompts.search('simple prompt')
    expect((await registry.prompts.get(prompt?.prompt.name ?? '', undefined, 'everything')).text).not.toBe('')
    await registry.servers.remove('everything')
    expect([registry.servers.list(), await registry.tools.search('echo')]).toEqual([[], []])
    await expect(registry.tools.execute('echo', { message: 'hi' }, 'everything')).rejects.toThrow('no MCP server "everything"')
  })
})

test.if(needs('bwrap', 'node'))('the example of the page prints what stands there', async () => {
  const [, section = ''] = readFileSync(join(import.meta.dir, '../../docs/library-data.md'), 'utf8').split('## MCP servers\n')
  const [code = '', printed] = [...section.matchAll(/```(?:ts)?\n([\s\S]*?)```/g)].map(([, block = '']) => block)
  const cwd = join(home, 'work')
  mkdirSync(cwd)
  writeFileSync(join(cwd, 'notes.mjs'), notesServer)
  writeFileSync(
    join(cwd, 'program.ts'),
    code.replace("'braidclaw/mcp'", JSON.stringify(join(import.meta.dir, '../../src/library/agent/mcp-registry.ts'))),
  )
  const bun = [process.execPath, '--config=/dev/null', '--no-env-file']
  const env = { PATH: '/usr/bin:/bin', HOME: home, BRAIDCLAW_HOME: options.home }
  const child = Bun.spawn([...bun, join(cwd, 'program.ts')], { cwd, env, stdout: 'pipe', stderr: 'pipe' })
  expect([await child.stdout.text(), await child.stderr.text()]).toEqual([printed ?? '', ''])
})

test('on Node it says what it needs', async () => {
  const { createMcpRegistry: onNode } = await import('../../src/library/remote/mcp-registry.ts')
  expect(onNode).toThrow('braidclaw/mcp needs Bun')
})
