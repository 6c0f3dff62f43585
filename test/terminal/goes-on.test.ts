/** A turn goes on at a terminal: the question at the start of a conversation, /continue, and what a person says about an unknown outcome. */

import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Nest } from '../support/cli.ts'
import { dieInCommand, direct, goOn, ledger } from '../support/dead-turn.ts'
import { home, scripted } from '../support/turns.ts'

describe('a command whose outcome nobody knows', () => {
  test('is never repeated where nobody can be asked: the model is told to check', async () => {
    using at = home()
    await dieInCommand(at)
    expect(await goOn(at, [{ text: 'I checked: it was sent.' }], direct)).toMatchObject({ code: 0, stdout: 'I checked: it was sent.\n' })
    expect(ledger(at)).toEqual(['sent'])
    expect((await at.run(['memory', 'show', 'last'])).stdout).toMatch(/Nobody knows whether this call was done, so check .*ledger\.txt/)
  })

  for (const [answer, count, told] of [
    ['d', 1, 'The person says that this call was done'],
    ['r', 2, ''],
    ['s', 1, 'The person does not want this call to be repeated'],
  ] as const)
    test(`is put to the person at a terminal, who answers ${answer}`, async () => {
      using at = home()
      await dieInCommand(at)
      at.file('again', '')
      const args = ['agent', '--continue-turn', ...direct]
      const { code, stdout } = await at.terminal(args, [['Was it done? [d]one / [r]un again / [s]kip', `${answer}\r`]], {
        ...scripted(at, [{ text: 'well then' }]),
        timeoutMs: 60_000,
      })
      expect([code, ledger(at).length, stdout.includes('well then')]).toEqual([0, count, true])
      expect((await at.run(['memory', 'show', 'last'])).stdout).toContain(told)
    })
})

describe('at the start of a conversation at a terminal', () => {
  const start = (at: Nest, answers: readonly (readonly [string, string])[]) =>
    at.terminal(['agent', '-c', ...direct], answers, { ...scripted(at, [{ text: 'on we went' }]), timeoutMs: 60_000 })

  test('the person is asked once, and may say yes; /continue then has nothing left', async () => {
    using at = home()
    await dieInCommand(at)
    const { code, stdout } = await start(at, [
      ['interrupted after 2 calls (its process ended). Continue it? [y/N]', 'y\r'],
      ['Was it done?', 'd\r'],
      ['on we went', ''],
      ['> ', '/continue\r'],
      ['nothing to continue', '/exit\r'],
    ])
    expect([code, ledger(at), stdout.includes('on we went')]).toEqual([0, ['sent'], true])
  })

  test('a no leaves it; /continue goes on all the same', async () => {
    using at = home()
    await dieInCommand(at)
    const { code } = await start(at, [
      ['Continue it? [y/N]', 'n\r'],
      ['> ', '/continue\r'],
      ['Was it done?', 's\r'],
      ['on we went', ''],
      ['> ', '/exit\r'],
    ])
    expect([code, ledger(at)]).toEqual([0, ['sent']])
  })

  test('continue_turns = "never" asks nothing, "auto" goes on without a question', async () => {
    for (const [setting, answers] of [
      ['never', [['> ', '/exit\r']]],
      [
        'auto',
        [
          ['Was it done?', 'd\r'],
          ['on we went', ''],
          ['> ', '/exit\r'],
        ],
      ],
    ] as const) {
      using at = home()
      const path = join(at.home, '.braidclaw/config.toml')
      at.config(`continue_turns = "${setting}"\n${readFileSync(path, 'utf8')}`)
      await dieInCommand(at)
      const { stdout } = await start(at, answers)
      expect([setting, stdout.includes('Continue it?'), stdout.includes('on we went')]).toEqual([setting, false, setting === 'auto'])
    }
  })
})
