/** The listing of specification 003 that wraps an agent, with its words; a scripted model takes the place of the local one. */

import { expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type AgentEvent, createAgent, type ModelCall } from '../../src/agent.ts'
import { sandboxAdapter } from '../../src/library/remote/sandbox.ts'
import { executable } from '../support/cli.ts'
import { needs } from '../support/needs.ts'

test.if(needs('bwrap'))('production: sandboxed execution', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'braidclaw-adapter-'))
  const cwd = join(dir, 'workspace')
  for (const name of ['src', 'tests', '.plaited']) mkdirSync(join(cwd, name), { recursive: true })
  writeFileSync(join(cwd, '.env'), 'KEY=1')
  const modelCall: ModelCall = async function* (messages) {
    const last = messages.at(-1)
    if (last?.role === 'tool') yield { type: 'text', content: last.content }
    else yield { type: 'tool_use', name: 'shell', input: { command: 'echo tested > tests/a.txt; cat tests/a.txt' } }
  }
  const env = { HOME: dir, BRAIDCLAW_EXECUTABLE: executable }
  const agent = createAgent({ cwd, home: join(dir, 'home'), env, permissionMode: 'full', modelCall })
  const sandboxed = sandboxAdapter.wrap(agent, {
    enabled: true,
    security: {
      allowWrite: ['./src', './tests', './.plaited'],
      denyRead: ['~/.ssh', '~/.aws', '.env'],
      ...(needs('socat', 'perl') ? { allowedDomains: ['api.github.com'] } : {}),
    },
    limits: {
      timeout: 8 * 60 * 60 * 1000, // 8 hours for Wiggum
      memory: 4 * 1024 * 1024 * 1024, // 4GB
    },
  })
  const events: AgentEvent[] = []
  for await (const event of sandboxed.run('go')) {
    events.push(event)
  }
  await sandboxed.close()
  await agent.close()
  expect(events.at(-1)).toEqual({ type: 'done', stopReason: 'end_turn', result: 'tested' })
  expect(readFileSync(join(cwd, 'tests/a.txt'), 'utf8')).toBe('tested\n')
  rmSync(dir, { recursive: true, force: true })
})
