/** A push or fetch that is stopped in the middle ends at once, and nothing of it is taken over. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { needs } from '../support/needs.ts'
import { call } from '../support/turns.ts'
import { until } from '../support/until.ts'
import { elsewhere, gitServer, type Project, project, type Server } from './server.ts'

const real = test.if(needs('bwrap', 'git'))

const state: { server?: Server } = {}
beforeAll(() => {
  state.server = gitServer()
})
afterAll(() => state.server?.[Symbol.dispose]())
const server = () => state.server ?? gitServer()

const says = { text: 'It said: {{last_tool_result}}' }
const pushed = () => server().git('rev-parse', 'main')

describe('stopped in the middle', () => {
  const slow = async (at: Project, run: () => Promise<unknown>) => {
    server().delay = 15_000
    const before = [pushed(), at.git('for-each-ref')]
    try {
      await run()
    } finally {
      server().delay = 0
    }
    expect([pushed(), at.git('for-each-ref')]).toEqual(before)
  }

  real(
    'an emergency stop ends git; the run says so',
    async () => {
      using at = project(server())
      at.commit('stopped')
      await slow(at, async () => {
        const seen = server().seen.length
        const { BRAIDCLAW_MOCK_FIXTURE } = { BRAIDCLAW_MOCK_FIXTURE: at.fixture([call('shell', { command: 'git push' }), says]) }
        const running = at.start(['agent', '-m', 'go', '--autonomy', 'full'], { env: { BRAIDCLAW_MOCK_FIXTURE }, timeoutMs: 20_000 })
        await until(() => server().seen.length > seen)
        const began = performance.now()
        await at.run(['estop'])
        const { code } = await running.result
        expect([code, performance.now() - began < 8_000]).toEqual([10, true])
      })
      expect(Bun.spawnSync(['pgrep', '-f', at.dir]).stdout.toString()).toBe('')
    },
    120_000,
  )

  real(
    'a time limit ends git, and nothing is taken over',
    async () => {
      using at = project(server())
      elsewhere(server(), 'late')
      await slow(at, async () => {
        const json = JSON.stringify({ command: 'git fetch', timeout: 1 })
        const { code, stderr } = await at.run(['tool', 'run', 'shell', '--autonomy', 'full', '--json', json])
        expect([code, stderr]).toEqual([1, expect.stringContaining('timed out after 1 s')])
      })
    },
    120_000,
  )
})
