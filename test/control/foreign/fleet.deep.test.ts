/** `braidclaw control worker` with pi, codex and claude themselves: confined, metered, with skills, and with a manifest that verifies. */

import { afterEach, describe, expect, test } from 'bun:test'
import { verifyManifest } from '../../../src/control/manifest/verify-manifest.ts'
import { nest } from '../../support/cli.ts'
import { needs } from '../../support/needs.ts'
import { startFake } from '../../support/vendor-fake.ts'
import { controlServer } from '../support/control-server.ts'
import { foreignPrograms, hasForeign, longestMs } from './foreign-run.ts'
import { createVendor } from './looping-vendor.ts'

const open: (() => unknown)[] = []
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close()
})

const library = `skills:
  - name: jail-status
    summary: Check whether a jail runs
    invoke: jail running
    content: The secret word of this text is rhododendron.
`

async function fleet(vendor: Parameters<typeof createVendor>[0]) {
  const simulated = createVendor(vendor)
  const fake = startFake(simulated.answer)
  open.push(fake.stop)
  const urls = { CONTROLPLANE_OPENAI_URL: fake.url, CONTROLPLANE_ANTHROPIC_URL: fake.url }
  const control = await controlServer({ env: urls })
  open.push(() => control[Symbol.asyncDispose]())
  const at = nest()
  open.push(() => at[Symbol.dispose]())
  at.file('agent/library.yaml', library)
  const key = await control.addAgent('sysadmin')
  const client = control.client()
  return {
    ...{ control, client, paid: simulated.paid },
    verify: (run: string) =>
      at.run(['control', 'verify', run], { env: { CONTROLPLANE_API_URL: control.url, CONTROLPLANE_OPERATOR_TOKEN: control.operator } }),
    async work(runner: string, budget?: number) {
      const { task_id } = await client.tasks.create({
        title: 'Check if db jail is running',
        role: 'sysadmin',
        ...(budget === undefined ? {} : { budget_tokens: budget }),
      })
      const words = ['control', 'worker', '--agent', 'sysadmin', '--runner', runner, '--model', 'model-1', '--once']
      const env = { CONTROLPLANE_API_URL: control.url, CONTROLPLANE_API_KEY: key, PATH: `${foreignPrograms}:${process.env.PATH}` }
      const { code, stderr } = await at.start(words, { env, timeoutMs: longestMs }).result
      return { code, stderr, task: await client.tasks.get(task_id), run: await client.runs.get('RUN-001') }
    },
  }
}

describe.each(['pi', 'claude', 'codex'] as const)('a worker with %s', (runner) => {
  test.if(needs('bwrap', 'socat') && hasForeign(runner))(
    'does a task with the skill that its title asks for; the ledger and the signed manifest say so',
    async () => {
      const { work, paid, control, client, verify } = await fleet({ tool: 'skills_search', input: { query: 'jail' } })
      const { code, stderr, task, run } = await work(runner)
      expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' })
      expect(task).toMatchObject({ status: 'completed', result: { output: 'All done.' }, tokens_used: 120 * paid.length })
      expect(paid.length).toBeGreaterThan(1)
      const agent = await client.fleet.get('sysadmin')
      const { bytes: log } = await client.runs.log('RUN-001')
      const verified = verifyManifest(run.manifest, { log, pinnedKey: String(agent.worker?.signing_key) })
      expect(verified).toMatchObject({ ok: true, manifest: { outcome: { skill: 'jail-status' }, with: { runner }, run_id: 'RUN-001' } })
      expect(await verify('RUN-001')).toMatchObject({ code: 0, stdout: expect.stringContaining('valid: RUN-001') })
      expect(control.errors).toEqual([])
    },
    longestMs,
  )

  test.if(needs('bwrap', 'socat') && hasForeign(runner))(
    'is stopped when the budget of its task is used up, and the task waits',
    async () => {
      const { work, paid } = await fleet({ tool: 'skills_search', input: { query: 'jail' }, forever: true, outputTokens: 3_000 })
      const { task } = await work(runner, 60_000)
      expect(task.status).toBe('budget_blocked')
      expect(paid.length).toBeGreaterThan(2)
      expect(task.tokens_used).toBe(3_100 * paid.length)
      expect(task.tokens_used).toBeLessThanOrEqual(60_000)
    },
    longestMs,
  )
})
