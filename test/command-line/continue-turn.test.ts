/** `agent --continue-turn`: what goes on, what cannot, and that nothing is done twice. */

import { describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { dieInCommand, goOn, ledger } from '../support/dead-turn.ts'
import { call, home, refused, scripted, turn } from '../support/turns.ts'
import { until } from '../support/until.ts'

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
    refused(await goOn(at, [{ text: 'never' }]), 2, 'nothing to continue: no conversation exists yet')
    expect((await turn(at, [{ text: 'yes' }])).code).toBe(0)
    refused(await goOn(at, [{ text: 'never' }]), 2, 'was answered')
    refused(await at.run(['agent', '--continue-turn', '-m', 'and?']), 2, '--continue-turn continues a turn that has its message already')
    await dieInCommand(at)
    expect((await turn(at, [{ text: 'something else' }], ['-c'])).code).toBe(0)
    refused(await goOn(at, [{ text: 'never' }]), 2, 'was answered')
    expect(ledger(at)).toEqual(['sent'])
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

test('of two processes that go on at once exactly one does', async () => {
  using at = home()
  const write = call('file_write', { path: 'once.txt', content: 'x' })
  expect((await turn(at, [call('time', {}), write], ['--max-turns', '1', '--approve-all-medium'])).code).toBe(5)
  const both = await Promise.all([1, 2].map(() => goOn(at, [{ text: 'I did it', delay_ms: 300 }], ['--approve-all-medium'])))
  const codes = both.map(({ code }) => code).sort()
  expect([codes[0], [1, 2].includes(codes[1] ?? 0)]).toEqual([0, true])
  expect(both.map(({ stderr }) => stderr).join('')).toMatch(/a later turn of this conversation began|is under way|was answered/)
  expect((await at.run(['receipt', 'verify', '--deep'])).code).toBe(0)
})
