/** The examples of docs/trajectories.md, run as they stand there over a home with runs of every kind. */

import { afterAll, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createMemoryStage } from '../../../src/memory/fixture.ts'
import { openMemory } from '../../../src/memory/memory.ts'
import { executable, nest } from '../../support/cli.ts'
import { given } from '../../support/needs.ts'
import { secret, writeEveryKind } from './journal.ts'

const page = readFileSync(join(import.meta.dir, '../../../docs/trajectories.md'), 'utf8')
const examples = [...page.matchAll(/```sh\n([\s\S]*?)```\n```text\n([\s\S]*?)```/g)].map(([, code = '', printed = '']) => ({
  code,
  printed,
}))

const at = nest()
const stage = createMemoryStage()
afterAll(() => {
  stage.remove()
  at[Symbol.dispose]()
})

test('there are examples', () => expect(examples).toHaveLength(3))

test.if(given(Bun.which('jq') !== null, 'jq'))('print what stands there', async () => {
  await at.run(['init'])
  const opened = openMemory({ path: join(at.home, '.braidclaw/memory.sqlite'), log: () => {}, now: Date.now })
  if (!opened.ok) throw new Error(opened.failure.message)
  writeEveryKind({ ...stage, memory: opened.memory })
  opened.memory.close()
  const env = { ...at.env, DEMO_API_KEY: secret }
  for (const { code, printed } of examples) {
    const script = `exec 2>&1; braidclaw() { ${JSON.stringify(executable)} "$@"; }\n${code}`
    const child = Bun.spawn(['bash', '-c', script], { cwd: at.workspace, env, stdio: ['ignore', 'pipe', 'inherit'] })
    const shown = (await child.stdout.text()).split('\n').filter((line) => !code.includes('head -1') || line.includes(' -> '))
    expect(shown.join('\n').trimEnd()).toBe(printed.trimEnd())
  }
})
