/** A control plane on which nothing has happened yet, in a real browser: each page says what to do next. */

import { test as always, expect } from 'bun:test'
import { browserOfFile, hasBrowser } from '../../support/browser.ts'
import { controlServer } from '../support/control-server.ts'

const test = always.if(hasBrowser)
const open = browserOfFile()

test('an empty control plane leads to the first agent, its worker and the first task', async () => {
  await using at = await controlServer()
  await using visited = await open({ url: at.url, token: at.operator }, { at: '' })
  const { page, complaints } = visited
  await page.getByText('No agent is known yet.').waitFor()
  await page.goto(`${at.url}/#/runs`)
  await page.getByText('No runs yet').waitFor()
  await page.goto(`${at.url}/#/runs?state=lost`)
  await page.getByText('No run matches the filters.').waitFor()
  await page.goto(`${at.url}/#/tasks?view=list`)
  await page.getByText('No task exists yet.').waitFor()
  await page.goto(`${at.url}/#/`)
  await page.getByRole('link', { name: 'Add one' }).click()
  await page.getByLabel('Name').fill('director')
  await page.getByLabel('Role').fill('orchestrator')
  await page.getByRole('button', { name: 'Add, and make its key' }).click()
  const command = 'braidclaw control worker --agent director --role orchestrator --key-file director.key'
  await page.getByRole('dialog').getByText(command).waitFor()
  await page.getByRole('button', { name: 'Close' }).click()
  // Two minutes later nobody has seen it.
  await page.route(/\/agents$/, async (route) => {
    const response = await route.fetch()
    const { agents } = await response.json()
    const old = agents.map((agent: object) => ({ ...agent, created_at: '2026-01-01T00:00:00.000Z' }))
    await route.fulfill({ response, json: { agents: old } })
  })
  await page.goto(`${at.url}/#/`)
  await page.reload()
  const unseen = page.getByRole('article', { name: 'Not seen: director' })
  await unseen.getByText(command).waitFor()
  await unseen.getByRole('button', { name: 'Copy the command' }).click()
  await page.getByText(/^Copied\.|It is selected: press Ctrl\+C\.$/).waitFor()
  expect(await page.getByText('No agent is known yet.').count()).toBe(0)
  expect(complaints).toEqual([])
})
