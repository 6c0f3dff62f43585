/** The page Runs in a real browser: a transcript with what the gate said and the receipt of each call, and undo. */

import { test as always, expect } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { browserOfFile, hasBrowser } from '../support/browser.ts'
import { gateway, tokenOf } from '../support/gateway.ts'
import { needs } from '../support/needs.ts'
import { isDeep } from '../support/tier.ts'
import { call, home, scripted } from '../support/turns.ts'

const test = always.if(hasBrowser && needs('bwrap'))
/** The deep tier alone; the fast one drives a browser through one case of each kind. */
const deep = isDeep ? test : () => {}
const open = browserOfFile()

test('a run shows each call with verdict, rule and receipt; its changes can be taken back, also where others changed something since', async () => {
  using at = home()
  at.file('one.txt', 'one\n')
  at.file('two.txt', 'two\n')
  const { env } = scripted(at, [
    { text: 'First.', ...call('shell', { command: 'echo 1 > one.txt' }) },
    call('shell', { command: 'echo 2 > two.txt' }),
    call('shell', { command: 'reboot' }),
    { text: 'All *said*.' },
  ])
  const chat = await tokenOf(at, 'chat', '--scope', 'read', '--scope', 'chat', '--memory', 'all')
  await using server = await gateway(at, [], { env })
  await using visit = await open(server, { at: 'runs' })
  const { page, complaints } = visit
  const turn = server.ask('/chat', { message: 'change them', on_approval: 'wait' })
  const allow = async (id: string) => {
    while ((await server.ask(`/approvals/${id}`, { decision: 'allow' })).status !== 200) await Bun.sleep(20)
  }
  await page.getByRole('link', { name: 'change them' }).click()
  const run = new URL(page.url()).hash.split('/').at(-1)
  await allow(`changes:${run}/call_1`)
  await allow(`changes:${run}/call_1-2`)
  await turn
  const cards = page.getByRole('article')
  await page.getByText('All said.').waitFor()
  await cards.nth(2).getByText('denied', { exact: true }).waitFor()
  const { steps } = (await server.ask(`/runs/${run}`)).body
  const calls = steps.filter(({ type }: { type: string }) => type === 'call')
  for (const [at, { rule, reason, receipt, verdict }] of calls.entries()) {
    expect(receipt).toMatch(/^receipt-/)
    const text = await cards.nth(at).textContent()
    for (const part of [rule, reason, receipt, verdict]) expect(text).toContain(part)
  }
  expect(calls.map(({ verdict }: { verdict: string }) => verdict)).toEqual(['allow', 'allow', 'deny'])
  expect(await cards.nth(0).textContent()).toContain('Asked about its changes: yes, by token test')

  await cards.nth(0).getByRole('button', { name: 'Show the difference' }).click()
  await cards.nth(0).locator('.diff .remove').getByText('-one').waitFor()
  await cards.nth(0).getByRole('button', { name: 'Undo', exact: true }).click()
  await cards.nth(0).getByText('undone', { exact: true }).waitFor()
  expect(readFileSync(join(at.workspace, 'one.txt'), 'utf8')).toBe('one\n')

  at.file('two.txt', 'somebody else\n')
  await page.getByRole('button', { name: 'Undo all its changes' }).click()
  await page.getByText('Not undone:').waitFor()
  expect(readFileSync(join(at.workspace, 'two.txt'), 'utf8')).toBe('somebody else\n')
  await page.getByRole('button', { name: 'Undo and overwrite that' }).click()
  await cards.nth(1).getByText('undone', { exact: true }).waitFor()
  expect(readFileSync(join(at.workspace, 'two.txt'), 'utf8')).toBe('two\n')
  expect(await page.getByRole('button', { name: /^Undo/ }).count()).toBe(0)
  expect(complaints).toEqual([])

  await using other = await open(server, { token: chat, at: `runs/${run}` })
  await other.page.getByText('All said.').waitFor()
  expect(await other.page.getByRole('button', { name: /^Undo/ }).count()).toBe(0)
})

deep('the list has older pages, and can be of one conversation', async () => {
  using at = home()
  const { env } = scripted(
    at,
    Array.from({ length: 36 }, () => ({ text: 'Yes.' })),
  )
  await using server = await gateway(at, [], { env })
  const first = (await server.ask('/chat', { message: 'number 1' })).body.conversation_id
  await server.ask('/chat', { message: 'number 2', conversation_id: first })
  for (let number = 3; number <= 34; number++) await server.ask('/chat', { message: `number ${number}` })
  await using visit = await open(server, { at: 'runs' })
  const { page } = visit
  await page.getByText('number 34', { exact: true }).waitFor()
  expect(await page.locator('.runs li').count()).toBe(30)
  await page.getByRole('button', { name: 'Older runs' }).click()
  await page.getByText('number 1', { exact: true }).waitFor()
  expect(await page.locator('.runs li').count()).toBe(34)
  await server.ask('/chat', { message: 'number 35' })
  await page.getByText('number 35', { exact: true }).waitFor()
  await page.goto(`${server.url}/#/runs/${first}`)
  await page.getByText('Only those of').waitFor()
  await page.getByText('number 34', { exact: true }).waitFor({ state: 'detached' })
  await page.getByText('number 1', { exact: true }).waitFor()
  expect(await page.locator('.runs .grow').allTextContents()).toEqual(['number 2', 'number 1'])
})
