/**
 * kill -9 at random instants of turns with commands: nothing of their sandboxes is alive after the next start. CRASH_LEFTOVERS=300 makes
 * it long.
 */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { hasBubblewrap } from '../../src/sandbox/fixture.ts'
import { commandOf, deadFolder, folderIn, runs, until, waitingAt } from '../../src/sandbox/leftovers.fixture.ts'
import { daemon } from '../support/daemon.ts'
import { call, home, turn } from '../support/turns.ts'
import { type Binary, compiledBinary, createHome, type Home, randomFrom } from './home.ts'

const kills = Number(process.env.CRASH_LEFTOVERS ?? 20)
const seed = Number(process.env.CRASH_SEED ?? crypto.getRandomValues(new Uint32Array(1))[0])
const real = test.if(hasBubblewrap())

const state: { binary?: Binary } = {}
beforeAll(async () => {
  state.binary = await compiledBinary()
}, 120_000)
afterAll(() => state.binary?.[Symbol.dispose]())

/** Living processes with this folder in their command line. */
function alive(folder: string): number[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return pids.map(Number).filter((pid) => names(pid, folder) && runs(pid))
}

function names(pid: number, folder: string): boolean {
  try {
    return commandOf(pid).includes(folder)
  } catch {
    return false
  }
}

/** A killed process takes a moment to die. */
async function gone(pids: readonly number[]): Promise<void> {
  await until(() => !pids.some(runs))
  expect(pids.map(runs)).toEqual(pids.map(() => false))
}

const command = (number: number) => ({ tool_calls: [{ id: `s${number}`, name: 'shell', arguments: { command: 'date > made.txt' } }] })
const replies = [command(1), command(2), command(3), { text: 'done' }]
const asked = ['agent', '-m', 'go', '--approve-all-medium']

/** @returns how long a turn takes that is left alone, in milliseconds */
async function usual(at: Home): Promise<number> {
  const begin = performance.now()
  expect(await at.run(asked, replies)).toMatchObject({ code: 0 })
  return performance.now() - begin
}

real(
  `${kills} times kill -9 in turns with commands leave nothing behind`,
  async () => {
    console.log(`CRASH_SEED=${seed}`)
    const random = randomFrom(seed)
    using at = createHome({ binary: state.binary?.path ?? '' })
    // The first turn also tries whether commands can be confined.
    await usual(at)
    const ms = await usual(at)
    const seen = { killed: 0, left: 0 }
    for (let round = 0; seen.killed < kills && round < 3 * kills; round += 1) {
      const running = at.start(asked, replies)
      await Bun.sleep(random() * ms)
      running.kill()
      if ((await running.result).code === null) seen.killed += 1
    }
    // What ends by itself has ended by then.
    await until(() => alive(at.dir).length === 0)
    seen.left = alive(at.dir).length
    await usual(at)
    await until(() => alive(at.dir).length === 0)
    console.log(`${seen.killed} killed, ${seen.left} left until the next start`)
    expect(alive(at.dir)).toEqual([])
    expect(seen.killed).toBe(kills)
  },
  kills * 2_000 + 60_000,
)

describe('what was left all the same is ended', () => {
  const stateOf = (at: ReturnType<typeof home>) => `${at.home}/.braidclaw`

  real('by doctor, which says so', async () => {
    using at = home()
    using left = await waitingAt(folderIn(stateOf(at), deadFolder()))
    const { stdout } = await at.run(['doctor'])
    expect(stdout).toContain('a killed run had left sandbox processes (2); they are ended now')
    await gone(left.pids)
    expect((await at.run(['doctor'])).stdout).not.toContain('a killed run')
  })

  real('by the daemon, when it starts', async () => {
    using at = home()
    using left = await waitingAt(folderIn(stateOf(at), deadFolder()))
    const started = await daemon(at)
    await gone(left.pids)
    expect((await started.stop()).stderr).toContain('sandbox processes of a killed run ended count=2')
  })

  real('by a turn with a command; one that only talks does not look', async () => {
    using at = home()
    using left = await waitingAt(folderIn(stateOf(at), deadFolder()))
    expect(await turn(at, [{ text: 'hello' }])).toMatchObject({ code: 0, stderr: '' })
    expect(left.pids.map(runs)).toEqual([true, true])
    const { code, stderr } = await turn(at, [call('shell', { command: 'pwd' }), { text: 'done' }], ['--approve-all-medium'])
    expect(code).toBe(0)
    expect(stderr).toContain('sandbox processes of a killed run ended')
    await gone(left.pids)
  })
})
