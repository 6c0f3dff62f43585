/** The page Now in a real browser: what needs the person first, and one key that does it; each is checked on the real plane. */

import { test as always, expect } from 'bun:test'
import type { Page } from 'playwright-core'
import { browserOfFile, hasBrowser } from '../../support/browser.ts'
import { isDeep } from '../../support/tier.ts'
import { until } from '../../support/until.ts'
import { filledControlOfFile } from '../support/control-of-file.ts'
import type { ControlUnderTest } from '../support/control-server.ts'
import { claimed } from '../support/filled-control.ts'

const test = always.if(hasBrowser)
const open = browserOfFile()
const here = filledControlOfFile()

const visit = (at: ControlUnderTest, path = '') => open({ url: at.url, token: at.operator }, { at: path })
const card = (page: Page, kind: string) => page.locator(`[data-mark^="${kind} "]`)
const markedKind = (page: Page) => page.evaluate<string | undefined>(`document.activeElement?.getAttribute('data-mark')?.split(' ')[0]`)

/** Moves the mark with j until it is on an entry of this kind, or this very one, and waits as long as a person needs to read it. */
async function mark(page: Page, kind: string, id = ''): Promise<void> {
  const isThere = () =>
    page.evaluate<boolean>(`(document.activeElement?.getAttribute('data-mark') ?? '').startsWith(${JSON.stringify(`${kind} ${id}`)})`)
  await page.locator(`[data-mark^="${kind} ${id}"]`).first().waitFor()
  for (let at = 0; at < 20 && !(await isThere()); at += 1) await page.keyboard.press('j')
  expect(await isThere()).toBe(true)
  await page.waitForTimeout(450)
}

const pressWhenGone = (id: string, key: string) => `new MutationObserver((_, observer) => {
  if (document.querySelector('[data-mark="${id}"]')) return
  observer.disconnect()
  document.body.dispatchEvent(new KeyboardEvent('keydown', { key: '${key}', bubbles: true }))
}).observe(document.body, { childList: true, subtree: true })`

async function approvalOf({ at, filled }: ReturnType<typeof here>) {
  const { approvals } = await at.client().approvals.list({ task_id: filled.waitingTask })
  return approvals[0]
}

if (isDeep)
  test('the entries stand in the order of their urgency, and the navigation says how many wait', async () => {
    const { at } = here()
    await using visited = await visit(at)
    const { page, complaints } = visited
    for (const kind of ['approval', 'doubtful', 'dead', 'paused', 'working']) await card(page, kind).waitFor()
    const kinds = await page.locator('[data-mark]').evaluateAll((all) => all.map((each) => each.getAttribute('data-mark')?.split(' ')[0]))
    expect(kinds).toEqual(['approval', 'doubtful', 'dead', 'paused', 'working'])
    await page.locator('nav .count').filter({ hasText: /^3/ }).waitFor()
    expect(await page.title()).toBe('(3) BraidClaw control')
    expect(complaints).toEqual([])
  })

if (isDeep)
  test('an agent is unseen by the clock of the server, not by that of the browser', async () => {
    const { at } = here()
    await using visited = await visit(at)
    const { page } = visited
    await page.clock.setSystemTime(Date.now() + 3_600_000)
    await page.reload()
    await card(page, 'working').waitFor()
    expect(await card(page, 'unseen').count()).toBe(0)
    expect(await card(page, 'working').innerText()).toContain('just now')
  })

test('a key in a field, with Control, or on an entry that was not read yet decides nothing', async () => {
  const { at, filled } = here()
  await using visited = await visit(at)
  const { page } = visited
  await card(page, 'approval').waitFor()
  await page.getByLabel(/^Note for/).fill('y')
  await page.getByLabel(/^Note for/).press('n')
  await page.keyboard.press('Escape')
  await page.keyboard.press('Control+y')
  await page.keyboard.press('?')
  await page.getByRole('heading', { name: 'Keys' }).waitFor()
  await page.keyboard.press('y')
  await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click()
  await page.waitForTimeout(200)
  expect((await approvalOf({ at, filled }))?.state).toBe('pending')
})

test('y approves the real approval, with the note; another tab sees it, and the mark goes on to the next entry', async () => {
  const { at, filled } = here()
  await using visited = await visit(at)
  const { page, complaints } = visited
  const other = await page.context().newPage()
  await other.goto(`${at.url}/#/`)
  await card(other, 'approval').waitFor()
  await mark(page, 'approval')
  await page.getByLabel(/^Note for/).fill('only this once')
  await page.keyboard.press('Escape')
  await page.keyboard.press('y')
  await card(page, 'approval').waitFor({ state: 'detached' })
  await card(other, 'approval').waitFor({ state: 'detached' })
  expect(await approvalOf({ at, filled })).toMatchObject({
    state: 'approved',
    note: 'only this once',
    decided_by: expect.stringContaining('operator'),
  })
  expect((await at.client().tasks.get(filled.waitingTask)).status).toBe('pending')
  await until(async () => (await markedKind(page)) === 'doubtful')
  expect(complaints).toEqual([])
})

if (isDeep)
  test('n denies, and v sends back with a note: the agent reads both', async () => {
    const { at } = here()
    const ask = (operation: string) => at.client().activity({ event_type: 'approval_request', agent_id: 'sysadmin', operation })
    const [first, second] = [await ask('destroy the old jail'), await ask('open port 25')]
    await using visited = await visit(at)
    const { page } = visited
    await page.locator(`[data-mark="approval ${second.approval_id}"]`).waitFor()
    await mark(page, 'approval', first.approval_id ?? '')
    // Three presses: two at once, and one in the moment in which the second approval takes the place of the first.
    await page.evaluate(pressWhenGone(`approval ${first.approval_id}`, 'n'))
    await page.keyboard.press('n')
    await page.keyboard.press('n')
    await page.locator(`[data-mark="approval ${first.approval_id}"]`).waitFor({ state: 'detached' })
    await page.waitForTimeout(500)
    expect((await at.client().approvals.get(second.approval_id ?? '')).state).toBe('pending')
    expect(await page.locator('.toast.banner:not(.good)').count()).toBe(0)
    await mark(page, 'approval', second.approval_id ?? '')
    await page.keyboard.press('v')
    await page.keyboard.type('only for the mail host')
    await page.keyboard.press('Enter')
    await page.locator(`[data-mark="approval ${second.approval_id}"]`).waitFor({ state: 'detached' })
    const states = await Promise.all([first, second].map(async ({ approval_id }) => await at.client().approvals.get(approval_id ?? '')))
    expect(states.map(({ state, note }) => [state, note])).toEqual([
      ['rejected', null],
      ['revise', 'only for the mail host'],
    ])
  })

if (isDeep)
  test('r lets an effect in doubt run again, and brings a dead task back', async () => {
    const { at, filled } = here()
    await using visited = await visit(at)
    const { page } = visited
    await mark(page, 'doubtful')
    await page.keyboard.press('r')
    await card(page, 'doubtful').waitFor({ state: 'detached' })
    expect((await at.client().tasks.get(filled.doubtfulTask)).status).toBe('pending')
    await mark(page, 'dead')
    await page.keyboard.press('r')
    await card(page, 'dead').waitFor({ state: 'detached' })
    expect((await at.client().tasks.get(filled.deadTask)).status).toBe('pending')
  })

if (isDeep)
  test('x puts a dead task away, after a question', async () => {
    const { at } = here()
    const { key } = await at.client().fleet.newKey('sysadmin')
    const { task, run_token } = await claimed(at, { sysadmin: key }, 'sysadmin', 'Nobody wants this', 1)
    await at.client(run_token).tasks.release(task.task_id, { outcome: 'retry', error: 'no' })
    await using visited = await visit(at)
    const { page } = visited
    await mark(page, 'dead')
    await page.keyboard.press('x')
    await page.getByRole('button', { name: 'Cancel the task' }).click()
    await card(page, 'dead').waitFor({ state: 'detached' })
    expect(await at.client().tasks.get(task.task_id)).toMatchObject({ status: 'cancelled', error: 'no' })
  })

if (isDeep)
  test('b raises a limit of the day that is used up, of a role or of all, after a question; the tasks that wait stand with it', async () => {
    const { at } = here()
    const { agent_id, key } = { agent_id: 'builder', key: await at.addAgent('builder') }
    const before = (await at.client().budget.get()).allocation
    await at.client().budget.set({ allocation: { ...before, builder: 1_000 } })
    const { task, run_token } = await claimed(at, { builder: key }, 'builder', 'Build the site')
    const worker = at.client(run_token)
    const { reservation_id } = await worker.budget.reserve({ tokens: 1_000 })
    await worker.budget.settle({ reservation_id, tokens: 1_234 })
    await worker.budget.reserve({ tokens: 10 }).catch(() => undefined)
    expect((await at.client().tasks.get(task.task_id)).status).toBe('budget_blocked')
    await using visited = await visit(at)
    const { page, complaints } = visited
    await mark(page, 'spent', agent_id)
    expect(await card(page, 'unpaid').count()).toBe(0)
    const text = await page.locator('[data-mark="spent builder"]').innerText()
    expect(text).toContain('1,234 of 1,000 tokens are spent today')
    expect(text).toContain('Build the site')
    await page.keyboard.press('b')
    expect(await page.getByRole('dialog').innerText()).toContain('builder: from 1,000 to 1,800 a day. Spent today: 1,234.')
    await page.getByRole('button', { name: 'Raise the limit' }).click()
    await page.locator('[data-mark="spent builder"]').waitFor({ state: 'detached' })
    expect((await at.client().budget.get()).allocation).toEqual({ ...before, builder: 1_800 })
    expect((await at.client().tasks.get(task.task_id)).status).toBe('pending')
    const { spent_today } = await at.client().budget.set({ daily_tokens: 1_000 })
    await page.locator('[data-mark="spent *"]').waitFor()
    for (let up = 0; up < 20; up += 1) await page.keyboard.press('k')
    await mark(page, 'spent', '*')
    await page.keyboard.press('b')
    await page.getByRole('button', { name: 'Raise the limit' }).click()
    await page.locator('[data-mark="spent *"]').waitFor({ state: 'detached' })
    expect((await at.client().budget.get()).daily_tokens).toBeGreaterThan(spent_today)
    expect(complaints).toEqual([])
  })

if (isDeep)
  test('p pauses the agent that works and resumes the one that is paused', async () => {
    const { at } = here()
    await using visited = await visit(at)
    const { page, complaints } = visited
    await mark(page, 'working')
    await page.keyboard.press('p')
    await page.locator('[data-mark="paused sysadmin"]').waitFor()
    expect((await at.client().fleet.get('sysadmin')).paused).toBe(true)
    await mark(page, 'paused')
    await page.keyboard.press('p')
    await page.locator('[data-mark="paused db-admin"]').waitFor({ state: 'detached' })
    expect((await at.client().fleet.list()).filter(({ paused }) => paused).map(({ id }) => id)).toEqual(['sysadmin'])
    expect(complaints).toEqual([])
  })
