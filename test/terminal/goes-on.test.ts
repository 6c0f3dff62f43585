/** A turn goes on: `--continue-turn`, `/continue`, the question at the start of a conversation, and what cannot go on. */

import { describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Nest } from '../support/cli.ts'
import { alone, call, home, refused, scripted, turn } from '../support/turns.ts'
import { until } from '../support/until.ts'

const direct = ['--autonomy', 'full', '--sandbox', 'none'] as const
const ledger = (at: Nest) => join(at.workspace, 'ledger.txt')
const lines = (at: Nest) => (existsSync(ledger(at)) ? readFileSync(ledger(at), 'utf8').split('\n').filter(Boolean) : [])

/** Dies by kill -9 while a command runs that has appended a line to the ledger. */
async function dieInCommand(at: Nest): Promise<void> {
  const reply = {
    tool_calls: [call('time', {}), call('shell', { command: 'echo sent >> ledger.txt; test -e again || exec sleep 20' })].flatMap(
      (each) => each.tool_calls,
    ),
  }
  const running = at.start(['agent', '-m', 'send it', ...direct], scripted(at, [reply]))
  await until(() => lines(at).length === 1)
  process.kill(running.pid, 'SIGKILL')
  await running.result
}

const goOn = (at: Nest, responses: readonly object[], args: readonly string[] = []) =>
  at.run(['agent', '--continue-turn', ...args], { ...scripted(at, responses), through: alone })

describe('a command whose outcome nobody knows', () => {
  test('is never repeated where nobody can be asked: the model is told to check', async () => {
    using at = home()
    await dieInCommand(at)
    expect(await goOn(at, [{ text: 'I checked: it was sent.' }], direct)).toMatchObject({ code: 0, stdout: 'I checked: it was sent.\n' })
    expect(lines(at)).toEqual(['sent'])
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
      expect([code, lines(at).length, stdout.includes('well then')]).toEqual([0, count, true])
      expect((await at.run(['memory', 'show', 'last'])).stdout).toContain(told)
    })
})

describe('a turn that ran out', () => {
  test('of rounds makes the refused call, and then goes on with new rounds', async () => {
    using at = home()
    const step = (content: string) => call('file_write', { path: `${content}.txt`, content })
    expect((await turn(at, [step('one'), step('two')], ['--max-turns', '1', '--approve-all-medium'])).code).toBe(5)
    expect(existsSync(join(at.workspace, 'two.txt'))).toBe(false)
    expect(await goOn(at, [{ text: 'both' }], ['--approve-all-medium'])).toMatchObject({ code: 0, stdout: 'both\n' })
    expect(readFileSync(join(at.workspace, 'two.txt'), 'utf8')).toBe('two')
    expect((await at.run(['receipt', 'verify', '--deep'])).code).toBe(0)
  })

  test('is judged anew: what a stricter policy or the emergency stop forbids is refused with its reason', async () => {
    using at = home()
    const write = call('file_write', { path: 'x.txt', content: 'x' })
    expect((await turn(at, [call('time', {}), write], ['--max-turns', '1', '--approve-all-medium'])).code).toBe(5)
    await at.run(['estop', '--reason', 'not now'])
    const { code, stderr, stdout } = await goOn(at, [{ text: 'I could not' }], ['--approve-all-medium'])
    expect([code === 0, existsSync(join(at.workspace, 'x.txt')), `${stderr}${stdout}`.includes('not now')]).toEqual([false, false, true])
  })
})

test('the files of an agent have the question once, and the answer of the run that went on', async () => {
  using at = home()
  const soul = join(at.home, '.braidclaw/agents/coder/soul.md')
  mkdirSync(join(soul, '..'), { recursive: true })
  writeFileSync(soul, 'You write.')
  const write = call('file_write', { path: 'x.txt', content: 'x' })
  const options = ['--agent', 'coder', '--approve-all-medium']
  expect((await turn(at, [call('time', {}), write], [...options, '--max-turns', '1'])).code).toBe(5)
  expect((await goOn(at, [{ text: 'it is written' }], options)).code).toBe(0)
  const said = (await at.run(['session', 'load', '--agent', 'coder', '--json'])).stdout.trim().split('\n')
  expect(said.map((line) => JSON.parse(line)).map(({ role, content }) => [role, content])).toEqual([
    ['user', 'go'],
    ['assistant', 'it is written'],
  ])
  expect((await at.run(['rebuild', '--check'])).code).toBe(0)
})

describe('nothing goes on', () => {
  test('in a home without a conversation, after an answer, with a message, and after a later turn', async () => {
    using at = home()
    refused(await goOn(at, [{ text: 'never' }]), 2, 'nothing to go on with: there is no conversation yet')
    expect((await turn(at, [{ text: 'yes' }])).code).toBe(0)
    refused(await goOn(at, [{ text: 'never' }]), 2, 'was answered')
    refused(await at.run(['agent', '--continue-turn', '-m', 'and?']), 2, '--continue-turn goes on with a turn that was asked already')
    await dieInCommand(at)
    expect((await turn(at, [{ text: 'something else' }], ['-c'])).code).toBe(0)
    refused(await goOn(at, [{ text: 'never' }]), 2, 'was answered')
    expect(lines(at)).toEqual(['sent'])
  })

  test('in another folder than its own, so that its calls never act on other files', async () => {
    using at = home()
    await dieInCommand(at)
    const id = /conversation_\w+/.exec((await at.run(['run', 'list'])).stdout)?.[0] ?? ''
    const other = join(at.home, 'other')
    mkdirSync(other)
    refused(await goOn(at, [{ text: 'never' }], ['--resume', id, '--workspace', other]), 2, `it belongs to the folder ${at.workspace}`)
    expect(existsSync(join(other, 'ledger.txt'))).toBe(false)
  })

  test('after the person cancelled it', async () => {
    using at = home()
    const running = at.start(['agent', '-m', 'wait'], scripted(at, [{ text: 'slow', delay_ms: 20_000 }]))
    await until(async () => (await at.run(['run', 'list'])).stdout.includes('run_'))
    process.kill(running.pid, 'SIGINT')
    expect((await running.result).code).toBe(130)
    refused(await goOn(at, [{ text: 'never' }]), 2, 'cancelled by Ctrl-C')
  })
})

describe('at the start of a conversation at a terminal', () => {
  const start = (at: Nest, answers: readonly (readonly [string, string])[]) =>
    at.terminal(['agent', '-c', ...direct], answers, { ...scripted(at, [{ text: 'on we went' }]), timeoutMs: 60_000 })

  test('the person is asked once, and may say yes; /continue then has nothing left', async () => {
    using at = home()
    await dieInCommand(at)
    const { code, stdout } = await start(at, [
      ['interrupted after 2 calls (its process ended). Go on with it? [y/N]', 'y\r'],
      ['Was it done?', 'd\r'],
      ['on we went', ''],
      ['> ', '/continue\r'],
      ['nothing to go on with', '/exit\r'],
    ])
    expect([code, lines(at), stdout.includes('on we went')]).toEqual([0, ['sent'], true])
  })

  test('a no leaves it; /continue goes on all the same', async () => {
    using at = home()
    await dieInCommand(at)
    const { code } = await start(at, [
      ['Go on with it? [y/N]', 'n\r'],
      ['> ', '/continue\r'],
      ['Was it done?', 's\r'],
      ['on we went', ''],
      ['> ', '/exit\r'],
    ])
    expect([code, lines(at)]).toEqual([0, ['sent']])
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
      expect([setting, stdout.includes('Go on with it?'), stdout.includes('on we went')]).toEqual([setting, false, setting === 'auto'])
    }
  })
})

test('of two processes that go on at once exactly one does', async () => {
  using at = home()
  const write = call('file_write', { path: 'once.txt', content: 'x' })
  expect((await turn(at, [call('time', {}), write], ['--max-turns', '1', '--approve-all-medium'])).code).toBe(5)
  const both = await Promise.all([1, 2].map(() => goOn(at, [{ text: 'I did it', delay_ms: 300 }], ['--approve-all-medium'])))
  const codes = both.map(({ code }) => code).sort()
  expect([codes[0], [1, 2].includes(codes[1] ?? 0)]).toEqual([0, true])
  expect(both.map(({ stderr }) => stderr).join('')).toMatch(/a later turn of this conversation began|is under way/)
  expect((await at.run(['receipt', 'verify', '--deep'])).code).toBe(0)
})
