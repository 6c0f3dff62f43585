import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { closeSync, mkdirSync, openSync, readFileSync, statSync, truncateSync, utimesSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { needs } from '../../../test/support/needs.ts'
import { sha256 } from '../../kit/sha256.ts'
import type { Change } from '../../runtime/changes.ts'
import { confined, type Running } from '../fixture.ts'
import { openLibc } from '../libc.ts'
import { readChanges } from './read-changes.ts'

const works = needs('bwrap')
const real = test.if(works)
const python = test.if(needs('bwrap', 'python3'))

let box: Running & Disposable
beforeAll(async () => {
  if (works) box = await confined()
})
afterAll(() => box?.[Symbol.dispose]())

function write(path: string, text: string, mode = 0o644): void {
  const at = join(box.workspace, path)
  mkdirSync(join(at, '..'), { recursive: true })
  writeFileSync(at, text, { mode })
}

async function changes(script: string): Promise<readonly Change[]> {
  const { view, code, stderr } = await box.change(script)
  if (code !== 0) throw new Error(`${code}: ${stderr}`)
  try {
    return await view.changes()
  } finally {
    view.drop()
  }
}

const kinds = (list: readonly Change[]) => list.map(({ path, before, after }) => [path, before?.kind, after?.kind])

describe('what is a change', () => {
  real('a file with the same content and mode is none, also when its time is new or it was replaced', async () => {
    write('same', 'content')
    utimesSync(join(box.workspace, 'same'), 1_000_000, 1_000_000)
    expect(await changes('touch same')).toEqual([])
    expect(await changes('cp same other; mv other same; chmod 644 same')).toEqual([])
    expect(await changes('printf c >> same; printf content > same')).toEqual([])
  })

  real('another mode is one, of files and of folders', async () => {
    write('script', '#!/bin/sh\n')
    mkdirSync(join(box.workspace, 'shut'))
    const file = { kind: 'file' as const, size: 10, sha256: sha256('#!/bin/sh\n') }
    expect(await changes('chmod 755 script; chmod 700 shut')).toEqual([
      { path: 'script', before: { ...file, mode: 0o644 }, after: { ...file, mode: 0o755 } },
      { path: 'shut', before: { kind: 'folder', mode: 0o755 }, after: { kind: 'folder', mode: 0o700 } },
    ])
  })

  real('content of the same size and time is one', async () => {
    write('file', 'old')
    const stamp = statSync(join(box.workspace, 'file')).mtimeMs
    const [change] = await changes('touch -r file /tmp/stamp; printf new > file; touch -r /tmp/stamp file')
    expect([change?.before?.sha256, change?.after?.sha256]).toEqual([sha256('old'), sha256('new')])
    expect(statSync(join(box.workspace, 'file')).mtimeMs).toBe(stamp)
  })

  real('a file that was made and removed again is none', async () => {
    expect(await changes('echo x > passing; mkdir -p a/b; rm -r passing a')).toEqual([])
  })

  real('a link is described by its own words', async () => {
    const [change] = await changes('ln -s /etc/passwd out')
    expect(change).toEqual({ path: 'out', after: { kind: 'link', mode: 0o777, target: '/etc/passwd' } })
  })

  real('pipes and sockets are named as what they are', async () => {
    expect(kinds(await changes('mkfifo pipe'))).toEqual([['pipe', undefined, 'other']])
  })

  real('two names of one file are two files', async () => {
    const list = await changes('echo x > one; ln one two')
    expect(list.map(({ path, after }) => [path, after?.sha256])).toEqual([
      ['one', sha256('x\n')],
      ['two', sha256('x\n')],
    ])
  })
})

describe('names and permissions of any kind', () => {
  python('a name that is no UTF-8, or has a new line in it', async () => {
    const list = await changes(`python3 -c "open(b'a\\\\xff\\\\xfe','w').write('x'); open('new\\\\nline','w')"`)
    expect(list.map(({ path, bytes }) => [path, bytes])).toEqual([
      ['a\u{fffd}\u{fffd}', Buffer.from([0x61, 0xff, 0xfe]).toString('base64')],
      ['new\nline', undefined],
    ])
    expect(list[0]?.after?.sha256).toBe(sha256('x'))
  })

  real('folders and files without permissions are read, and keep their modes', async () => {
    const script = 'mkdir -p shut/in; echo x > shut/in/file; chmod 0 shut/in/file shut/in shut'
    expect((await changes(script)).map(({ path, after }) => [path, after?.mode, after?.sha256])).toEqual([
      ['shut', 0, undefined],
      ['shut/in', 0, undefined],
      ['shut/in/file', 0, sha256('x\n')],
    ])
  })

  python('attributes that would hide files from later commands are removed', async () => {
    write('folder/kept', 'kept')
    const set = `import os
os.mkdir('planted'); os.setxattr('planted', 'user.overlay.opaque', b'y'); os.setxattr('planted', 'user.mine', b'1')`
    const { view, code } = await box.change(`python3 -c "${set}"`)
    expect(code).toBe(0)
    await view.changes()
    const read = `import os; print(sorted(os.listxattr('${view.folder}/up/planted')))`
    expect(Bun.spawnSync(['python3', '-c', read]).stdout.toString()).toBe("['user.mine']\n")
    view.drop()
  })
})

function writeAt(path: string, bytes: Buffer, at: number): void {
  const file = openSync(path, 'r+')
  writeSync(file, bytes, 0, bytes.length, at)
  closeSync(file)
}

/** Returns the bytes that this process got from system calls that read. */
function bytesRead(): number {
  return Number(/^rchar: (\d+)$/m.exec(readFileSync('/proc/self/io', 'utf8'))?.[1])
}

describe('limits', () => {
  const layers = () => {
    const [up, workspace] = [join(box.root, 'up'), join(box.root, 'empty')]
    for (const folder of [up, workspace]) mkdirSync(folder, { recursive: true })
    return { up, workspace, libc: openLibc() }
  }

  real('more changes than allowed are refused, with the number', async () => {
    const { up, ...rest } = layers()
    for (let at = 0; at < 30; at++) writeFileSync(join(up, `f${at}`), '')
    const read = readChanges({ up, ...rest, limits: { changes: 20, bytes: 1_000 } })
    expect(read).rejects.toThrow('the changes of the command cannot be read: it made more than 20 changes; they were not applied')
    expect(await readChanges({ up, ...rest, limits: { changes: 30, bytes: 0 } })).toMatchObject({ changes: { length: 30 } })
  })

  real('more bytes than allowed are refused before they are read', async () => {
    const { up, ...rest } = layers()
    await Bun.$`truncate -s 1T ${join(up, 'sparse')}`
    expect(readChanges({ up, ...rest })).rejects.toThrow('its files have 1099511627776 bytes')
  })

  real('a hole is hashed as what it holds, without being read, and the event loop goes on', async () => {
    const { up, ...rest } = layers()
    await Bun.$`rm -f ${join(up, 'sparse')}`
    const file = join(up, 'holes')
    const parts: Buffer[] = []
    // Holes and data that begin and end on and beside the borders of blocks and of pieces.
    for (const size of [65_536, 200_000, 4_096, 1, 70_001, 131_072, 12_345]) parts.push(Buffer.alloc(size), Buffer.alloc(size, 7))
    for (const tail of [0, 1, 65_536, 100_001]) {
      const content = Buffer.concat([...parts, Buffer.alloc(tail)])
      writeFileSync(file, '')
      truncateSync(file, content.length)
      let at = 0
      for (const part of parts) {
        if (part[0] === 7) writeAt(file, part, at)
        at += part.length
      }
      const { changes } = await readChanges({ up, ...rest })
      expect(changes.find(({ path }) => path === 'holes')?.after?.sha256).toBe(sha256(content))
    }
    truncateSync(file, 300 * 2 ** 20)
    const [before, state] = [bytesRead(), { turns: 0 }]
    const timer = setInterval(() => state.turns++, 1)
    const { changes } = await readChanges({ up, ...rest })
    clearInterval(timer)
    expect(changes.find(({ path }) => path === 'holes')?.after?.size).toBe(300 * 2 ** 20)
    expect(bytesRead() - before).toBeLessThan(20 * 2 ** 20)
    expect(state.turns).toBeGreaterThan(5)
  })

  real('a call that is cancelled waits for no hash', async () => {
    const { up, ...rest } = layers()
    await Bun.$`truncate -s 6G ${join(up, 'holes')}`
    const cancelled = new AbortController()
    setTimeout(() => cancelled.abort(), 50)
    const began = performance.now()
    await expect(readChanges({ up, ...rest, signal: cancelled.signal })).rejects.toThrow('the call was cancelled')
    expect(performance.now() - began).toBeLessThan(1_500)
    await Bun.$`rm ${join(up, 'holes')}`
  })

  real('deletions are counted too', async () => {
    for (let at = 0; at < 40; at++) write(`many/f${at}`, '')
    const { view } = await box.change('rm -r many')
    const read = readChanges({ up: join(view.folder, 'up'), workspace: box.workspace, libc: openLibc(), limits: { changes: 20, bytes: 0 } })
    expect(read).rejects.toThrow('more than 20 changes')
    expect(await view.changes()).toHaveLength(41)
    view.drop()
  })

  real('the event loop goes on while many changes are read', async () => {
    const { view } = await box.change('mkdir many-new; cd many-new; seq 8000 | xargs touch')
    const state = { turns: 0 }
    const timer = setInterval(() => state.turns++, 1)
    expect(await view.changes()).toHaveLength(8_001)
    clearInterval(timer)
    view.drop()
    expect(state.turns).toBeGreaterThan(5)
  })
})

test.if(needs('bwrap', 'make'))('the times of what was built are kept, so that make has nothing to do', async () => {
  write('made/Makefile', 'out: in\n\tcp in out\n')
  write('made/in', 'x')
  const { view, stdout } = await box.change('cd made && make && make')
  expect(stdout).toContain("'out' is up to date")
  const [change] = await view.changes()
  expect(change?.path).toBe('made/out')
  expect(readFileSync(join(view.folder, 'up/made/out'), 'utf8')).toBe('x')
  view.drop()
})
