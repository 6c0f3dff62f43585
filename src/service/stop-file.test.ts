import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { clearStop, readStop, setStop, watchStop } from './stop-file.ts'

let folder = ''
let path = ''
const heard: string[] = []
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'braidclaw-stop-'))
  path = join(folder, 'ESTOP')
  heard.length = 0
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

/** Resolves when the watch has started. */
const settled = () => Bun.sleep(160)

async function soon(done: () => boolean): Promise<void> {
  for (let looks = 0; looks < 400 && !done(); looks += 1) await Bun.sleep(5)
}

function watching(): () => void {
  return watchStop(path, (reason) => heard.push(reason))
}

test('a stop set before the watch is up is heard', async () => {
  using _ = { [Symbol.dispose]: watching() }
  setStop(path, 'at once')
  await settled()
  expect(heard).toEqual(['at once'])
})

test('each stop set while it is watched is heard, once, also after a clearing', async () => {
  using _ = { [Symbol.dispose]: watching() }
  await settled()
  setStop(path, 'later')
  await soon(() => heard.length > 0)
  setStop(path, 'again')
  await soon(() => heard.length > 1)
  clearStop(path)
  setStop(path, 'once more')
  await soon(() => heard.length > 2)
  await Bun.sleep(20)
  expect(heard).toEqual(['later', 'again', 'once more'])
})

test('a stop that was there is not heard until it is set again', async () => {
  setStop(path, 'old')
  using _ = { [Symbol.dispose]: watching() }
  await settled()
  await Bun.sleep(20)
  expect(heard).toEqual([])
  setStop(path, 'new')
  await soon(() => heard.length > 0)
  expect(heard).toEqual(['new'])
})

test('a watch that ended hears nothing, also one that had not begun', async () => {
  watching()()
  setStop(path, 'too late')
  await settled()
  expect(heard).toEqual([])
})

test('what cannot be read is a stop; what is not there is none', () => {
  expect(readStop(path)).toBeUndefined()
  mkdirSync(path)
  expect(readStop(path)).toContain('counts as stopped')
  expect(clearStop(path)).toBe(true)
  expect(readStop(path)).toBeUndefined()
})
