/** Tests the client with the official servers, unmodified: over pipes in the real sandbox, and over both HTTP transports on loopback. */

import { describe, expect, test } from 'bun:test'
import { existsSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { McpConnection, McpTransport } from '../../src/mcp/contract.ts'
import { createSandbox } from '../../src/sandbox/create-sandbox.ts'
import { place } from '../../src/sandbox/fixture.ts'
import { spawnPlain } from '../../src/tools/process.ts'
import { given, needs } from '../support/needs.ts'
import { bun, never, stage } from './connecting.ts'

const modules = join(import.meta.dir, '../control/foreign/node_modules')
const program = (name: string) => join(modules, `@modelcontextprotocol/server-${name}/dist/index.js`)
const isInstalled = given(existsSync(modules), 'npm ci in test/control/foreign')

/** Starts the server in a sandbox that shows it its own files and a workspace to read, with no network. */
async function confined(name: string, args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const ground = place({ spawnPlain: (plan) => spawnPlain(plan) })
  const created = await createSandbox(ground.settings)
  if (!created.ok) throw new Error(created.missing)
  const { sandbox } = created
  const readablePaths = [{ path: modules }, { path: process.execPath }]
  const at = stage({ spawn: (plan) => sandbox.spawn({ ...plan, readablePaths }) })
  const argv = [...bun, program(name), ...args.map((arg) => arg.replace('WORKSPACE', ground.workspace))]
  const connection = await at.connect({ kind: 'stdio', argv, env, cwd: ground.workspace })
  const call = async (tool: string, input = {}, signal = never()) => connection.callTool(tool, input, { signal })
  return {
    ...ground,
    connection,
    call,
    async [Symbol.asyncDispose]() {
      await connection.close()
      await at[Symbol.asyncDispose]()
      sandbox.close?.()
      ground[Symbol.dispose]()
    },
  }
}

const names = async (connection: McpConnection) => {
  const list = await connection.tools(never())
  if ('why' in list) throw new Error(list.why)
  expect(list.refused).toEqual([])
  return list.items.map(({ name }) => name)
}

describe.if(isInstalled && needs('bwrap'))('in the sandbox', () => {
  test('filesystem reads the workspace, and nothing beside it even when it was told that it may', async () => {
    await using at = await confined('filesystem', ['WORKSPACE', '/etc'])
    writeFileSync(join(at.workspace, 'a.txt'), 'hello')
    const secret = join(at.root, 'home', 'secret')
    writeFileSync(secret, 'hidden')
    expect(await names(at.connection)).toContain('read_text_file')
    expect((await at.call('read_text_file', { path: join(at.workspace, 'a.txt') })).text).toBe('hello')
    expect(await at.call('write_file', { path: join(at.workspace, 'b.txt'), content: 'x' })).toMatchObject({ isError: true })
    expect(existsSync(join(at.workspace, 'b.txt'))).toBe(false)
    expect((await at.call('read_text_file', { path: secret })).isError).toBe(true)
    expect((await at.call('read_text_file', { path: '/etc/shadow' })).isError).toBe(true)
  })

  test('memory keeps its graph where it may', async () => {
    await using at = await confined('memory', [], { MEMORY_FILE_PATH: '/tmp/memory.jsonl' })
    const entities = [{ name: 'Ada', entityType: 'person', observations: ['writes programs'] }]
    expect((await at.call('create_entities', { entities })).isError).toBe(false)
    expect((await at.call('search_nodes', { query: 'programs' })).text).toContain('Ada')
  })

  test('sequential-thinking thinks', async () => {
    await using at = await confined('sequential-thinking', [])
    const thought = { thought: 'first', nextThoughtNeeded: false, thoughtNumber: 1, totalThoughts: 1 }
    expect(await names(at.connection)).toEqual(['sequentialthinking'])
    expect((await at.call('sequentialthinking', thought)).isError).toBe(false)
  })

  test('everything shows pictures, structure and resources, ends a cancelled call, and reaches no network', async () => {
    await using at = await confined('everything', ['stdio'])
    expect((await names(at.connection)).length).toBeGreaterThan(10)
    const picture = (await at.call('get-tiny-image')).pictures[0]
    expect(picture?.type).toBe('image/png')
    expect((await at.call('get-structured-content', { location: 'Chicago' })).structured).toBeObject()
    expect((await at.call('get-resource-reference', { resourceType: 'Text', resourceId: 1 })).text).toContain('Resource 1')
    expect(await at.connection.complete({ prompt: 'completable-prompt' }, { name: 'department', value: 'E' }, never())).toEqual([
      'Engineering',
    ])
    const aborting = new AbortController()
    const slow = at.call('trigger-long-running-operation', { duration: 30, steps: 30 }, aborting.signal)
    const began = performance.now()
    aborting.abort()
    expect((await slow).failed?.why).toBe('the call was cancelled')
    expect(performance.now() - began).toBeLessThan(1_000)
    const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response('reached') })
    const fetched = await at.call('gzip-file-as-resource', { data: server.url.href, outputType: 'resource' })
    await server.stop(true)
    expect(fetched.isError).toBe(true)
  })
})

describe.if(isInstalled).each([
  ['streamableHttp', 'http', '/mcp'],
  ['sse', 'http', '/sse'],
  ['sse', 'sse', '/sse'],
] as const)('over the transport %s, asked for as %s', (mode, kind, path) => {
  test('everything answers, asks and tells of changes', async () => {
    await using at = stage()
    const closed = new AbortController()
    using _ = { [Symbol.dispose]: () => closed.abort() }
    const { promise, resolve } = Promise.withResolvers<number>()
    let said = ''
    const ended = spawnPlain({
      argv: [...bun, '--preload', join(import.meta.dir, 'loopback-only.ts'), program('everything'), mode],
      cwd: dirname(modules),
      env: { PATH: Bun.env.PATH ?? '' },
      signal: closed.signal,
      onOutput(chunk) {
        said += Buffer.from(chunk).toString()
        const port = /"port":(\d+)/.exec(said)?.[1]
        if (port !== undefined) resolve(Number(port))
      },
    })
    const to: McpTransport = { kind, url: `http://127.0.0.1:${await promise}${path}`, headers: {} }
    const connection = await at.connect(to)
    expect(connection.server).toMatchObject({ name: 'mcp-servers/everything', protocol: '2025-11-25' })
    expect((await names(connection)).length).toBeGreaterThan(10)
    expect((await connection.callTool('echo', { message: 'hi' }, { signal: never() })).text).toBe('Echo: hi')
    const asked: string[] = []
    const elicit = async ({ message }: { readonly message: string }) => {
      asked.push(message)
      return { action: 'decline' as const }
    }
    expect((await connection.callTool('trigger-elicitation-request', {}, { signal: never(), elicit })).text).toContain('declined')
    expect(asked).toHaveLength(1)
    const watching = new AbortController()
    const updates = connection.subscribe('demo://resource/static/document/features.md', watching.signal)[Symbol.asyncIterator]()
    const update = updates.next()
    await connection.callTool('toggle-subscriber-updates', {}, { signal: never() })
    expect((await update).value?.uri).toBe('demo://resource/static/document/features.md')
    await connection.close()
    expect((await updates.next()).done).toBe(true)
    closed.abort()
    await ended
  })
})
