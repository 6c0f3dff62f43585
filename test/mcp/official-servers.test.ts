/** The official servers, unmodified, as guests: each does in the sandbox what it is for with what was declared, and nothing without. */

import { describe, expect, test } from 'bun:test'
import { existsSync, realpathSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { JsonObject } from '../../src/kit/json.ts'
import { nest } from '../support/cli.ts'
import { dialects } from '../support/dialects.ts'
import { given, needs } from '../support/needs.ts'
import { sends, startFake } from '../support/vendor-fake.ts'
import { guestStage } from './guest-stage.ts'

const modules = join(import.meta.dir, '../control/foreign/node_modules')
const isThere = existsSync(join(modules, '@modelcontextprotocol/server-memory'))
const official = (name: string, args: readonly string[] = [], more: object = {}, permissions: object = {}) => {
  const real = realpathSync(modules)
  const table = { command: ['node', join(real, `@modelcontextprotocol/server-${name}/dist/index.js`)], args, ...more }
  return { ...table, permissions: { folders: [real], ...permissions } }
}

describe.if(given(isThere, 'the official servers (scripts/setup-debian --tests)') && needs('bwrap', 'node'))('an official server', () => {
  test('filesystem reads the workspace and cannot write it, nor read anything else', async () => {
    using stage = guestStage()
    writeFileSync(join(stage.workspace, 'notes.txt'), 'buy milk')
    writeFileSync(join(stage.user, 'secret.txt'), 'private')
    await stage.add('files', official('filesystem', [stage.workspace], {}, { files: 'read' }))
    const runtime = await stage.open()
    const { call } = stage.on(runtime)
    expect((await call('mcp_files_read_text_file', { path: join(stage.workspace, 'notes.txt') })).output).toContain('buy milk')
    const write = await call('mcp_files_write_file', { path: join(stage.workspace, 'new.txt'), content: 'x' })
    expect(write).toMatchObject({ status: 'failed' })
    expect(existsSync(join(stage.workspace, 'new.txt'))).toBe(false)
    expect((await call('mcp_files_read_text_file', { path: join(stage.user, 'secret.txt') })).status).toBe('failed')
    await runtime.close()
  })

  test('filesystem writes the workspace where that was declared', async () => {
    using stage = guestStage()
    await stage.add('files', official('filesystem', [stage.workspace], {}, { files: 'write' }))
    const runtime = await stage.open()
    const input = { path: join(stage.workspace, 'new.txt'), content: 'x' }
    expect(await stage.on(runtime).judge('mcp_files_write_file', input)).toMatchObject({ verdict: 'ask' })
    expect(await stage.on(runtime).call('mcp_files_write_file', input)).toMatchObject({ status: 'allowed' })
    expect(existsSync(join(stage.workspace, 'new.txt'))).toBe(true)
    await runtime.close()
  })

  test('memory keeps what it is told in its own folder, also after a restart', async () => {
    using stage = guestStage()
    await stage.add('memory', official('memory', [], { env: { MEMORY_FILE_PATH: '${BRAIDCLAW_STATE}/memory.json' } }))
    const entities = [{ name: 'Ann', entityType: 'person', observations: ['likes tea'] }]
    const call = async (name: string, input: JsonObject) => {
      const runtime = await stage.open()
      const result = await stage.on(runtime).call(`mcp_memory_${name}`, input)
      await runtime.close()
      return result
    }
    expect(await call('create_entities', { entities })).toMatchObject({ status: 'allowed' })
    expect((await call('read_graph', {})).output).toContain('likes tea')
  })

  test('everything and sequential-thinking answer', async () => {
    using stage = guestStage()
    await stage.add('everything', official('everything'))
    await stage.add('thinking', official('sequential-thinking'))
    const runtime = await stage.open()
    const { call } = stage.on(runtime)
    const everything = { server: 'everything', name: 'mcp-servers/everything', version: '2.0.0' }
    expect(await call('mcp_everything_echo', { message: 'hi' })).toMatchObject({ output: 'Echo: hi', metadata: { mcp: everything } })
    expect((await call('mcp_everything_get-tiny-image', {})).output).toContain('[picture 1: image/png]')
    const thought = { thought: 'first', nextThoughtNeeded: false, thoughtNumber: 1, totalThoughts: 1 }
    expect((await call('mcp_thinking_sequentialthinking', thought)).output).toContain('"thoughtNumber": 1')
    await runtime.close()
  })

  test('the resources and prompts of everything are read by one tool, which asks and names no word of the server', async () => {
    using stage = guestStage()
    await stage.add('everything', official('everything'))
    const runtime = await stage.open()
    const { call, judge } = stage.on(runtime)
    const read = runtime.tools.find(({ name }) => name === 'mcp_everything_read')
    expect(read?.description).toBe('Read a resource or a prompt of the MCP server everything. Without arguments it lists them.')
    expect(await judge('mcp_everything_read', {})).toMatchObject({ verdict: 'ask' })
    const { output = '' } = await call('mcp_everything_read')
    const [, uri = ''] = /^resource (demo:\/\/resource\/static\/document\/\S+\.md): /m.exec(String(output)) ?? []
    expect(output).toContain('prompt args-prompt(city, [state]): ')
    expect((await call('mcp_everything_read', { uri })).output).toContain('#')
    expect((await call('mcp_everything_read', { prompt: 'args-prompt', arguments: { city: 'Bern' } })).output).toContain('Bern')
    expect((await call('mcp_everything_read', { prompt: 'args-prompt' })).status).toBe('failed')
    expect((await call('mcp_everything_read', { uri: 'demo://nowhere' })).status).toBe('failed')
    await stage.mcp().enable('everything', false)
    expect(await judge('mcp_everything_read', { uri })).toMatchObject({ verdict: 'deny', rule: 'tool.changed' })
    await runtime.close()
  })

  test('a model that sees gets the picture of a result', async () => {
    const [dialect] = dialects
    const calls = [{ id: 'call_1', name: 'mcp_everything_get-tiny-image', args: ['{}'] }]
    const far = startFake((_, n) => sends(dialect?.events(n === 0 ? { calls } : { text: ['A logo.'] }) ?? []))
    try {
      using at = nest()
      const provider = `[providers.models.far]\nkind = "openai-compatible"\nmodel = "m"\nbase_url = "${far.url}"\nmax_retries = 0\n`
      using stage = guestStage({ at, config: `default_provider = "far"\n[security]\nautonomy = "full"\n${provider}` })
      await stage.add('everything', official('everything'))
      const { code, stdout } = await at.run(['agent', '-m', 'what does it show?'])
      expect([code, stdout]).toEqual([0, expect.stringContaining('A logo.')])
      expect(far.asked[1]?.text).toContain('"image_url":{"url":"data:image/png;base64,')
    } finally {
      far.stop()
    }
  })
})
