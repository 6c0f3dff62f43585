/** The dashboard in a real browser: logging in and out. */

import { test as always, expect } from 'bun:test'
import { browserOfFile, hasBrowser } from '../support/browser.ts'
import { gateway } from '../support/gateway.ts'
import { home } from '../support/turns.ts'
import { until } from '../support/until.ts'

const test = always.if(hasBrowser)
const open = browserOfFile()

test('a wrong token is refused with a sentence, the right one opens the page, and logging out closes it', async () => {
  using at = home()
  await using server = await gateway(at)
  await using visit = await open(server, { token: null })
  const { page, complaints } = visit
  await until(async () => (await page.evaluate('document.activeElement.id')) === 'token')
  await page.getByLabel('Access token').fill('not-a-token')
  await page.getByRole('button', { name: 'Log in' }).click()
  expect(await page.getByRole('alert').textContent()).toContain('This token is not in force')
  await page.getByLabel('Access token').fill(server.token)
  await page.getByLabel('Access token').press('Enter')
  await page.getByRole('heading', { name: 'Now' }).waitFor()
  expect(await page.evaluate('document.cookie')).toBe('')
  await page.reload()
  await page.getByRole('heading', { name: 'Now' }).waitFor()
  await page.getByRole('button', { name: 'Log out' }).click()
  await page.getByLabel('Access token').waitFor()
  await page.reload()
  await page.getByLabel('Access token').waitFor()
  expect(complaints).toEqual([])
})
