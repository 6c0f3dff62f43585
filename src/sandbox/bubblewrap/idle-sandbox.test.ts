import { expect, test } from 'bun:test'
import { openLibc } from '../libc.ts'
import { isWaiting, startWaiting } from './run-confined.ts'
import { createWarmSandbox } from './warm-sandbox.ts'

const guards = { key: 'k' }

/** These tests may use any waiting program instead of a sandbox. */
function stage(idleMs: number) {
  const libc = openLibc()
  const started: ReturnType<typeof startWaiting>[] = []
  const start = () => {
    const waiting = startWaiting({ argv: ['/bin/sleep', '30'], env: {}, filter: undefined, libc })
    started.push(waiting)
    return waiting instanceof Error ? waiting : { waiting }
  }
  const alive = () => started.filter((each) => !(each instanceof Error) && isWaiting(each)).length
  return { warmSandbox: createWarmSandbox(start, idleMs), started, alive }
}

test('one that waits for a command that does not come is let go; the next command starts its own, and is not let go', async () => {
  const { warmSandbox, started, alive } = stage(100)
  warmSandbox.prepare(guards)
  expect(alive()).toBe(1)
  await Bun.sleep(300)
  expect(alive()).toBe(0)
  warmSandbox.prepare(guards)
  const taken = warmSandbox.take(guards)
  expect(started).toHaveLength(2)
  await Bun.sleep(300)
  expect(alive()).toBe(1)
  if (!(taken instanceof Error)) taken.waiting.child.kill('SIGKILL')
  await warmSandbox.close()
})

test('two different ones are kept; a third takes the place of the oldest', async () => {
  const { warmSandbox, started, alive } = stage(10_000)
  for (const key of ['one', 'two', 'two', 'three']) warmSandbox.prepare({ key })
  await Bun.sleep(100)
  expect([started.length, alive()]).toEqual([3, 2])
  for (const key of ['two', 'three']) {
    const taken = warmSandbox.take({ key })
    if (!(taken instanceof Error)) taken.waiting.child.kill('SIGKILL')
  }
  expect(started).toHaveLength(3)
  await warmSandbox.close()
})
