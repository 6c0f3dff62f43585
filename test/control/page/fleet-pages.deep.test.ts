/** Budget, agents, operators, schedules and tasks in a real browser: what is changed there changes the real plane. */

import { test as always, expect } from 'bun:test'
import { browserOfFile, hasBrowser } from '../../support/browser.ts'
import { filledControlOfFile } from '../support/control-of-file.ts'
import type { ControlUnderTest } from '../support/control-server.ts'

const test = always.if(hasBrowser)
const open = browserOfFile()
const here = filledControlOfFile()

const visit = (at: ControlUnderTest, path: string) => open({ url: at.url, token: at.operator }, { at: path })

test('a limit is raised only after a confirmation, and lowered with a warning', async () => {
  const { at } = here()
  await using visited = await visit(at, 'budget/db-admin')
  const { page, complaints } = visited
  const field = page.getByLabel('Tokens a day for db-admin; leave empty for no limit')
  await field.waitFor()
  await page.waitForFunction(`document.activeElement.getAttribute('aria-label')?.includes('db-admin')`)
  await page.getByRole('button', { name: 'Double for db-admin' }).click()
  await page.getByRole('button', { name: 'Raise db-admin' }).click()
  await page.getByRole('dialog').getByText('from 5,000 to 10,000 a day').waitFor()
  await page.getByRole('button', { name: 'Back' }).click()
  expect((await at.client().budget.get()).allocation['db-admin']).toBe(5_000)
  await page.getByRole('button', { name: 'Raise db-admin' }).click()
  await page.getByRole('button', { name: 'Raise the limit' }).click()
  await page.getByText('db-admin: 10,000 tokens a day').waitFor()
  expect((await at.client().budget.get()).allocation).toEqual({ orchestrator: 80_000, sysadmin: 10_000, 'db-admin': 10_000 })
  await page.getByLabel('Tokens a day for orchestrator; leave empty for no limit').fill('10')
  await page.getByRole('button', { name: 'Lower orchestrator' }).click()
  await page.getByText('the agents stop at once').waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  expect((await at.client().budget.get()).allocation.orchestrator).toBe(80_000)
  expect(complaints).toEqual([])
})

test('an agent is added with a key that works and is shown once; a rotated key ends the old one', async () => {
  const { at } = here()
  await using visited = await visit(at, 'agents')
  const { page, complaints } = visited
  await page.getByLabel('Name').fill('mail-admin')
  await page.getByLabel('Role').fill('sysadmin')
  await page.getByRole('button', { name: 'Add, and make its key' }).click()
  const first = await page.getByLabel('The secret').inputValue()
  expect(first).toMatch(/^cpa_[\w-]{43}$/)
  expect((await at.ask('agents/mail-admin/report', { token: first, body: { worker: {} } })).status).toBe(200)
  await page.getByRole('button', { name: 'Close' }).click()
  await page.locator('[data-mark="mail-admin"]').getByRole('button', { name: 'Rotate key' }).click()
  await page.getByRole('button', { name: 'Rotate the key', exact: true }).click()
  const second = await page.getByLabel('The secret').inputValue()
  await page.getByRole('button', { name: 'Close' }).click()
  expect(await page.content()).not.toContain(second)
  const answers = [first, second].map((token) => at.ask('agents/mail-admin/report', { token, body: { worker: {} } }))
  expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([401, 200])
  expect(complaints).toEqual([])
})

test('a worker that comes back is seen without a reload, and its session and keys are on its page', async () => {
  const { at } = here()
  const key = await at.addAgent('late', 'sysadmin')
  await using visited = await visit(at, 'agents')
  const { page } = visited
  const late = page.locator('[data-mark="late"]')
  await late.getByText('never seen').waitFor()
  await at.client(key).fleet.report('late', { host: 'build-2' })
  await late.getByText('seen just now').waitFor()
  await late.getByRole('link', { name: 'late' }).click()
  await page.getByText('Report of its worker').waitFor()
  await page.goto(`${at.url}/#/agents/sysadmin`)
  await page.getByRole('cell', { name: 'jail-status' }).waitFor()
})

test('an operator gets a token that opens the page; a revoked one is out at once', async () => {
  const { at } = here()
  await using visited = await visit(at, 'operators')
  const { page } = visited
  await page.getByLabel('Name').fill('bert')
  await page.getByRole('button', { name: 'Make a token' }).click()
  const token = await page.getByLabel('The secret').inputValue()
  await page.getByRole('button', { name: 'Close' }).click()
  await using second = await open({ url: at.url, token }, { at: 'audit', token: null })
  await second.page.getByLabel('Access token').fill('cpo_wrong')
  await second.page.getByRole('button', { name: 'Log in' }).click()
  await second.page.getByRole('alert').waitFor()
  await second.page.getByLabel('Access token').fill(token)
  await second.page.getByRole('button', { name: 'Log in' }).click()
  await second.page.getByRole('heading', { name: 'Audit' }).waitFor()
  await page.getByRole('button', { name: 'Revoke bert' }).click()
  await page.getByRole('button', { name: 'Revoke the token' }).click()
  await second.page.getByLabel('Access token').waitFor()
})

test('a schedule is added, disabled and removed', async () => {
  const { at } = here()
  await using visited = await visit(at, 'schedules')
  const { page } = visited
  await page.getByLabel('Name').fill('hourly')
  await page.getByLabel('How often').selectOption('At an interval')
  await page.getByLabel('When', { exact: true }).fill('1h')
  await page.getByLabel('Title of the task').fill('Look at the disks')
  await page.getByLabel('Role').fill('sysadmin')
  await page.getByRole('button', { name: 'Add' }).click()
  const card = page.getByRole('article', { name: 'Schedule hourly' })
  await card.getByRole('button', { name: 'Disable' }).click()
  await card.getByText('disabled', { exact: true }).waitFor()
  expect((await at.client().schedules.list()).find(({ name }) => name === 'hourly')).toMatchObject({
    ...{ every: '1h', enabled: false },
    timezone: await page.evaluate('Intl.DateTimeFormat().resolvedOptions().timeZone'),
  })
  await card.getByRole('button', { name: 'Remove' }).click()
  await page.getByRole('button', { name: 'Remove the schedule' }).click()
  await card.waitFor({ state: 'detached' })
})

test('a task is created once, edited only in the version that was read, held, and cancelled', async () => {
  const { at } = here()
  await using visited = await visit(at, 'tasks/new')
  const { page } = visited
  await page.getByLabel('Title').fill('Renew the certificate')
  await page.getByLabel('Role').fill('orchestrator')
  await page.getByText('Context', { exact: true }).click()
  await page.getByLabel(/^A JSON object/).fill('{"host"')
  await page.getByRole('button', { name: 'Create the task' }).click()
  await page.getByText('The context is not a JSON object').waitFor()
  await page.getByLabel(/^A JSON object/).fill('{"host": "mail"}')
  await page.getByRole('button', { name: 'Create the task' }).click()
  await page.getByRole('heading', { name: 'Renew the certificate' }).waitFor()
  const id = new URL(page.url()).hash.slice('#/tasks/'.length)
  await page.getByText(`Created: ${id}`).waitFor()
  expect(await at.client().tasks.get(id)).toMatchObject({
    role: 'orchestrator',
    context: { host: 'mail' },
    created_by: 'operator environment',
  })
  await page.getByRole('link', { name: 'Edit' }).click()
  await page.getByLabel('Title').fill('Renew both certificates')
  await at.client().tasks.edit(id, { priority: 'high' })
  await page.getByRole('button', { name: 'Save' }).click()
  await page.locator('.toast.banner').waitFor()
  expect((await at.client().tasks.get(id)).title).toBe('Renew the certificate')
  await page.goto(`${at.url}/#/tasks/${id}`)
  await page.getByRole('button', { name: 'Hold' }).click()
  await page.getByText('operator', { exact: true }).waitFor()
  await page.getByRole('button', { name: 'Cancel' }).click()
  await page.getByRole('button', { name: 'Cancel the task' }).click()
  await page.locator('main .tag').filter({ hasText: 'cancelled' }).waitFor()
  expect((await at.client().tasks.get(id)).status).toBe('cancelled')
})
