/** Questions in a real browser: what is shown of them, and how they are answered. */

import { test as always, expect } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { browserOfFile, hasBrowser, say } from '../support/browser.ts'
import { gateway, tokenOf } from '../support/gateway.ts'
import { needs } from '../support/needs.ts'
import { isDeep } from '../support/tier.ts'
import { call, home, scripted } from '../support/turns.ts'
import { until } from '../support/until.ts'

const test = always.if(hasBrowser)
const testOfChanges = always.if(hasBrowser && needs('bwrap'))
/** The deep tier alone; the fast one drives a browser through one case of each kind. */
const deep = isDeep ? testOfChanges : () => {}
const open = browserOfFile()

const question = 'article.ask'

testOfChanges('the key n denies: the exact difference was shown, nothing changes, and the model is told why', async () => {
  using at = home()
  at.file('plan.md', 'buy milk\nbuy eggs\n')
  const { env } = scripted(at, [call('shell', { command: "sed -i 's/milk/bread/' plan.md" }), { text: 'Then not.' }])
  await using server = await gateway(at, [], { env })
  await using visit = await open(server)
  const { page, complaints } = visit
  await page.getByText('Nothing waits for you.').waitFor()
  const turn = server.ask('/chat', { message: 'go', on_approval: 'wait' })
  await page.locator('.diff').waitFor()
  expect((await page.locator('.diff span').allTextContents()).slice(-4)).toEqual([
    '@@ -1,2 +1,2 @@',
    '-buy milk',
    '+buy bread',
    ' buy eggs',
  ])
  expect(await page.title()).toBe('(1) BraidClaw')
  await page.getByLabel('Reason; the model reads it').fill('y')
  await page.getByLabel('Reason; the model reads it').press('n')
  expect(await page.locator(question).count()).toBe(1)
  await page.getByRole('heading', { name: 'Now', exact: true }).click()
  await page.keyboard.press('Control+y')
  await page.waitForTimeout(400)
  await page.keyboard.press('n')
  await page.getByText('Nothing waits for you.').waitFor()
  await until(async () => (await page.title()) === 'BraidClaw')
  expect((await turn).body).toMatchObject({ text: 'Then not.', ending: { code: 'denied' } })
  expect(readFileSync(join(at.workspace, 'plan.md'), 'utf8')).toBe('buy milk\nbuy eggs\n')
  expect(complaints).toEqual([])
})

deep('a yes in the conversation itself applies the changes, and the turn goes on', async () => {
  using at = home()
  const { env } = scripted(at, [call('shell', { command: 'echo hello > new.txt' }), { text: 'Written.' }])
  await using server = await gateway(at, [], { env })
  await using visit = await open(server, { at: 'talk' })
  const { page, complaints } = visit
  await say(page, 'write it')
  await page.locator('.diff').getByText('+hello').waitFor()
  expect(existsSync(join(at.workspace, 'new.txt'))).toBe(false)
  await page.getByRole('button', { name: 'Allow' }).click()
  await page.getByRole('log').getByText('Written.').waitFor()
  expect(await page.locator(question).count()).toBe(0)
  expect(readFileSync(join(at.workspace, 'new.txt'), 'utf8')).toBe('hello\n')
  expect(complaints).toEqual([])
})

test('j and k move the mark, y answers the marked one alone, and a second y does not answer the one that takes its place', async () => {
  using at = home()
  const write = call('file_write', { path: 'x.txt', content: 'exactly this\n' })
  const { env } = scripted(at, [write, write, write, { text: 'Done.' }])
  await using server = await gateway(at, [], { env })
  await using visit = await open(server)
  const { page } = visit
  const turns = []
  for (const message of ['one', 'two', 'three']) {
    turns.push(server.ask('/chat', { message, on_approval: 'wait' }).catch(() => 'the gateway ended first'))
    await page
      .locator(question)
      .nth(turns.length - 1)
      .getByText('exactly this')
      .waitFor()
  }
  expect(await page.locator(`${question} .diff span`).allTextContents()).toContain('+exactly this')
  const ids = await page.locator(`${question} .mono:last-child`).allTextContents()
  const marked = () => page.locator(`${question}[aria-current] .mono:last-child`).textContent()
  expect(await marked()).toBe(ids[0] ?? '')
  await page.keyboard.press('k')
  expect(await marked()).toBe(ids[0] ?? '')
  // A key that comes right when the next question takes the place of the answered one was meant for that one.
  await page.evaluate(`new MutationObserver((_, observer) => {
    if (document.querySelectorAll('article.ask').length !== 2) return
    // Once: a key that comes with a later change of the page is an answer to the entry that was read meanwhile.
    observer.disconnect()
    dispatchEvent(new KeyboardEvent('keydown', { key: 'y' }))
  }).observe(document.body, { childList: true, subtree: true })`)
  await page.keyboard.press('j')
  await page.keyboard.press('y')
  await page.locator(question).nth(2).waitFor({ state: 'detached' })
  await page.waitForTimeout(200)
  const asked = (await server.ask('/approvals?all=true')).body.approvals
  const stateOf = (id: string | undefined) => asked.find((each: { id: string }) => each.id === id).state
  expect([stateOf(ids[0]), stateOf(ids[2])]).toEqual(['open', 'open'])
  expect(['allowed', 'used']).toContain(stateOf(ids[1]))
  expect(await marked()).toBe(ids[2] ?? '')
})

test('a token without the scope approve sees the question and can answer it neither by button nor by key', async () => {
  using at = home()
  const { env } = scripted(at, [call('file_write', { path: 'x.txt', content: 'x' }), { text: 'Done.' }])
  const token = await tokenOf(at, 'reader', '--scope', 'read', '--scope', 'chat', '--memory', 'all')
  await using server = await gateway(at, [], { env })
  await using visit = await open(server, { token })
  const { page } = visit
  void server.ask('/chat', { message: 'go', on_approval: 'wait' }).catch(() => 'the gateway ended first')
  await page.getByText('Your token may not answer questions.').waitFor()
  expect(await page.getByRole('button', { name: 'Allow' }).count()).toBe(0)
  expect(await page.getByRole('button', { name: 'Stop everything' }).count()).toBe(0)
  await page.keyboard.press('y')
  await page.keyboard.press('n')
  // Nor by asking for it from the page itself.
  const answer = await page.evaluate(`fetch('/approvals').then((response) => response.json()).then(({ approvals: [first] }) =>
    fetch('/approvals/' + first.id, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"decision":"allow"}' }))
    .then(({ status }) => status)`)
  expect(answer).toBe(403)
  expect((await server.ask('/approvals')).body.approvals).toHaveLength(1)
})
