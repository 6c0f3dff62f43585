/** The files of an agent: what is in them, what never is, and what happens when they are torn or in the way. */

import { describe, expect, test } from 'bun:test'
import { appendFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { agentFile, events, session, write } from '../support/agent-files.ts'
import { nest } from '../support/cli.ts'
import { stub } from '../support/shell.ts'

describe('the files', () => {
  test('no secret reaches them', async () => {
    using at = nest()
    const env = { ...stub, OPENAI_API_KEY: 'sk-very-secret-value-1' }
    await at.run(['-c', 'my key is sk-very-secret-value-1'], { env })
    await at.run(['session', 'append', 'user', 'again sk-very-secret-value-1'], { env })
    await at.run(['log', 'note', 'and sk-very-secret-value-1'], { env })
    expect(events(at)).toContain('user_input: my key is [redacted:OPENAI_API_KEY]')
    for (const path of ['agent.jsonl', 'sessions/current.jsonl'])
      expect(readFileSync(agentFile(at, path), 'utf8')).not.toContain('very-secret')
  })

  test('a torn line is left out and said; the next turn is whole', async () => {
    using at = nest()
    await at.run(['one question'], { env: stub })
    appendFileSync(agentFile(at, 'sessions/current.jsonl'), '{"ts":"2026')
    await at.run(['two questions'], { env: stub })
    const { stdout, stderr } = await at.run(['session', '--json'])
    expect(stdout.trimEnd().split('\n')).toHaveLength(4)
    expect(stderr).toContain('current.jsonl: left out what is not an entry: line 3')
  })

  test('where they cannot be written the turn goes on, and says so once', async () => {
    using at = nest()
    write(agentFile(at, 'sessions'), 'a file in the way')
    mkdirSync(agentFile(at, 'agent.jsonl'))
    const { code, stdout, stderr } = await at.run(['hello there'], { env: { BRAIDCLAW_MOCK_FIXTURE: at.fixture([{ text: 'fine' }]) } })
    expect([code, stdout]).toEqual([0, 'fine\n'])
    expect(stderr.split('the files of the agent cannot be written').length).toBe(2)
  })

  test('a conversation that memory no longer has is not gone on with', async () => {
    using at = nest()
    await at.run(['hello there'], { env: stub })
    await at.run(['memory', 'clear', '--yes'])
    const { code, stderr } = await at.run(['-c', 'and then?'], { env: stub })
    expect([code, stderr]).toEqual([0, 'note: nothing to continue; a new conversation begins\n'])
  })

  test('default_agent, in the configuration or an env file, is whose they are', async () => {
    using at = nest()
    mkdirSync(agentFile(at, '', 'coder'), { recursive: true })
    write(join(at.home, '.braidclaw/config/braidclaw.env'), 'SHELLCLAW_DEFAULT_AGENT="coder"\n')
    await at.run(['hello there'], { env: stub })
    expect([session(at, 'coder').length, session(at).length]).toEqual([2, 0])
    expect((await at.run(['session', 'count', '--agent', 'default'])).stdout).toBe('0\n')
  })

  test('SHELLCLAW_HOME moves everything, unless BRAIDCLAW_HOME does', async () => {
    using at = nest()
    const there = join(at.dir, 'there')
    await at.run(['hello there'], { env: { ...stub, SHELLCLAW_HOME: there } })
    expect(existsSync(join(there, 'agents/default/sessions/current.jsonl'))).toBe(true)
    expect(existsSync(join(at.home, '.braidclaw'))).toBe(false)
  })
})
