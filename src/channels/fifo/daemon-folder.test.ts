import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { closeSync, constants, existsSync, mkdirSync, mkdtempSync, openSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ownerOf } from '../../memory/journal/process-owner.ts'
import { claim, createFifos } from '../../service/fifo/fifo-folder.ts'
import { lockFolder, removeFifos } from './daemon-folder.ts'

async function folder() {
  const dir = mkdtempSync(join(tmpdir(), 'braidclaw-hold-'))
  await createFifos(dir)
  return {
    dir,
    note: (text: string) => writeFileSync(join(dir, '.daemon.pid'), text),
    [Symbol.dispose]: () => rmSync(dir, { recursive: true, force: true }),
  }
}

const made = { made: true }

/** @throws when the lock is refused */
function held(dir: string, by = made) {
  const taken = lockFolder(dir, by)
  if (!taken.ok) throw new Error(taken.message)
  return taken
}

function sleeper() {
  const child = Bun.spawn(['sleep', '600'], { detached: true })
  return { child, [Symbol.dispose]: () => child.kill('SIGKILL') }
}

test('a second holder is refused with the number of the first, and another folder is free', async () => {
  using one = await folder()
  using two = await folder()
  const first = held(one.dir)
  expect(lockFolder(one.dir, made)).toEqual({ ok: false, message: expect.stringContaining(`"${one.dir}" (pid ${process.pid})`) })
  held(two.dir).release()
  first.release()
  expect(existsSync(one.dir)).toBe(false)
})

test('a folder that an agent of another kind serves is refused, and left as it is; a lock that a dead one left is not in the way', async () => {
  using at = await folder()
  const script = `import { claim } from ${JSON.stringify(join(import.meta.dir, '../../service/fifo/fifo-folder.ts'))}
    claim(${JSON.stringify(at.dir)}); console.log('claimed'); setInterval(() => {}, 1000)`
  const other = Bun.spawn([process.execPath, '-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
  for await (const _ of other.stdout) break
  expect(lockFolder(at.dir, made)).toEqual({ ok: false, message: expect.stringContaining(`another agent serves "${at.dir}"; stop it`) })
  expect(existsSync(join(at.dir, 'brain_in'))).toBe(true)
  other.kill('SIGKILL')
  await other.exited
  const taken = held(at.dir)
  expect(claim(at.dir)).toBeUndefined()
  taken.release()
  expect(existsSync(at.dir)).toBe(false)
})

test('who left took the folder along; it is made again and held again', async () => {
  using at = await folder()
  held(at.dir).release()
  await createFifos(at.dir)
  held(at.dir).release()
})

test('FIFOs that somebody else made, or listens to, stay when we leave', async () => {
  using at = await folder()
  held(at.dir, { made: false }).release()
  expect(existsSync(join(at.dir, 'brain_in'))).toBe(true)
  const { O_RDONLY, O_NONBLOCK } = constants
  const reader = openSync(join(at.dir, 'interact_out'), O_RDONLY | O_NONBLOCK)
  held(at.dir).release()
  expect(['interact_out', 'interact_in'].every((name) => existsSync(join(at.dir, name)))).toBe(true)
  expect(existsSync(join(at.dir, '.daemon.lock'))).toBe(false)
  closeSync(reader)
  held(at.dir).release()
  expect(existsSync(at.dir)).toBe(false)
})

test('bridges of a predecessor that was killed are ended, told by their start time; nobody else is', async () => {
  using at = await folder()
  using orphan = sleeper()
  using stranger = sleeper()
  const [, start = ''] = ownerOf(orphan.child.pid).split('@')
  const bridges = {
    brain: ownerOf(orphan.child.pid),
    claw: `${stranger.child.pid}@1-${start}`,
    interact: `${stranger.child.pid}@0`,
    worse: '1@0',
    odd: 7,
  }
  at.note(JSON.stringify({ pid: 1, made: true, bridges }))
  const taken = held(at.dir, { made: false })
  expect(taken.orphans).toBe(1)
  expect(await orphan.child.exited).toBe(137)
  expect(stranger.child.exitCode).toBeNull()
  taken.release()
  expect(existsSync(at.dir)).toBe(false)
})

test('a note that is none, and one that is a folder, says nothing', async () => {
  using at = await folder()
  for (const text of ['', 'no json', '[]', '{"bridges":7,"pid":"x"}']) {
    at.note(text)
    const taken = held(at.dir, { made: false })
    expect(taken.orphans).toBe(0)
    taken.release()
  }
  mkdirSync(join(at.dir, '.daemon.pid'))
  expect(() => lockFolder(at.dir, made)).toThrow()
})

describe('removed', () => {
  let home: string
  beforeEach(() => {
    home = mkdtempSync(join(tmpdir(), 'braidclaw-fifo-'))
  })
  afterEach(() => rmSync(home, { recursive: true, force: true }))

  const fifos = (): string => join(home, 'deep', 'fifos')

  test('are the FIFOs and the folder they leave empty', async () => {
    await createFifos(fifos())
    removeFifos(fifos())
    expect(readdirSync(join(home, 'deep'))).toEqual([])
    removeFifos(fifos())
  })

  test('is nothing else: neither a file of the same name nor the folder it is in', async () => {
    await createFifos(fifos())
    rmSync(join(fifos(), 'claw_in'))
    writeFileSync(join(fifos(), 'claw_in'), 'notes')
    removeFifos(fifos())
    expect(readdirSync(fifos())).toEqual(['claw_in'])
  })
})
