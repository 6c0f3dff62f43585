/** What the pages about records do in a real browser: memory, tools and rules, schedules, cost, proof. */

import { test as always, expect } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { sqlite } from '../support/alterations.ts'
import { browserOfFile, hasBrowser } from '../support/browser.ts'
import { gateway, tokenOf } from '../support/gateway.ts'
import { withSealedMemory } from '../support/record.ts'
import { isDeep } from '../support/tier.ts'
import { call, home, scripted } from '../support/turns.ts'

const test = always.if(hasBrowser)
/** The deep tier alone; the fast one drives a browser through one case of each kind. */
const deep = isDeep ? test : () => {}
const open = browserOfFile()
const hostile = '<img src=x onerror=alert(1)><script>alert(2)</script>'

deep(
  'a search marks the words and leads to the conversation; pins are added, kept in number and removed',
  async () => {
    using at = home()
    const { env } = scripted(at, [{ text: `The word is xylophone ${hostile}` }])
    await using server = await gateway(at, [], { env })
    const { body } = await server.ask('/chat', { message: 'What is the word?' })
    await using visit = await open(server, { at: 'memory' })
    const { page, complaints } = visit
    await page.getByLabel('Words to search for').fill('xylophone (c++')
    await page.getByRole('button', { name: 'Search' }).click()
    await page.locator('mark').first().waitFor()
    expect(await page.locator('mark').allTextContents()).toEqual(['xylophone'])
    expect(await page.locator('.snippet').textContent()).toContain(hostile)
    expect(await page.locator('main img, main script').count()).toBe(0)
    await page.reload()
    await page.getByRole('link', { name: 'Open the conversation' }).click()
    await page.waitForURL(`**/#/talk/${body.conversation_id}`)
    await page.goBack()
    for (const [at, fact] of ['Ann decides.', hostile].entries()) {
      await page.getByLabel('A fact to pin').fill(fact)
      await page.getByRole('button', { name: 'Pin it' }).click()
      const pin = page.getByRole('listitem').filter({ has: page.getByRole('button', { name: `Remove pin ${at + 1}` }) })
      await pin.getByText(fact).waitFor()
    }
    // Another page removes the first pin, so the number of the second one is another now.
    await server.ask('/memory/pins/1', undefined, { method: 'DELETE' })
    await page.getByRole('button', { name: 'Remove pin 2' }).click()
    await page.getByText('The pins have changed').waitFor()
    await page.getByRole('button', { name: 'Remove pin 1' }).click()
    await page.getByText('No fact is pinned.').waitFor()
    expect([(await server.ask('/memory/pins')).body.pins, complaints]).toEqual([[], []])
  },
  120_000,
)

deep(
  'the gate explains a command and a call, and a permanent approval is revoked',
  async () => {
    using at = home()
    await using server = await gateway(at)
    await server.ask('/chat', { message: 'hi' })
    const rule = { tool: 'shell', scope: JSON.stringify(['git', hostile]), by: 'me' }
    withSealedMemory(join(at.home, '.braidclaw'), ({ approvals }) => approvals.addRule(rule))
    await using visit = await open(server, { at: 'tools' })
    const { page, complaints } = visit
    await page.getByLabel('The command').fill('rm -rf /')
    await page.getByRole('button', { name: 'Explain' }).click()
    await page.getByText('It is refused.').waitFor()
    expect(await page.locator('main').textContent()).toContain('command.forbidden')
    await page.getByLabel('What', { exact: true }).selectOption('file_write')
    await page.getByLabel('Its arguments, as JSON').fill('{"path"')
    await page.getByRole('button', { name: 'Explain' }).click()
    await page.getByText('must be one JSON object').waitFor()
    await page.getByLabel('Its arguments, as JSON').fill('{"path":"a.txt","content":"x"}')
    await page.getByLabel('Its arguments, as JSON').press('Enter')
    await page.getByText('It needs your approval.').waitFor()
    await page.getByRole('button', { name: `Revoke git ${hostile}` }).click()
    await page.getByText('No call is always allowed').waitFor()
    expect([(await server.ask('/approvals/rules')).body.rules, complaints]).toEqual([[], []])
  },
  120_000,
)

deep(
  'a schedule is added, run, paused, resumed and removed; its run appears without a reload',
  async () => {
    using at = home()
    const { env } = scripted(at, [{ text: 'Done.' }])
    await using server = await gateway(at, [], { env })
    await using visit = await open(server, { at: 'schedules' })
    const { page, complaints } = visit
    page.on('dialog', (dialog) => void dialog.accept())
    await page.getByLabel('What the agent should do').fill(`Sort it ${hostile}`)
    await page.getByLabel('Name').fill('tidy')
    expect(await page.getByLabel('How often').locator('option').first().textContent()).toBe('Every day at')
    await page.getByLabel('How often').selectOption('Advanced: cron')
    await page.getByLabel('When', { exact: true }).fill('every now and then')
    await page.getByRole('button', { name: 'Add', exact: true }).click()
    await page.getByRole('alert').first().waitFor()
    await page.getByLabel('How often').selectOption('Monday to Friday at')
    await page.getByLabel('When', { exact: true }).fill('09:05')
    await page.getByRole('button', { name: 'Add', exact: true }).click()
    const card = page.getByRole('article', { name: 'Schedule tidy' })
    await card.getByText('none yet').waitFor()
    await card.getByText('cron 5 9 * * mon-fri').waitFor()
    await card.getByRole('button', { name: 'Run now' }).click()
    await card.getByText('good', { exact: true }).first().waitFor()
    await card.getByText('History').click()
    await card.getByText('Started by hand').waitFor()
    await card.getByRole('button', { name: 'Pause' }).click()
    await card.getByText('paused', { exact: true }).waitFor()
    await card.getByRole('button', { name: 'Resume' }).click()
    await card.getByText('active', { exact: true }).waitFor()
    await card.getByRole('button', { name: 'Remove' }).click()
    await page.getByText('Nothing is scheduled.').waitFor()
    expect([(await server.ask('/schedules')).body.schedules, complaints]).toEqual([[], []])
  },
  120_000,
)

deep(
  'cost says what has no price, shows the days as a table too, and what is left of a limit',
  async () => {
    using at = home('\n[limits]\ndaily_tokens = 100000\n')
    const { env } = scripted(at, [{ text: 'Hello.', usage: { input_tokens: 300, output_tokens: 100 } }])
    await using server = await gateway(at, [], { env })
    await server.ask('/chat', { message: 'hi' })
    sqlite(
      at,
      `INSERT INTO spend(kind, run_id, conversation_id, day, channel, token, agent, provider, model, calls, input, output, cached, micros, unpriced, estimated, lost, unsettled)
       VALUES ('summary','','',date('now'),'cli','','default','near','${hostile}',1,50,5,0,0,1,0,0,0)`,
    )
    await using visit = await open(server, { at: 'cost' })
    const { page, complaints } = visit
    await page.getByText('is not known').waitFor()
    await page.getByRole('img', { name: 'the table below' }).locator('canvas').waitFor()
    await page.getByText('The days as a table').click()
    const today = new Date().toISOString().slice(0, 10)
    await page.getByRole('rowheader', { name: today }).waitFor()
    const row = page.getByRole('row', { name: 'near/' })
    expect(await row.textContent()).toBe(`near/${hostile}unknown551`)
    expect(await page.getByRole('progressbar').first().getAttribute('max')).toBe('100000')
    expect(await page.locator('.limit').first().textContent()).toContain('99,600 tokens left of 100,000 tokens')
    expect(complaints).toEqual([])
  },
  120_000,
)

test('the record is verified in words, also against a kept line, and what was altered is named', async () => {
  using at = home()
  at.file('a.txt', 'hello')
  const { env } = scripted(at, [
    call('file_read', { path: 'a.txt' }),
    { text: 'one' },
    call('file_read', { path: 'a.txt' }),
    { text: 'two' },
  ])
  await using server = await gateway(at, [], { env })
  await server.ask('/chat', { message: 'one' })
  await server.ask('/chat', { message: 'two' })
  await using visit = await open(server, { at: 'proof' })
  const { page, complaints } = visit
  await page.getByRole('button', { name: 'Show the line' }).click()
  const line = (await page.getByLabel('The anchor line').textContent()) ?? ''
  expect(line).toBe((await at.run(['receipt', 'anchor'])).stdout.trim())
  await page.getByLabel('A line that you kept elsewhere').fill(line)
  await page.getByRole('button', { name: 'Verify now' }).click()
  await page.getByText('The record is intact.').waitFor()
  await page.locator('.receipts > li').nth(1).waitFor()
  expect(await page.locator('.receipts > li').count()).toBe(2)
  const log = join(at.home, '.braidclaw', 'tool_receipts.log')
  writeFileSync(
    log,
    readFileSync(log, 'utf8')
      .replace(/"previous_hash":"(?!0{64})\w/, '"previous_hash":"x')
      .replace('"file_read"', '"file_list"'),
  )
  await page.getByRole('button', { name: 'Verify now' }).click()
  await page.getByText('The record was altered or is damaged.').waitFor()
  expect(await page.locator('.card.bad').first().textContent()).toContain('invalid chain at receipt 1')
  expect(complaints).toEqual([])
}, 120_000)

test('a token that may only read sees all of it and can change nothing', async () => {
  using at = home('[channels.http]\nprofile = "operator"\n')
  await using server = await gateway(at)
  await server.ask('/memory/pins', { text: 'Ann decides.' })
  await server.ask('/schedules', { name: 'tidy', message: 'Tidy up.', every: '6h' })
  const reader = await tokenOf(at, 'reader', '--scope', 'read')
  await using visit = await open(server, { token: reader, at: 'memory' })
  const { page } = visit
  await page.getByText('Ann decides.').waitFor()
  expect(await page.getByRole('button', { name: /Remove|Pin it/ }).count()).toBe(0)
  await page.getByRole('link', { name: 'Schedules' }).click()
  await page.getByRole('article', { name: 'Schedule tidy' }).waitFor()
  expect(await page.getByRole('button', { name: /Run now|Pause|Remove|Add/ }).count()).toBe(0)
}, 120_000)
