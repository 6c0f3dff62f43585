/** `replay --policy` over calls of the operator's own executables: judged as they would be now, and none of them is run. */

import { test as always, expect } from 'bun:test'
import { chmodSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { minimumConfig, type Nest, nest } from '../support/cli.ts'
import { needs } from '../support/needs.ts'
import { alone, call, scripted } from '../support/turns.ts'

const test = always.if(needs('bwrap'))

const tools = (at: Nest) => join(at.home, '.braidclaw/tools')

function deploy(at: Nest): void {
  mkdirSync(tools(at), { recursive: true })
  const path = join(tools(at), 'deploy.sh')
  const described = JSON.stringify({ name: 'deploy', description: 'Deploys.', parameters: { type: 'object', properties: {} } })
  writeFileSync(path, `#!/bin/sh\nif [ "$1" = --describe ]; then echo '${described}'; exit; fi\necho deployed\n`)
  chmodSync(path, 0o755)
}

const config = (more: string) => `${minimumConfig}${more}\n[tools]\nexecutables = ["deploy"]\n`

/** What `replay last --policy` says of each call, as `tool: before → after`. */
async function asked(at: Nest, toml: string): Promise<string[]> {
  const policy = join(at.dir, 'policy.toml')
  writeFileSync(policy, toml)
  const { code, stdout, stderr } = await at.run(['replay', 'last', '--policy', policy, '--json'])
  expect([code, stderr]).toEqual([0, ''])
  type Said = { verdict: string; rule: string }
  const calls: { tool: string; before: Said; after: Said }[] = JSON.parse(stdout).calls
  return calls.map(({ tool, before, after }) => `${tool}: ${before.verdict} → ${after.verdict} by ${after.rule}`)
}

test('what was not there stays unknown, and what was there is judged by the operator’s word, without being there now', async () => {
  using at = nest()
  at.config(config(''))
  deploy(at)
  const replies = [call('deploy', {}), call('wipe', {}), { text: 'done' }]
  await at.run(['agent', '-m', 'go', '--approve-all-medium'], { ...scripted(at, replies), through: alone })
  rmSync(tools(at), { recursive: true })
  expect(await asked(at, config(''))).toEqual(['deploy: allow → ask by autonomy.medium_asks', 'wipe: deny → deny by tool.unknown'])
  expect(await asked(at, minimumConfig.replace('autonomy = "supervised"', 'autonomy = "readonly"'))).toEqual([
    'deploy: allow → deny by autonomy.readonly',
    'wipe: deny → deny by tool.unknown',
  ])
  expect(await asked(at, minimumConfig.replace('[security]', '[security]\nallow_tools = ["deploy"]'))).toEqual([
    expect.stringMatching(/^deploy: allow → allow/),
    'wipe: deny → deny by tool.unknown',
  ])
})
