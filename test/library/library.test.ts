/** `createAgent` as a program would use it. */

import { expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAgent, type ModelCall } from '../../src/agent.ts'
import { needs } from '../support/needs.ts'

function folders() {
  const dir = mkdtempSync(join(tmpdir(), 'braidclaw-library-'))
  const cwd = join(dir, 'workspace')
  mkdirSync(cwd)
  writeFileSync(join(cwd, 'hello.txt'), 'hello from a file')
  return { cwd, home: join(dir, 'home'), env: { HOME: dir }, [Symbol.dispose]: () => rmSync(dir, { recursive: true, force: true }) }
}

const reads: ModelCall = async function* (messages) {
  const last = messages.at(-1)
  if (last?.role === 'tool') yield { type: 'text', content: `it says: ${last.content}` }
  else yield { type: 'tool_use', name: 'file_read', input: { path: 'hello.txt' } }
}

const writes: ModelCall = async function* (messages) {
  const last = messages.at(-1)
  if (last?.role === 'tool') yield { type: 'text', content: last.content }
  else yield { type: 'tool_use', name: 'file_write', input: { path: 'new.txt', content: 'x' } }
}

test('a write waits for approve(), and a no keeps the file from being', async () => {
  using at = folders()
  const agent = createAgent({ ...at, modelCall: writes })
  for await (const event of agent.run('write it')) {
    if (event.type !== 'approval_gate') continue
    expect(agent.gate(event.gateId)?.judgement).toMatchObject({ verdict: 'ask', risk: 'medium' })
    expect(await agent.approve(event.gateId, { allow: false })).toBeUndefined()
  }
  expect(agent.ending()?.code).toBe('denied')
  expect(await Bun.file(join(at.cwd, 'new.txt')).exists()).toBe(false)
  await agent.close()
})

test('a yes to the first run comes late: it does not approve the write of the second run', async () => {
  using at = folders()
  const state = { first: '' }
  const agent = createAgent({ ...at, modelCall: writes })
  for await (const event of agent.run('write it')) {
    if (event.type !== 'approval_gate') continue
    state.first = event.gateId
    await agent.approve(event.gateId, { allow: false })
  }
  for await (const event of agent.run('write it again')) {
    if (event.type !== 'approval_gate') continue
    expect(event.gateId).not.toBe(state.first)
    expect(agent.gate(state.first)).toBeUndefined()
    expect(await agent.approve(state.first, { allow: true })).toBe('approval')
    expect(await agent.approve(event.gateId, { allow: false })).toBeUndefined()
  }
  expect(await Bun.file(join(at.cwd, 'new.txt')).exists()).toBe(false)
  await agent.close()
})

test('a read runs and its result reaches the model', async () => {
  using at = folders()
  const agent = createAgent({ ...at, modelCall: reads })
  const seen: string[] = []
  let result = ''
  for await (const event of agent.run('read it')) {
    seen.push(event.type)
    if (event.type === 'done') result = event.result ?? ''
  }
  expect(seen).toEqual(['init', 'tool_use', 'tool_result', 'text', 'text', 'done'])
  expect(result).toContain('it says: ')
  expect(result).toContain('hello from a file')
  await agent.close()
})

test('what could not begin is tried again by the next run', async () => {
  using at = folders()
  const cwd = join(at.cwd, 'later')
  const agent = createAgent({ ...at, cwd, modelCall: reads })
  expect(agent.run('read it').next()).rejects.toThrow(`workspace_dir: "${cwd}" does not exist`)
  mkdirSync(cwd)
  writeFileSync(join(cwd, 'hello.txt'), 'hello again')
  const said = await Array.fromAsync(agent.run('read it'))
  expect(said.at(-1)).toMatchObject({ type: 'done', result: expect.stringContaining('hello again') })
  await agent.close()
})

test('an agent is closed for good, also one that could not begin', async () => {
  using at = folders()
  const cwd = join(at.cwd, 'nowhere')
  const agent = createAgent({ ...at, cwd, modelCall: reads })
  const first = agent.run('read it').next()
  await agent.close()
  expect(first).rejects.toThrow(`workspace_dir: "${cwd}" does not exist`)
  await agent.close()
  expect(await Array.fromAsync(agent.run('read it'))).toMatchObject([
    { type: 'error', code: 'closed' },
    { type: 'done', stopReason: 'error' },
  ])
})

test('an open gate gives the exact difference, and no other gate does', async () => {
  using at = folders()
  const agent = createAgent({ ...at, modelCall: writes })
  expect(await agent.changes('run_x/call_1')).toBeUndefined()
  for await (const event of agent.run('write it')) {
    if (event.type !== 'approval_gate') continue
    const asked = await agent.changes(event.gateId)
    expect(asked).toMatchObject({ stage: 'proposed', changes: [{ path: 'new.txt', after: { kind: 'file', size: 1 } }] })
    expect(asked?.patch).toContain('+++ b/new.txt\n@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n')
    expect(await agent.changes(`${event.gateId}x`)).toBeUndefined()
    await agent.approve(event.gateId, { allow: false })
  }
  await agent.close()
})

const commands: ModelCall = async function* (messages) {
  const last = messages.at(-1)
  if (last?.role === 'tool') yield { type: 'text', content: last.content }
  else yield { type: 'tool_use', name: 'shell', input: { command: 'echo a > a.txt; echo b > b.txt' } }
}

test.if(needs('bwrap'))('a program sees what a command changed, and accepts a part of it', async () => {
  using at = folders()
  const agent = createAgent({ ...at, modelCall: commands })
  for await (const event of agent.run('do it')) {
    if (event.type !== 'approval_gate') continue
    expect(event.changes).toMatchObject({ verdict: 'ask', count: 2 })
    const asked = await agent.changes(event.gateId)
    expect(asked?.patch).toContain('+++ b/b.txt')
    expect(await asked?.revise?.({ only: ['elsewhere'] })).toMatchObject({ ok: false })
    const part = await asked?.revise?.({ only: ['a.txt'] })
    expect(await agent.approve(event.gateId, { allow: true, part: 'another' })).toBeUndefined()
    expect(part?.ok).toBe(true)
  }
  expect([await Bun.file(join(at.cwd, 'a.txt')).exists(), await Bun.file(join(at.cwd, 'b.txt')).exists()]).toEqual([false, false])
  for await (const event of agent.run('do it again')) {
    if (event.type !== 'approval_gate') continue
    const part = await (await agent.changes(event.gateId))?.revise?.({ only: ['a.txt'] })
    await agent.approve(event.gateId, part?.ok ? { allow: true, part: part.part } : { allow: false })
  }
  expect([await Bun.file(join(at.cwd, 'a.txt')).exists(), await Bun.file(join(at.cwd, 'b.txt')).exists()]).toEqual([true, false])
  await agent.close()
})
