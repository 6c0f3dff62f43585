/** The pipelines of docs/unix.md, run as they stand there. */

import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { nest } from '../support/cli.ts'
import { needs } from '../support/needs.ts'
import { shell } from '../support/shell.ts'

const page = readFileSync(join(import.meta.dir, '../../docs/unix.md'), 'utf8')
const pipelines = [...page.matchAll(/```sh\n(.*?)```\n```text\n(.*?)```/gs)].map(([, script = '', printed = '']) => ({ script, printed }))

test('there are six', () => {
  expect(pipelines).toHaveLength(6)
  expect(page.match(/```sh/g)).toHaveLength(6)
})

test('and the table of what agrees between the loops', () => {
  expect(page).toMatch(/^\| case \| native \| bash \| llm \|$/m)
})

test.if(needs('bwrap', 'jq')).each(pipelines)('$script', async ({ script, printed }) => {
  using at = nest()
  at.file('error.log', 'INFO up\nERROR db: no route\n')
  at.file('a.md', 'one\n')
  at.file('b.md', 'two\n')
  expect(await shell(at, `set -e\n${script}`)).toEqual({ code: 0, stdout: printed, stderr: '' })
})

test.if(needs('bwrap', 'jq'))('the functions of the page run as they stand there', async () => {
  using at = nest()
  const [, script = ''] = /```bash\n(.*?)```/s.exec(page) ?? []
  await at.run(['init'])
  const { code, stdout, stderr } = await shell(at, `set -e\n${script}`)
  expect([code, stderr]).toEqual([0, ''])
  expect(stdout).toMatch(/^\S+ assistant: stub response 1\nstub response 2\n$/)
})
