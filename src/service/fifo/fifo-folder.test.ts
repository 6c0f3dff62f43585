import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { chmodSync, chownSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { FIFOS } from '../../kit/wire.ts'
import { createFifos } from './fifo-folder.ts'

let home: string
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'braidclaw-fifo-'))
})
afterEach(() => rmSync(home, { recursive: true, force: true }))

const fifos = (): string => join(home, 'deep', 'fifos')
const mode = (path: string): string => (lstatSync(path).mode & 0o777).toString(8)
const refusal = async (dir: string): Promise<string> => {
  const created = await createFifos(dir)
  if (created.ok) throw new Error('nothing was refused')
  return created.message
}

describe('refused, and nothing is changed', () => {
  const made = (): string => {
    mkdirSync(fifos(), { recursive: true, mode: 0o700 })
    return fifos()
  }
  const refuses = async (what: string): Promise<void> => {
    const before = readdirSync(made())
    const message = await refusal(fifos())
    expect(message).toStartWith(what)
    expect(message).toContain('remove it')
    expect(readdirSync(fifos())).toEqual(before)
  }

  test('a folder that others can read', async () => {
    chmodSync(made(), 0o755)
    await refuses(`${fifos()} is not a private folder`)
  })

  test('a symlink to a folder', async () => {
    symlinkSync(made(), join(home, 'link'))
    expect(await refusal(join(home, 'link'))).toContain('is not a private folder')
  })

  test('a file in the place of the folder', async () => {
    writeFileSync(join(home, 'file'), '', { mode: 0o600 })
    expect(await refusal(join(home, 'file'))).toContain('is not a private folder')
  })

  test('a file in the place of a FIFO: what a shell makes that writes too early', async () => {
    writeFileSync(join(made(), 'interact_in'), '1\thello\n', { mode: 0o600 })
    await refuses(join(fifos(), 'interact_in'))
  })

  test('a symlink to a FIFO of ours', async () => {
    await createFifos(join(home, 'other'))
    symlinkSync(join(home, 'other', 'claw_in'), join(made(), 'claw_in'))
    await refuses(join(fifos(), 'claw_in'))
  })

  test('a FIFO that others can write, with what to do', async () => {
    await createFifos(made())
    chmodSync(join(fifos(), 'brain_out'), 0o622)
    await refuses(`${join(fifos(), 'brain_out')} is not a private FIFO (user ${process.getuid?.()}, mode 10622)`)
    expect(await refusal(fifos())).toEndWith('chmod go= it')
  })

  test('what belongs to another user', async () => {
    if (process.getuid?.() !== 0) {
      expect(await refusal('/proc/1')).toContain('user 0')
      return
    }
    await createFifos(made())
    chownSync(join(fifos(), 'claw_out'), 1234, 1234)
    await refuses(join(fifos(), 'claw_out'))
  })
})

describe('made', () => {
  test('are the folder and the six FIFOs, for their owner only', async () => {
    expect(await createFifos(fifos())).toEqual({ ok: true })
    expect(readdirSync(fifos()).sort()).toEqual([...FIFOS].sort())
    expect([fifos(), ...FIFOS.map((name) => join(fifos(), name))].map(mode)).toEqual(['700', ...Array(6).fill('600')])
    expect(FIFOS.every((name) => lstatSync(join(fifos(), name)).isFIFO())).toBe(true)
  })

  test('is only what is missing: a bridge that has a FIFO open keeps it', async () => {
    await createFifos(fifos())
    rmSync(join(fifos(), 'claw_in'))
    const kept = lstatSync(join(fifos(), 'brain_in')).ino
    expect(await createFifos(`${fifos()}/`)).toEqual({ ok: true })
    expect(lstatSync(join(fifos(), 'brain_in')).ino).toBe(kept)
    expect(lstatSync(join(fifos(), 'claw_in')).isFIFO()).toBe(true)
  })
})

describe('while somebody else makes them too', () => {
  /** Runs the system's command, but calls `first` right before it. */
  const after = (first: string): string => {
    const bin = join(home, 'bin')
    mkdirSync(bin)
    const real = Bun.which('mkfifo')
    writeFileSync(join(bin, 'mkfifo'), `#!/bin/sh\n${first}\nexec ${real} "$@"\n`, { mode: 0o755 })
    const script = `console.log(JSON.stringify(await (await import(${JSON.stringify(join(import.meta.dir, 'fifo-folder.ts'))})).createFifos(${JSON.stringify(fifos())})))`
    const child = Bun.spawnSync([process.execPath, '-e', script], { env: { PATH: `${bin}:${process.env.PATH}` } })
    return child.stdout.toString().trim()
  }

  test('a file by the name of one is refused, and so is a FIFO for all', () => {
    expect(after(`umask 077; echo > ${fifos()}/claw_in`)).toContain('claw_in is not a private FIFO')
    rmSync(join(home, 'bin'), { recursive: true })
    rmSync(fifos(), { recursive: true })
    expect(after(`${Bun.which('mkfifo')} -m 666 ${fifos()}/brain_in`)).toContain('brain_in is not a private FIFO')
  })

  test('what the command could not make, and nobody else did, is said in its words', () => {
    expect(after('echo no pipes today >&2; exit 1')).toBe('{"ok":false,"message":"mkfifo: no pipes today\\n"}')
  })

  test('one of ours is as good as our own', () => {
    expect(after(`${Bun.which('mkfifo')} -m 600 ${fifos()}/interact_in ${fifos()}/brain_out`)).toBe('{"ok":true}')
    expect(FIFOS.every((name) => lstatSync(join(fifos(), name)).isFIFO())).toBe(true)
  })
})

test('a folder that cannot be made is an I/O error, which names it', () => {
  expect(createFifos('/proc/braidclaw')).rejects.toThrow('/proc/braidclaw')
})
