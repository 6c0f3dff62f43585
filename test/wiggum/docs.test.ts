/** The night of docs/wiggum.md happens as it stands there. */

import { test as always, expect } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { nest } from '../support/cli.ts'
import { needs } from '../support/needs.ts'
import { shell } from '../support/shell.ts'

const page = readFileSync(join(import.meta.dir, '../../docs/wiggum.md'), 'utf8')
const steps = [...page.matchAll(/```sh\n(.*?)```\n```text\n(.*?)```/gs)].map(([, script = '', printed = '']) => ({ script, printed }))

always.if(needs('bwrap'))('the commands of the page print what stands there', async () => {
  using made = nest()
  expect(steps).toHaveLength(2)
  for (const { script, printed } of steps) {
    const { stdout, stderr } = await shell(made, script, {})
    const masked = stdout
      .replaceAll(made.workspace, '.')
      .replace(/works in \S+,/g, 'works in …,')
      .replace(/run\\?_[a-z0-9]+/g, 'RUN')
      .replace(/\(tier 0, \w+\)/, '(tier 0, …)')
      .replace(/\d+ ms$/gm, '… ms')
      .replace(/\/\S+?\/(src|tests)\//g, '…/$1/')
    expect([masked, stderr]).toEqual([printed, ''])
  }
})
