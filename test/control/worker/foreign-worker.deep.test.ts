/** pi, claude and codex themselves as runners of `braidclaw control worker`: confined, metered, their changes brought for a review. */

import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { nest } from '../../support/cli.ts'
import { needs } from '../../support/needs.ts'
import { startFake } from '../../support/vendor-fake.ts'
import { hasForeign, longestMs } from '../foreign/foreign-run.ts'
import { createVendor } from '../foreign/looping-vendor.ts'
import { controlServer } from '../support/control-server.ts'

const programs = join(import.meta.dir, '../foreign/node_modules/.bin')

/** How each of them is told to write a file. */
const writes = {
  pi: { tool: 'write', input: { path: 'made.txt', content: 'made\n' } },
  claude: { tool: 'Bash', input: { command: 'echo made > made.txt', description: 'writes a file' } },
  codex: { tool: 'exec_command', input: { cmd: 'echo made > made.txt' } },
} as const

/** How each of them is told to ask an operator, with the token of its run. */
const body = '{"event_type":"approval_request","agent_id":"a1","operation":"merge","reasoning":"","estimated_tokens":0}'
const ask = `curl -s -H "Authorization: Bearer $CONTROLPLANE_API_KEY" -H 'Content-Type: application/json' -d '${body}' "$CONTROLPLANE_API_URL/api/controlplane/activity"; echo half > half.txt`
const asks = {
  pi: { tool: 'bash', input: { command: ask } },
  claude: { tool: 'Bash', input: { command: ask, description: 'asks an operator' } },
  codex: { tool: 'exec_command', input: { cmd: ask } },
} as const

type Name = keyof typeof writes

async function fleet(name: Name, call: Parameters<typeof createVendor>[0]) {
  const vendor = createVendor(call)
  const fake = startFake(vendor.answer)
  const [CONTROLPLANE_OPENAI_KEY, CONTROLPLANE_ANTHROPIC_KEY] = ['sk-1234567890', 'sk-1234567890']
  const urls = { CONTROLPLANE_OPENAI_URL: fake.url, CONTROLPLANE_ANTHROPIC_URL: fake.url }
  const plane = await controlServer({ env: { ...urls, CONTROLPLANE_OPENAI_KEY, CONTROLPLANE_ANTHROPIC_KEY } })
  const at = nest()
  const client = plane.client()
  const key = await plane.addAgent('a1', 'sysadmin')
  const words = ['control', 'worker', '--runner', name, '--once']
  const env = { CONTROLPLANE_API_URL: plane.url, CONTROLPLANE_API_KEY: key, PATH: `${programs}:${process.env.PATH}` }
  return {
    ...{ vendor, at, client, work: (...more: readonly string[]) => at.run([...words, ...more], { env, timeoutMs: longestMs }) },
    async [Symbol.asyncDispose]() {
      fake.stop()
      at[Symbol.dispose]()
      await plane[Symbol.asyncDispose]()
    },
  }
}

describe.if(needs('bwrap', 'socat', 'curl')).each(['pi', 'claude', 'codex'] as const)('the runner %s', (name) => {
  test.if(hasForeign(name))(
    'does a task on a copy, pays for its model calls, and cannot reach anything but the control plane',
    async () => {
      await using here = await fleet(name, writes[name])
      const { client, vendor, at, work } = here
      const { task_id } = await client.tasks.create({ title: '--help $(reboot)', description: 'Write made.txt', role: 'sysadmin' })
      const { code, stderr } = await work('--model', 'model-1')
      const { bytes } = await client.runs.log('RUN-001')
      expect({ code, stderr, log: Buffer.from(bytes).toString() }).toMatchObject({ code: 0 })
      expect(stderr).toContain('network: only the control plane')
      expect(await client.tasks.get(task_id)).toMatchObject({ status: 'completed', tokens_used: 120 * vendor.paid.length })
      expect(await client.runs.get('RUN-001')).toMatchObject({ changes: 'waiting', manifest: { with: { runner: name } } })
      expect(vendor.paid.length).toBeGreaterThanOrEqual(2)
      const shown = await at.run(['changes', 'show', 'RUN-001', '--patch'])
      expect(shown.stdout).toContain('+made')
    },
    longestMs,
  )

  test.if(hasForeign(name))(
    'goes on in its session and its copy after the yes, although the worker was started anew',
    async () => {
      await using here = await fleet(name, asks[name])
      const { client, vendor, at, work } = here
      const { task_id } = await client.tasks.create({ title: 'Merge it', role: 'sysadmin' })
      // The other two do without a name; the model that codex prefers has other tools than the simulated one calls.
      const model = name === 'codex' ? ['--model', 'model-1'] : []
      const first = await work(...model)
      expect({ code: first.code, stderr: first.stderr }).toMatchObject({ code: 4 })
      const calls = vendor.paid.length
      await client.approvals.decide('APPR-001', { decision: 'approve', note: 'go on' })
      const { code, stderr } = await work(...model)
      const { bytes } = await client.runs.log('RUN-002').catch(() => ({ bytes: new Uint8Array() }))
      expect({ code, stderr, log: Buffer.from(bytes).toString() }).toMatchObject({ code: 0 })
      expect(await client.tasks.get(task_id)).toMatchObject({
        ...{ status: 'completed', attempt: 2, tokens_used: 120 * vendor.paid.length },
        result: { output: expect.stringContaining('All done.') },
      })
      // One call: the model sees what it asked in the run before, and what an operator decided since.
      expect(vendor.paid).toHaveLength(calls + 1)
      expect(vendor.paid.at(-1)?.text).toContain('go on')
      expect((await at.run(['changes', 'show', 'RUN-002', '--patch'])).stdout).toContain('+half')
    },
    longestMs,
  )
})
