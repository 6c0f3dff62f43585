/** `createAgent` as a program would use it. */

import { expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAgent, type ModelCall } from '../../src/agent.ts'

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
