/** Tests a turn with many tools of MCP servers: what it costs, how the model finds and calls one, and that a server that nobody calls rests. */

import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openDefinitions, textsOf, toolDigest } from '../../src/host/toolset/guests/mcp/approved-definitions.ts'
import { nest } from '../support/cli.ts'
import { needs } from '../support/needs.ts'
import { call } from '../support/turns.ts'
import { echo, guestStage } from './guest-stage.ts'

const tool = (name: string, description: string) => ({ ...echo, name, description })

test.if(needs('bwrap', 'node'))(
  'the model finds a tool by what it wants, and calls it by its name; the gate judges the tool itself',
  async () => {
    using at = nest()
    using stage = guestStage({ at, config: '[security]\nallow_tools = ["mcp_notes_add-note"]\n' })
    const more = Array.from({ length: 30 }, (_, number) => tool(`other-${number}`, `Paints picture number ${number}`))
    await stage.add('notes', stage.small('notes', [tool('add-note', 'Adds a note to the notebook'), ...more]))
    const ask = async (name: string, args: object) => {
      const fixture = at.fixture([call(name, args), { text: 'it said {{last_tool_result}}' }])
      return await at.run(['agent', '-m', 'go'], { env: { BRAIDCLAW_MOCK_FIXTURE: fixture } })
    }
    const found = await ask('find_tools', { intent: 'add a note to the notebook' })
    expect(found.stdout).toContain('mcp_notes_add-note: Adds a note to the notebook\narguments: {"type":"object"')
    const ran = await ask('use_tool', { tool: 'mcp_notes_add-note', arguments: { text: 'milk' } })
    expect(ran.stdout).toBe('it said add-note: milk\n')
    expect(ran.stderr).toContain('mcp_notes_add-note {"text":"milk"}')
    const asked = await ask('use_tool', { tool: 'mcp_notes_other-3', arguments: {} })
    expect(asked.stderr).toContain('approval needed: mcp_notes_other-3')
    expect((await ask('use_tool', { tool: 'mcp_notes_nothing', arguments: {} })).stdout).toContain('unknown tool "mcp_notes_nothing"')
    expect((await ask('use_tool', { tool: 7, arguments: {} })).stdout).toContain('schema.invalid')
    expect((await at.run(['receipt', 'list'])).stdout).toContain('mcp_notes_add-note')
  },
)

test('twenty servers that nobody calls cost a turn little, and their definitions take little room', async () => {
  using stage = guestStage()
  const ids = Array.from({ length: 20 }, (_, number) => `server-${number}`)
  const mcpServers = Object.fromEntries(ids.map((id) => [id, { command: 'nothing-that-exists', args: [id] }]))
  writeFileSync(join(stage.home, 'mcp.json'), JSON.stringify({ mcpServers }))
  const none = await costOf(stage)
  const mcp = stage.mcp()
  const store = openDefinitions(stage.home)
  for (const id of ids) {
    await mcp.allowStart(id)
    const tools = Array.from({ length: 10 }, (_, number) =>
      tool(`do-${number}`, `Does what ${id} does, in the way ${number}. ${'It is described well. '.repeat(20)}`),
    )
    const server = { name: id, version: '1', protocol: '2025-11-25', offers: [] }
    store.keepSeen(id, { server, tools, resources: [], prompts: [], refused: [] })
    await store.change((book) => {
      const entry = book.get(id)
      if (entry) book.set(id, { ...entry, tools: Object.fromEntries(tools.map((each) => [each.name, toolDigest(each)])) })
    })
    store.keepApproved(id, textsOf(mcp.find(id), tools))
  }
  const all = await costOf(stage)
  console.log(`20 servers with 200 tools: ${(all.ms - none.ms).toFixed(1)} ms and ${all.bytes - none.bytes} bytes of definitions more`)
  expect(all.names.filter((name) => !none.names.includes(name))).toEqual(['find_tools', 'use_tool'])
  expect(all.bytes - none.bytes).toBeLessThan(6_000)
  expect(stage.lines).toEqual([])
})

/** The shortest of several, because other work on the machine only adds time. */
async function costOf(stage: ReturnType<typeof guestStage>) {
  let [ms, names, bytes] = [Number.POSITIVE_INFINITY, [] as readonly string[], 0]
  for (let round = 0; round < 5; round++) {
    const started = performance.now()
    const runtime = await stage.open()
    const offered = await runtime.refresh()
    ms = Math.min(ms, performance.now() - started)
    names = offered.map(({ name }) => name)
    bytes = JSON.stringify(offered.map(({ name, description, parameters }) => ({ name, description, parameters }))).length
    await runtime.close()
  }
  return { ms, names, bytes }
}
