/** The emergency stop, and a gateway that dies and comes back, in a real browser. */

import { test as always, expect } from 'bun:test'
import { browserOfFile, hasBrowser, say } from '../support/browser.ts'
import { gateway, tokenOf } from '../support/gateway.ts'
import { isDeep } from '../support/tier.ts'
import { call, home, scripted } from '../support/turns.ts'

const test = always.if(hasBrowser)
/** The deep tier alone; the fast one drives a browser through one case of each kind. */
const deep = isDeep ? test : () => {}
const open = browserOfFile()

test('one click stops everything on every page, and lifting it needs a second word', async () => {
  using at = home()
  const { env } = scripted(at, [{ text: 'Never said.', delay_ms: 20_000 }])
  await using server = await gateway(at, [], { env })
  await using visit = await open(server, { at: 'talk' })
  const { page, complaints } = visit
  await say(page, 'work')
  await page.getByRole('button', { name: 'Cancel the turn' }).waitFor()
  const other = await page.context().newPage()
  await other.goto(`${server.url}/#/runs`)
  await other.getByRole('button', { name: 'Stop everything' }).click()
  await page.getByText('Emergency stop: no tool runs (stopped in the dashboard by test).').waitFor()
  await page.getByRole('log').getByText('The turn ended (estop)').waitFor()
  expect((await server.ask('/status')).body.estop.stopped).toBe(true)
  other.once('dialog', (dialog) => void dialog.dismiss())
  await other.getByRole('button', { name: 'Lift the stop' }).click()
  expect((await server.ask('/status')).body.estop.stopped).toBe(true)
  other.once('dialog', (dialog) => void dialog.accept())
  await other.getByRole('button', { name: 'Lift the stop' }).click()
  await page.getByText('Emergency stop').waitFor({ state: 'detached' })
  expect((await server.ask('/status')).body.estop.stopped).toBe(false)
  // Set from a terminal, it shows as well.
  await at.run(['estop', '--reason', 'fire'])
  await page.getByText('Emergency stop: no tool runs (fire).').waitFor()
  expect(complaints).toEqual([])
})

deep(
  'a gateway that is killed in the middle of a turn and started again: the page goes on without a reload and misses nothing',
  async () => {
    using at = home()
    const first = await gateway(at, [], scripted(at, [{ text: 'Before.' }, { text: 'Never said.', delay_ms: 20_000 }]))
    await using visit = await open(first, { at: 'talk' })
    const { page, complaints } = visit
    await page.evaluate('window.isTheSame = true')
    await say(page, 'one')
    await page.getByRole('log').getByText('Before.').waitFor()
    await say(page, 'two')
    await page.getByRole('button', { name: 'Cancel the turn' }).waitFor()
    process.kill(first.pid, 'SIGKILL')
    await first.result
    await page.getByText('The server does not answer. This page continues by itself when the server is back.').waitFor()
    const conversation = new URL(page.url()).hash.split('/').at(-1)
    // What happens while the page is away: the same conversation goes on, and another process asks something.
    const away = await at.run(
      ['agent', '--resume', conversation ?? '', '-m', 'meanwhile'],
      scripted(at, [{ text: 'While you were away.' }]),
    )
    expect(away.code).toBe(0)
    const answers = scripted(at, [call('file_write', { path: 'x.txt', content: 'x' }), { text: 'After.' }])
    await using second = await gateway(at, ['--port', String(first.port)], { ...answers, token: first.token })
    await page.getByRole('log').getByText('While you were away.').waitFor()
    await page.getByText('The server does not answer.').waitFor({ state: 'detached' })
    await say(page, 'three')
    await page.getByRole('button', { name: 'Allow' }).click()
    await page.getByRole('log').getByText('After.').waitFor()
    const shown = (await page.getByRole('log').locator('.said, .card').allTextContents()).map((text) =>
      text.replace(/^(The turn ended).*/, '$1'),
    )
    expect(shown).toEqual([
      'You: one',
      'Before.',
      'You: two',
      'The turn ended',
      'You: meanwhile',
      'While you were away.',
      'You: three',
      'After.',
    ])
    expect(second.port).toBe(first.port)
    expect(await page.evaluate('window.isTheSame')).toBe(true)
    await page.reload()
    await page.getByRole('log').getByText('After.').waitFor()
    const stored = (await page.getByRole('log').locator('.said, .card').allTextContents()).map((text) =>
      text.replace(/^(The turn ended).*/, '$1'),
    )
    expect(stored).toEqual(shown)
    expect(complaints).toEqual([])
  },
)

test('a token that is revoked ends the session of the page, which asks for another by itself', async () => {
  using at = home()
  await using server = await gateway(at)
  const other = await tokenOf(at, 'other')
  await using visit = await open(server)
  await using second = await open(server, { token: other })
  for (const { page } of [visit, second]) await page.getByText('Nothing waits for you.').waitFor()
  for (const name of ['test', 'other']) expect((await at.run(['token', 'revoke', name])).code).toBe(0)
  for (const { page } of [visit, second]) await page.getByLabel('Access token').waitFor()
})
