/** Questions at the terminal: only a clear yes, typed after the question, is one. */

import { describe, expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type Answers, ctrlD, talk } from '../support/talk.ts'
import { call, home } from '../support/turns.ts'
import { until } from '../support/until.ts'

const write = (path: string) => call('file_write', { path, content: 'written' })

describe('an approval', () => {
  const responses = [write('a.txt'), { text: 'first over' }, write('b.txt'), { text: 'second over' }]
  const asked = (answer: string): Answers => [
    ['> ', 'go\r'],
    ['[y/N/a]', answer],
    ['first over\r\n', 'go on\r'],
  ]

  test.each([
    ['an empty line', '\r'],
    ['"n"', 'n\r'],
    ['anything that is no yes', 'yess please\r'],
  ])('is refused by %s, and the conversation goes on', async (_, answer) => {
    using at = home()
    const { code, stdout } = await talk(at, responses, [...asked(answer), ['[y/N/a]', 'y\r'], ['second over\r\n', ctrlD]])
    expect([code, existsSync(join(at.workspace, 'a.txt')), existsSync(join(at.workspace, 'b.txt'))]).toEqual([0, false, true])
    for (const word of ['new a.txt (+1 −0)', '+written', '/a.txt · medium risk · writes to workspace', 'denied: '])
      expect(stdout).toContain(word)
  })

  test('"a" is remembered for this conversation, and no longer', async () => {
    using at = home()
    const first = await talk(at, responses, [...asked('a\r'), ['second over\r\n', ctrlD]])
    expect(first.stdout.split('[y/N/a]')).toHaveLength(2)
    expect(existsSync(join(at.workspace, 'b.txt'))).toBe(true)
    const second = await talk(
      at,
      [write('c.txt'), { text: 'third over' }],
      [
        ['> ', 'go\r'],
        ['[y/N/a]', '\r'],
        ['third over\r\n', ctrlD],
      ],
    )
    expect([second.code, existsSync(join(at.workspace, 'c.txt'))]).toEqual([0, false])
  })

  test('Ctrl-D at the question is a no', async () => {
    using at = home()
    await talk(at, responses, [
      ['> ', 'go\r'],
      ['[y/N/a]', ctrlD],
    ])
    expect(existsSync(join(at.workspace, 'a.txt'))).toBe(false)
  })

  test('what was typed before the question does not answer it, but is asked next', async () => {
    using at = home()
    const { stdout } = await talk(
      at,
      [{ ...write('a.txt'), delay_ms: 300 }, { text: 'first over' }, { text: 'You said {{last_user_message}}' }],
      [
        ['> ', 'go\ry\r'],
        ['[y/N/a]', 'n\r'],
        ['You said y', ctrlD],
      ],
    )
    expect(existsSync(join(at.workspace, 'a.txt'))).toBe(false)
    expect(stdout).toContain('You said y')
  })

  test('in one turn neither: what is typed early is thrown away', async () => {
    using at = home()
    const early = { tool_calls: [{ name: 'time', arguments: {} }] }
    const { code } = await at.terminal(
      ['agent', '-m', 'go'],
      [
        ['· time', 'y\ry\r'],
        ['[y/N/a]', 'n\r'],
      ],
      { env: { BRAIDCLAW_MOCK_FIXTURE: at.fixture([early, { ...write('a.txt'), delay_ms: 300 }, { text: 'over' }]) } },
    )
    expect([code, existsSync(join(at.workspace, 'a.txt'))]).toEqual([3, false])
  })

  test('is taken back by an emergency stop', async () => {
    using at = home()
    const env = { BRAIDCLAW_MOCK_FIXTURE: at.fixture(responses) }
    const seen = at.terminal(['agent', '-m', 'go'], [['[y/N/a]', '']], { env })
    await until(() => existsSync(join(at.home, '.braidclaw/tool_receipts.log')) || existsSync(join(at.home, '.braidclaw/memory.sqlite')))
    await Bun.sleep(300)
    await at.run(['estop'])
    expect((await seen).code).toBe(10)
    expect(existsSync(join(at.workspace, 'a.txt'))).toBe(false)
  })
})
