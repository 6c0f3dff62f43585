/** Wiggum mode of an agent of the library. */

import { afterEach, test as always, expect } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type AgentEvent, type AgentOptions, createAgent, type ModelCall } from '../../src/agent.ts'
import { needs } from '../support/needs.ts'

const test = always.if(needs('bwrap'))
const dirs: string[] = []
afterEach(() => {
  for (const dir of dirs.splice(0)) rmSync(dir, { recursive: true, force: true })
})

function agentWith(modelCall: ModelCall, options: AgentOptions = {}) {
  const dir = mkdtempSync(join(tmpdir(), 'braidclaw-wiggum-'))
  dirs.push(dir)
  const [cwd, home] = [join(dir, 'work'), join(dir, '.braidclaw')]
  for (const folder of [cwd, home]) mkdirSync(folder)
  writeFileSync(join(cwd, 'notes.md'), 'hello\n')
  const agent = createAgent({
    cwd,
    home,
    env: { HOME: dir, PATH: process.env.PATH },
    modelCall,
    checks: [{ command: 'test -e done.md' }],
    ...options,
  })
  return { agent, cwd }
}

/** Says that it is done, and does it only when the check has said no. */
const lazyModel: ModelCall = async function* (messages) {
  const last = messages.at(-1)
  const text = last?.role === 'user' ? String(last.content) : ''
  if (text.includes('the work is not done')) yield { type: 'tool_use', name: 'file_write', input: { path: 'done.md', content: 'x' } }
  else yield { type: 'text', content: 'done' }
}

const kinds = (events: readonly AgentEvent[]) => events.map(({ type }) => type)

test('works in a copy until the checks pass: iterations, one done, and the result in the folder', async () => {
  const { agent, cwd } = agentWith(lazyModel)
  expect(await agent.setMode({ newMode: 'wiggum', maxIter: 4 })).toBeUndefined()
  const events: AgentEvent[] = []
  for await (const event of agent.run('do it')) {
    events.push(event)
    expect(existsSync(join(cwd, 'done.md'))).toBe(event.type === 'done')
  }
  expect(events.filter(({ type }) => type === 'iteration')).toEqual([
    { type: 'iteration', count: 1 },
    { type: 'iteration', count: 2 },
  ])
  expect(events.at(-1)).toEqual({ type: 'done', stopReason: 'end_turn', result: 'done', iterations: 2 })
  expect(kinds(events).filter((type) => type === 'done')).toHaveLength(1)
  expect([agent.ending()?.code, readFileSync(join(cwd, 'done.md'), 'utf8')]).toEqual(['answered', 'x'])
  await agent.close()
})

test('a limit ends it with an error, and the folder stays as it is', async () => {
  const { agent, cwd } = agentWith(async function* () {
    yield { type: 'text', content: 'done' }
  })
  await agent.setMode({ newMode: 'wiggum', maxIterations: 2 })
  const events = await Array.fromAsync(agent.run('do it'))
  expect(events.slice(-2)).toEqual([
    { type: 'error', code: 'limit', message: expect.stringContaining('the limit of 2 iterations'), recoverable: false },
    { type: 'done', stopReason: 'error', result: 'done', iterations: 2 },
  ])
  expect([agent.ending()?.code, existsSync(join(cwd, 'done.md'))]).toEqual(['limit', false])
  await agent.setMode({ newMode: 'structured' })
  expect(kinds(await Array.fromAsync(agent.run('hello')))).not.toContain('iteration')
  await agent.close()
})

test('breaking out of the loop cancels it', async () => {
  const { agent, cwd } = agentWith(lazyModel)
  await agent.setMode({ newMode: 'wiggum' })
  for await (const event of agent.run('do it')) if (event.type === 'iteration') break
  await agent.close()
  expect([agent.ending()?.code, existsSync(join(cwd, 'done.md'))]).toEqual(['cancelled', false])
})

test('is rejected by name without checks, and during a turn', async () => {
  const { agent } = agentWith(lazyModel, { checks: [] })
  expect(await agent.setMode({ newMode: 'wiggum' })).toMatch(/^modes: .*checks/)
  await agent.close()
  const second = agentWith(lazyModel).agent
  const turn = second.run('hello')
  await turn.next()
  expect(await second.setMode({ newMode: 'wiggum' })).toMatch(/^modes: a run keeps its mode/)
  await turn.return(undefined)
  await second.close()
})
