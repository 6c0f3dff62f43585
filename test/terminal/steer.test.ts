/** Messages that are typed while a turn runs: the model gets them at its next request, and the record says so. */

import { test as always, expect } from 'bun:test'
import { needs } from '../support/needs.ts'
import { ctrlD, talk } from '../support/talk.ts'
import { call, home } from '../support/turns.ts'

const test = always.if(needs('bwrap'))
const slowly = call('shell', { command: 'sleep 0.7' })
const heard = { text: 'You said {{last_user_message}}' }
const full = ['--autonomy', 'full']

type Shown = { readonly role: string; readonly content: string }

test('the next request has the message after the results; replay and receipts agree, and the next turn remembers it', async () => {
  using at = home()
  const { code, stdout } = await talk(
    at,
    [slowly, { ...slowly, delay_ms: 400 }, heard, heard],
    [
      ['> ', 'begin\r'],
      ['· shell', 'also look at b.txt\r'],
      ['> also look at b.txt', 'and at c.txt\r'],
      ['You said and at c.txt', 'what else?\r'],
      ['You said what else?', ctrlD],
    ],
    full,
  )
  expect(code).toBe(0)
  expect(Bun.stripANSI(stdout)).toMatch(/next step: also look at b\.txt/)
  const shown: Shown[] = JSON.parse((await at.run(['memory', 'show', 'last', '--json'])).stdout)
  expect(shown.filter(({ role }) => role === 'user').map(({ content }) => content)).toEqual([
    'begin',
    'also look at b.txt',
    'and at c.txt',
    'what else?',
  ])
  const runs: { runId: string }[] = JSON.parse((await at.run(['run', 'list', '--json'])).stdout)
  expect(runs).toHaveLength(2)
  for (const { runId } of runs) {
    const replay = await at.run(['replay', runId])
    expect([replay.code, replay.stderr]).toEqual([0, expect.stringContaining(': the same, ')])
  }
  expect((await at.run(['receipt', 'verify'])).code).toBe(0)
})

test('a message that came too late for the turn is the next one', async () => {
  using at = home()
  const { code, stdout } = await talk(
    at,
    [{ text: 'first', delay_ms: 500 }, heard],
    [
      ['> ', 'begin\r'],
      ['> begin', 'and then this\r'],
      ['You said and then this', ctrlD],
    ],
  )
  expect(code).toBe(0)
  expect(Bun.stripANSI(stdout)).toMatch(/next step: and then this[\s\S]*first[\s\S]*> and then this\s+You said and then this/)
  const runs: unknown[] = JSON.parse((await at.run(['run', 'list', '--json'])).stdout)
  expect(runs).toHaveLength(2)
})

test('Esc interrupts the turn and gives back what was queued, which Enter then sends', async () => {
  using at = home()
  const { code, stdout } = await talk(
    at,
    [{ text: 'never', delay_ms: 60_000 }, heard],
    [
      ['> ', 'begin\r'],
      ['thinking', 'think again\r'],
      ['next step: think again', '\u001b'],
      ['think again', '!\r'],
      ['cancelled', ''],
      ['You said think again!', ctrlD],
    ],
  )
  expect(code).toBe(0)
  expect(stdout).not.toContain('never')
})

test('Ctrl-G while a turn runs says that the editor waits for its end, and then opens what was typed', async () => {
  using at = home()
  const { code, stdout, raw } = await talk(
    at,
    [{ text: 'first', delay_ms: 1500 }, heard],
    [
      ['> ', 'begin\r'],
      ['thinking', 'half\u0007'],
      ['> half', ' a thought'],
      ['half a thought, edited', '\r'],
      ['You said half a thought, edited', ctrlD],
    ],
    [],
    { EDITOR: "sed -i 's/$/, edited/'" },
  )
  expect(raw).toContain('the editor opens when the turn has ended')
  expect(code).toBe(0)
  expect(Bun.stripANSI(stdout)).toMatch(/first[\s\S]*> half a thought, edited[\s\S]*You said half a thought, edited/)
})

test('a message that was sent meanwhile needs no editor', async () => {
  using at = home()
  const { code, stdout } = await talk(
    at,
    [{ text: 'first', delay_ms: 1500 }, heard],
    [
      ['> ', 'begin\r'],
      ['thinking', '\u0007and this\r'],
      ['You said and this', ctrlD],
    ],
    [],
    { EDITOR: 'echo opened' },
  )
  expect(code).toBe(0)
  expect(stdout).not.toContain('opened')
})
