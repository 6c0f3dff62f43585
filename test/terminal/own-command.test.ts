/** `! COMMAND` in the conversation: the gate judges it as a tool call, and what it prints belongs to the conversation. */

import { describe, expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Nest } from '../support/cli.ts'
import { given, needs } from '../support/needs.ts'
import { sleeperOf, uniqueSeconds } from '../support/sleeper.ts'
import { type Answers, ctrlC, ctrlD, talk } from '../support/talk.ts'
import { asksFirst, home } from '../support/turns.ts'

const real = test.if(needs('bwrap'))
const canNest = given(needs('bwrap') && Bun.spawnSync(['unshare', '-Ur', 'true']).success, 'user namespaces in user namespaces')
const echo = [{ text: 'Last result: {{last_tool_result}}. Message: {{last_user_message}}.' }]
/** Types this, and requires that every cue came: the last answer leaves the conversation. */
async function typing(at: Nest, ...answers: Answers) {
  const ended = await talk(at, echo, answers)
  expect(ended.code).toBe(0)
  return ended
}
const made = (at: Nest) => existsSync(join(at.workspace, 'made.txt'))
const plain = (screen: string) => Bun.stripANSI(screen).replaceAll('\r', '')

describe('nothing is run or changed', () => {
  real('when the gate forbids the command', async () => {
    using at = home()
    const { stdout } = await typing(at, ['> ', '!cat ~/.ssh/id_rsa; echo x > made.txt\r'], ['✗ Denied by', ''], ['> ', ctrlD])
    expect([stdout.includes('denied: shell'), made(at)]).toEqual([true, false])
    expect((await at.run(['receipt', 'list'])).stdout).toMatch(/denied .* shell/)
  })

  real('when the person says no: before the run, or to its changes', async () => {
    using before = home('', asksFirst)
    await typing(before, ['> ', '!touch made.txt\r'], ['[y/N/a]', 'n\r'], ['✗ Denied by', ''], ['> ', ctrlD])
    using after = home()
    await typing(after, ['> ', '!touch made.txt\r'], ['Apply these changes?', 'n\r'], ['✗ ', ''], ['> ', ctrlD])
    expect([made(before), made(after)]).toEqual([false, false])
  })

  test.if(canNest)('without a sandbox that works', async () => {
    using at = home()
    const through = ['unshare', '-Ur', 'sh', '-c', 'echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"', 'sh']
    const answers: Answers = [
      ['> ', '!touch made.txt\r'],
      ['Approve?', 'y\r'],
      ['✗ ', ''],
      ['> ', ctrlD],
    ]
    const { code } = await at.terminal(['agent'], answers, { env: { BRAIDCLAW_MOCK_FIXTURE: at.fixture(echo) }, through })
    expect([code, made(at)]).toEqual([0, false])
  })

  test('by "!" alone, by "!!" and by a pasted text', async () => {
    using at = home()
    const { stdout } = await typing(
      at,
      ['> ', '!\r'],
      ['usage: ! COMMAND', ' ! \r'],
      ['usage: ! COMMAND', '!!touch made.txt\r'],
      ['usage: ! COMMAND', '\u001b[200~!touch made.txt\rsecond\u001b[201~\r'],
      ['Message: !touch made.txt', ctrlD],
    )
    expect([stdout.split('usage: ! COMMAND').length, made(at)]).toEqual([4, false])
    expect((await at.run(['receipt', 'list'])).stdout).not.toContain('shell')
  })
})

real('it prints, the next message is about it, and the record says who ran it and replays', async () => {
  using at = home()
  const { stdout } = await typing(
    at,
    ['> ', '! printf "a\\033[31mb\\n"; echo wrong >&2; exit 3\r'],
    ['✗ exit code 3', ''],
    ['> ', 'what is wrong?\r'],
    ['Message: what is wrong?.', ctrlD],
  )
  expect(plain(stdout)).toMatch(/a\\u001b\[31mb\nwrong\n✗ exit code 3\n[\s\S]*> what is wrong\?\n(?:> \n)?Last result: [^>]*exit code 3/)
  const [conversation] = JSON.parse((await at.run(['memory', 'list', '--json'])).stdout)
  expect([conversation.turns, conversation.title]).toEqual([2, expect.stringMatching(/^! printf .*The user ran this command/)])
  const runs: { runId: string }[] = JSON.parse((await at.run(['run', 'list', '--json'])).stdout)
  for (const { runId } of runs) expect((await at.run(['replay', runId])).code).toBe(0)
  expect((await at.run(['receipt', 'list'])).stdout).toMatch(/failed .* shell/)
  expect((await at.run(['receipt', 'verify', '--deep'])).code).toBe(0)
})

real('its changes are asked about, applied and undone like those of a call', async () => {
  using at = home()
  await typing(at, ['> ', '!touch made.txt\r'], ['Apply these changes?', 'y\r'], ['> ', ctrlD])
  expect(made(at)).toBe(true)
  expect((await at.run(['undo'])).code).toBe(0)
  expect(made(at)).toBe(false)
})

real('Ctrl-C ends the command, and the conversation goes on', async () => {
  using at = home()
  const seconds = uniqueSeconds()
  const { code, stdout } = await at.terminal(
    ['agent'],
    [
      ['> ', `!echo begun; sleep ${seconds}\r`],
      ['shell', ctrlC],
      ['cancelled', ''],
      ['> ', ctrlD],
    ],
    { env: { BRAIDCLAW_MOCK_FIXTURE: at.fixture(echo) } },
  )
  expect([code, stdout.includes('cancelled'), sleeperOf(seconds)]).toEqual([0, true, undefined])
})
