/** The pages over 10,000 tasks and a control plane that is killed: nothing freezes, nothing is missed, several tabs share one connection. */

import { afterAll, test as always, beforeAll, expect } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page, Response } from 'playwright-core'
import { browserOfFile, hasBrowser } from '../../support/browser.ts'
import { type ControlProcess, controlProcess } from '../support/control-process.ts'
import { operatorToken, talkTo } from '../support/control-server.ts'

const test = always.if(hasBrowser)
const open = browserOfFile()
const many = 10_000
const roles = ['orchestrator', 'sysadmin', 'db-admin', 'git-admin'] as const
/** A person calls 100 ms at once. Whoever draws all of them takes many seconds, and a busy machine takes one. */
const mostMs = 4_000

const state: { home?: string; server?: ControlProcess; keys?: Map<string, string> } = {}

beforeAll(async () => {
  if (!hasBrowser) return
  state.home = mkdtempSync(join(tmpdir(), 'control-page-'))
  state.server = await controlProcess({ home: state.home })
  const client = talkTo(state.server.url).client()
  state.keys = new Map()
  for (const role of roles) {
    await client.fleet.add({ id: role, role })
    state.keys.set(role, (await client.fleet.newKey(role)).key)
  }
  for (let from = 0; from < many; from += 1_000)
    await client.tasks.createMany(
      Array.from({ length: 1_000 }, (_, at) => ({
        ...{
          title: `Task number ${from + at + 1}`,
          role: roles[at % 4] ?? 'sysadmin',
          description: at % 500 === 499 ? 'x'.repeat(65_000) : '',
        },
        labels: at % 100 === 0 ? ['hundredth'] : [],
      })),
    )
})

afterAll(async () => {
  await state.server?.kill()
  if (state.home !== undefined) rmSync(state.home, { recursive: true, force: true })
})

function here(): { readonly url: string; readonly talk: ReturnType<typeof talkTo>; readonly keys: ReadonlyMap<string, string> } {
  if (!state.server || !state.keys) throw new Error('the control plane is not there')
  return { url: state.server.url, talk: talkTo(state.server.url), keys: state.keys }
}

const visit = (at: string) => open({ url: here().url, token: operatorToken }, { at })

/** Notes how long the page did nothing else, from now on. */
async function watchBusy(page: Page): Promise<() => Promise<number>> {
  await page.evaluate(`window.busy = 0; new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) window.busy = Math.max(window.busy, Math.round(duration))
  }).observe({ entryTypes: ['longtask'] })`)
  return () => page.evaluate<number>('window.busy')
}

/** From the key to the drawn page, in ms. */
const keyTime = (page: Page, key: string) =>
  page.evaluate<number>(`new Promise((resolve) => {
    const begun = performance.now()
    document.body.dispatchEvent(new KeyboardEvent('keydown', { key: ${JSON.stringify(key)}, bubbles: true }))
    requestAnimationFrame(() => requestAnimationFrame(() => resolve(performance.now() - begun)))
  })`)

async function complete(count: number): Promise<void> {
  const { talk, keys } = here()
  for (let at = 0; at < count; at += 1) {
    const role = roles[at % 4] ?? 'sysadmin'
    const claim = await talk.client(keys.get(role)).tasks.claim({ role, agent_id: role })
    if (!claim) throw new Error('nothing was left to claim')
    await talk
      .client(claim.run_token)
      .activity({
        ...{ event_type: 'task_completed', task_id: claim.task.task_id, agent_id: role },
        result: { status: 'success', output: 'ok', tokens_used: 10 },
      })
  }
}

test('the board counts all of them, shows the newest of each column, and follows what happens', async () => {
  await using visited = await visit('tasks')
  const { page, complaints } = visited
  const lists: Promise<number>[] = []
  const measure = (response: Response) => {
    if (response.url().includes('/tasks?')) lists.push(response.body().then(({ length }) => length))
  }
  page.on('response', measure)
  const column = (name: string) => page.getByRole('region', { name, exact: true })
  await column('pending').getByText('10,000').waitFor()
  await column('pending').getByRole('listitem').nth(11).waitFor()
  expect(await column('pending').getByRole('listitem').count()).toBe(12)
  // Some have a description of 64 KiB, which a board does not show.
  page.off('response', measure)
  expect(Math.max(...(await Promise.all(lists)))).toBeLessThan(20_000)
  const busy = await watchBusy(page)
  await complete(40)
  await column('completed').getByText('40', { exact: true }).waitFor()
  await column('pending').getByText('9,960').waitFor()
  expect(await busy()).toBeLessThan(mostMs)
  expect(complaints).toEqual([])
})

test('the list is read page by page; filters, keys and changes of single rows stay quick', async () => {
  await using visited = await visit('tasks?view=list')
  const { page, complaints } = visited
  const rows = page.locator('.rows > li')
  const asked: string[] = []
  page.on('request', (request) => asked.push(request.url()))
  for (let shown = 50; shown <= 500; shown += 50) {
    await rows.nth(shown - 1).waitFor({ state: 'attached' })
    if (shown < 500) await page.getByRole('button', { name: 'Older' }).click()
  }
  const busy = await watchBusy(page)
  const times: number[] = []
  for (let at = 0; at < 10; at += 1) times.push(await keyTime(page, 'j'))
  expect(Math.max(...times)).toBeLessThan(mostMs)
  expect(await page.evaluate(`document.activeElement.getAttribute('data-mark')`)).toBe('TASK-9991')
  const old = (await rows.nth(300).getAttribute('data-mark')) ?? ''
  asked.length = 0
  await here().talk.client().tasks.cancel(old)
  await rows.nth(300).getByText('cancelled').waitFor()
  expect(await page.evaluate(`document.activeElement.getAttribute('data-mark')`)).toBe('TASK-9991')
  expect(asked.filter((url) => /\/tasks/.test(url)).length).toBeLessThanOrEqual(6)
  await page.keyboard.press('/')
  await page.keyboard.type('number 777')
  await rows.filter({ hasText: 'Task number 7770' }).waitFor()
  await page.getByLabel('Label').fill('hundredth')
  await page.getByText('No task matches the filters.').waitFor()
  expect(await busy()).toBeLessThan(mostMs)
  expect(await page.evaluate(`location.hash`)).toBe('#/tasks?view=list&q=number+777&label=hundredth')
  expect(complaints).toEqual([])
})

test('eight tabs share one connection for events; when its tab is closed another one goes on without missing any', async () => {
  await using visited = await visit('audit')
  const { page } = visited
  const context = page.context()
  await page.getByText('Task number').first().waitFor()
  const streams: string[] = []
  context.on('request', (request) => void (request.url().endsWith('/events') && streams.push(request.url())))
  const tabs = await Promise.all(Array.from({ length: 7 }, () => context.newPage()))
  for (const tab of tabs) await tab.goto(`${here().url}/#/audit`)
  const last = tabs.at(-1) ?? page
  await last.getByText('Task number').first().waitFor()
  expect(streams).toEqual([])
  await page.close()
  const { task_id } = await here().talk.client().tasks.create({ title: 'Made after the tab was closed', role: 'sysadmin' })
  for (const tab of tabs) await tab.getByText('Made after the tab was closed').first().waitFor()
  expect(await last.getByRole('link', { name: task_id }).count()).toBe(1)
  expect(streams.length).toBe(1)
})

test('the log of a run that works is followed as it is written, and begins at its end', async () => {
  const { talk, keys } = here()
  const claim = await talk.client(keys.get('sysadmin')).tasks.claim({ role: 'sysadmin', agent_id: 'sysadmin' })
  if (!claim) throw new Error('nothing was left to claim')
  const runner = talk.client(claim.run_token).runs
  // Lines of 110 bytes: the last 64 KiB begin within a character, and so do the ones before.
  const lines = Array.from({ length: 8_000 }, (_, at) => `line ${at} of the log, ${'✓'.repeat(29)}\n`).join('')
  const { log_bytes } = await runner.appendLog(claim.run_id, 0, lines)
  await using visited = await visit(`runs/${claim.run_id}`)
  const { page, complaints } = visited
  const log = page.getByLabel(`Log of ${claim.run_id}`)
  await log.getByText('line 7999 of the log').waitFor()
  expect(await log.innerText()).not.toContain('line 1 of')
  expect(await log.innerText()).not.toContain('\ufffd')
  await runner.appendLog(claim.run_id, log_bytes, `${String.fromCharCode(27)}[32mgreen${String.fromCharCode(27)}[0m <b>bold</b>\n`)
  await log.getByText('green <b>bold</b>').waitFor()
  await page.getByRole('button', { name: 'Show earlier lines' }).click()
  await page.getByText('From byte', { exact: false }).waitFor()
  expect(await log.innerText()).not.toContain('\ufffd')
  const download = page.waitForEvent('download')
  await page.getByRole('button', { name: 'Download' }).click()
  expect(await Bun.file((await (await download).path()) ?? '').text()).toStartWith(`line 0 of the log, ${'✓'.repeat(29)}\nline 1 `)
  expect(complaints).toEqual([])
})

test('a control plane that is killed is said to be away, what was loaded stays, and its return needs no hand', async () => {
  await using visited = await visit('tasks?view=list')
  const { page } = visited
  await page.locator('.rows > li').first().waitFor()
  await page.locator('.rows > li').first().focus()
  const { home, server } = state
  if (!server || home === undefined) throw new Error('the control plane is not there')
  await server.kill()
  await page.getByText('The server does not answer.').first().waitFor()
  expect(await page.locator('.rows > li').count()).toBe(50)
  state.server = await controlProcess({ home, port: server.port })
  await here().talk.client().tasks.create({ title: 'Made after the return', role: 'sysadmin' })
  await page.getByText('Made after the return').waitFor()
  await page.getByText('The server does not answer.').first().waitFor({ state: 'detached' })
  expect(await page.locator('.banner').count()).toBe(0)
})
