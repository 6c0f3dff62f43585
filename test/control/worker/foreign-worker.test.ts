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

describe.if(needs('bwrap', 'socat')).each(['pi', 'claude', 'codex'] as const)('the runner %s', (name) => {
  test.if(hasForeign(name))(
    'does a task on a copy, pays for its model calls, and cannot reach anything but the control plane',
    async () => {
      const vendor = createVendor(writes[name])
      const fake = startFake(vendor.answer)
      const upstream = {
        CONTROLPLANE_OPENAI_URL: fake.url,
        CONTROLPLANE_OPENAI_KEY: 'sk-1234567890',
        CONTROLPLANE_ANTHROPIC_URL: fake.url,
        CONTROLPLANE_ANTHROPIC_KEY: 'sk-1234567890',
      }
      await using plane = await controlServer({ env: upstream })
      using at = nest()
      const client = plane.client()
      const key = await plane.addAgent('a1', 'sysadmin')
      const { task_id } = await client.tasks.create({ title: '--help $(reboot)', description: 'Write made.txt', role: 'sysadmin' })
      const words = ['control', 'worker', '--agent', 'a1', '--role', 'sysadmin', '--runner', name, '--model', 'model-1', '--once']
      const env = { CONTROLPLANE_API_URL: plane.url, CONTROLPLANE_API_KEY: key, PATH: `${programs}:${process.env.PATH}` }
      const { code, stderr } = await at.run(words, { env, timeoutMs: longestMs })
      fake.stop()
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
})
