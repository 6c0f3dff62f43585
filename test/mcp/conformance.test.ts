/** Runs the official conformance program against the client, as far as it goes without a login. */

import { expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { spawnPlain } from '../../src/tools/process.ts'
import { given } from '../support/needs.ts'
import { bun, never, stage } from './connecting.ts'

const program = join(import.meta.dir, '../control/foreign/node_modules/@modelcontextprotocol/conformance/dist/index.js')
const isInstalled = given(existsSync(program), 'npm ci in test/control/foreign')

test.if(isInstalled).each([['initialize'], ['tools_call'], ['elicitation-sep1034-client-defaults'], ['sse-retry']])(
  'the client passes %s',
  async (scenario) => {
    await using at = stage()
    let said = ''
    const client = [...bun, join(import.meta.dir, 'conformance-client.ts')].join(' ')
    const ended = await spawnPlain({
      argv: [...bun, program, 'client', '--command', client, '--scenario', scenario, '--output-dir', at.root],
      cwd: at.root,
      env: { PATH: Bun.env.PATH ?? '', HOME: at.root, TMPDIR: at.root },
      signal: never(),
      onOutput(chunk) {
        said += Buffer.from(chunk).toString()
      },
    })
    expect(ended, said).toMatchObject({ ok: true, code: 0 })
  },
)
