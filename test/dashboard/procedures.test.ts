/** The page Procedures in a real browser: the list, a procedure with its steps, a run live with its question, and what can be done about it. */

import { test as always, expect } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { writeSop } from '../sop/daily-check.ts'
import { browserOfFile, hasBrowser } from '../support/browser.ts'
import { gateway, tokenOf } from '../support/gateway.ts'
import { home } from '../support/turns.ts'
import { until } from '../support/until.ts'

const test = always.if(hasBrowser)
const open = browserOfFile()
const hostile = '<img src=x onerror=alert(1)>'
const work = `name = "work"
description = "Writes ${hostile}"
[inputs.text]
description = "What to write"
[outputs]
result = "wrote {{ inputs.text }}"
[[triggers]]
webhook = "builder"
input = "text"
[[steps]]
id = "list"
kind = "tool"
tool = "file_list"
args = { path = "." }
[[steps]]
id = "ok"
kind = "approval"
prompt = "May it write ${hostile}?"
[[steps]]
id = "write"
kind = "tool"
tool = "file_write"
args = { path = "a.txt", content = "{{ inputs.text }}" }
`

test('a procedure is run with an input, its run is followed live, its question is answered there, and a waiting run is cancelled', async () => {
  using at = home()
  writeSop(at, 'work', work)
  writeSop(at, 'ask', 'name = "ask"\n[[steps]]\nid = "ok"\nkind = "approval"\nprompt = "Yes?"\n')
  writeSop(at, 'wrong', 'name = "wrong"\n[[steps]]\nid = "a"\nkind = "tol"\n')
  await using server = await gateway(at, ['--autonomy', 'full'])
  await using visit = await open(server, { at: 'procedures' })
  const { page, complaints } = visit
  const wrong: string[] = []
  page.on('response', (response) => void (response.ok() || wrong.push(response.url())))
  await page.getByRole('article', { name: 'Procedure wrong' }).getByText('SOP.toml:4:1').waitFor()
  const card = page.getByRole('article', { name: 'Procedure work' })
  await card.getByText('a request with the token "builder"').waitFor()
  await card.getByText('off', { exact: true }).waitFor()
  await page.getByText('No runs yet.').waitFor()
  await card.getByRole('link', { name: 'work' }).click()
  await page.getByText('file_list {"path":"."}').waitFor()
  await page.getByRole('button', { name: 'Run it' }).click()
  await page.getByLabel('What to write').fill(hostile)
  await page.getByRole('button', { name: 'Run it' }).click()
  const question = page.getByRole('article', { name: 'Question about sop.approval' })
  await question.getByText(`work, ok: May it write ${hostile}?`).waitFor()
  if (process.env.SCREENSHOT) await page.screenshot({ path: process.env.SCREENSHOT, fullPage: true })
  await question.getByRole('button', { name: 'Allow' }).click()
  await page.getByRole('heading', { name: 'result' }).waitFor()
  expect(await page.getByRole('group', { name: 'Result result' }).textContent()).toBe(`wrote ${hostile}`)
  await until(() => existsSync(join(at.workspace, 'a.txt')))
  await page.getByRole('link', { name: 'Procedures' }).click()
  const second = (await server.ask('/sops/ask/runs', {})).body.id
  await page.locator(`a[href="#/procedures/${second}"]`).getByText('waiting').waitFor()
  await page.locator(`a[href="#/procedures/${second}"]`).click()
  await page.getByRole('button', { name: 'Resume' }).click()
  await page.getByText(`Continued: ${second}`).waitFor()
  await page.getByRole('button', { name: 'Cancel' }).click()
  await page.getByText('cancelled', { exact: true }).first().waitFor()
  expect([await page.locator('main img').count(), complaints, wrong]).toEqual([0, [], []])
  const reads = await tokenOf(at, 'reads', '--scope', 'read')
  await using other = await open({ ...server, token: reads }, { at: 'procedures/work' })
  await other.page.getByText('file_list {"path":"."}').waitFor()
  expect(await other.page.getByRole('button', { name: 'Run it' }).count()).toBe(0)
}, 120_000)
