import { describe, expect, test } from 'bun:test'
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Change } from '../../runtime/changes.ts'
import { createFixture, furnish } from './fixture.ts'
import { createLook, isAsSeen, type OpenLook } from './look.ts'

const file = { kind: 'file', mode: 0o644 } as const
const folder = { kind: 'folder', mode: 0o755 } as const

function stage() {
  const root = mkdtempSync(join(tmpdir(), 'braidclaw-look-'))
  const [workspace, upper] = [join(root, 'ws'), join(root, 'up')]
  for (const path of ['ws/kept', 'ws/gone', 'up/kept', 'up/new', 'outside']) mkdirSync(join(root, path), { recursive: true })
  for (const [path, text] of [
    ['outside/secret', 'secret'],
    ['ws/kept/old', 'old'],
    ['ws/kept/same', 'same'],
    ['ws/gone/x', 'x'],
    ['up/kept/old', 'changed'],
    ['up/kept/made', 'made'],
  ] as const)
    writeFileSync(join(root, path), text)
  symlinkSync('../outside', join(workspace, 'out'))
  symlinkSync('../../outside', join(upper, 'kept/link'))
  const changes: Change[] = [
    { path: 'gone', before: folder },
    { path: 'gone/x', before: file },
    { path: 'kept/link', after: { kind: 'link', mode: 0o777 } },
    { path: 'kept/made', after: file },
    { path: 'kept/old', before: file, after: file },
    { path: 'new', after: folder },
  ]
  const look = createLook({ workspace, upper, changes })
  const text = (path: string, side: 'before' | 'after', most = 100) => {
    const bytes = look.read(path, side, most)
    return bytes && new TextDecoder().decode(bytes)
  }
  const close = () => {
    look[Symbol.dispose]()
    rmSync(root, { recursive: true })
  }
  return { ...look, text, upper, [Symbol.dispose]: close }
}

test('what lies outside is not seen through a link, before or after', () => {
  using at = stage()
  for (const side of ['before', 'after'] as const) {
    expect([at.text('out/secret', side), at.kind('out/secret', side), at.list('out', side)]).toEqual([undefined, undefined, undefined])
    expect([at.kind('out', side), at.link('out', side)]).toEqual(['link', '../outside'])
  }
  expect([at.text('kept/link/secret', 'after'), at.link('kept/link', 'after'), at.link('kept/link', 'before')]).toEqual([
    undefined,
    '../../outside',
    undefined,
  ])
})

test('a mark names the kind of what no change names, and follows no link', () => {
  using at = stage()
  const kinds = ['kept/same', 'kept', 'out', 'nowhere', 'out/secret', 'kept/old', 'gone/x', 'new/x', '/etc'].map(
    (path) => at.mark?.(path)?.kind,
  )
  expect(kinds).toEqual(['file', 'folder', 'link', ...Array.from({ length: 6 }, () => undefined)])
  expect(['nowhere', 'out/secret', 'kept/old', 'gone/x', 'new/x', '/etc'].map((path) => at.mark?.(path)?.stamp)).toEqual([
    '-',
    ...Array.from({ length: 5 }, () => undefined),
  ])
  expect(['kept/same', 'nowhere'].map((path) => at.readSet().has(path))).toEqual([true, true])
})

test('each side has its own content, kinds and names', () => {
  using at = stage()
  const sides = ['before', 'after'] as const
  const both = <T>(of: (side: 'before' | 'after') => T) => sides.map(of)
  expect(both((side) => at.text('kept/old', side))).toEqual(['old', 'changed'])
  expect(both((side) => at.text('kept/same', side))).toEqual(['same', 'same'])
  expect(both((side) => at.text('kept/made', side))).toEqual([undefined, 'made'])
  expect(both((side) => at.text('gone/x', side))).toEqual(['x', undefined])
  expect(both((side) => at.kind('gone', side))).toEqual(['folder', undefined])
  expect(both((side) => at.kind('', side))).toEqual(['folder', 'folder'])
  expect(both((side) => at.list('kept', side)?.toSorted())).toEqual([
    ['old', 'same'],
    ['link', 'made', 'old', 'same'],
  ])
  expect(both((side) => at.list('', side)?.toSorted())).toEqual([
    ['gone', 'kept', 'out'],
    ['kept', 'new', 'out'],
  ])
  expect(both((side) => at.list('new', side))).toEqual([undefined, []])
  expect(both((side) => at.list('gone', side))).toEqual([['x'], undefined])
  expect(at.text('kept/same', 'before', 2)).toBe('sa')
})

test('of a large file no more is read than is asked for', () => {
  using at = stage()
  truncateSync(join(at.upper, 'kept/made'), 2 ** 32)
  const bytesRead = () => Number(/^rchar: (\d+)$/m.exec(readFileSync('/proc/self/io', 'utf8'))?.[1])
  const before = bytesRead()
  expect(at.text('kept/made', 'after', 10)).toBe('made\0\0\0\0\0\0')
  expect(bytesRead() - before).toBeLessThan(100_000)
  expect(at.text('kept/old', 'after', 1_000_000)).toBe('changed')
})

describe('what was looked at', () => {
  const looks: { readonly [name: string]: (look: OpenLook) => unknown } = {
    'a name that is there': ({ kind }) => kind('src/a.txt', 'before'),
    'a name that is not there': ({ kind }) => kind('src/none', 'before'),
    'a name in a folder that is not there': ({ kind }) => kind('src/none/x', 'before'),
    'a content': ({ read }) => read('src/a.txt', 'before', 10),
    'a mode': ({ mode }) => mode('src/b.sh', 'before'),
    'a list': ({ list }) => list('src', 'before'),
    'a link': ({ link }) => link('link', 'before'),
  }
  const others: { readonly [name: string]: (at: (path: string) => string) => void } = {
    'a name that is there': (at) => renameSync(at('src/a.txt'), at('elsewhere')),
    'a name that is not there': (at) => writeFileSync(at('src/none'), ''),
    'a name in a folder that is not there': (at) => mkdirSync(at('src/none')),
    'a content': (at) => writeFileSync(at('src/a.txt'), 'x'),
    'a mode': (at) => chmodSync(at('src/b.sh'), 0o600),
    'a list': (at) => writeFileSync(at('src/another'), ''),
    'a link': (at) => {
      unlinkSync(at('link'))
      symlinkSync('x', at('link'))
    },
  }
  /** Longer than a clock of a file system may stand still. */
  const tick = () => Bun.sleep(25)

  test.each(Object.keys(looks))('%s is as it was seen until somebody changes it, at once or later', async (name) => {
    await using fixture = await createFixture()
    furnish(fixture)
    await tick()
    using look = createLook({ workspace: fixture.root, upper: fixture.base, changes: [] })
    looks[name]?.(look)
    const seen = new Map(look.readSet())
    expect(seen.size).toBeGreaterThan(0)
    expect(isAsSeen(seen, fixture.root)).toBe(true)
    writeFileSync(fixture.at('old/inner/unseen'), '')
    expect(isAsSeen(seen, fixture.root)).toBe(true)
    others[name]?.(fixture.at)
    expect(isAsSeen(seen, fixture.root)).toBe(false)
    await tick()
    expect(isAsSeen(seen, fixture.root)).toBe(false)
  })

  test('what was changed right before the look is never as it was seen', async () => {
    await using fixture = await createFixture()
    furnish(fixture)
    await tick()
    writeFileSync(fixture.at('src/fresh'), '')
    using look = createLook({ workspace: fixture.root, upper: fixture.base, changes: [] })
    look.list('src', 'before')
    await tick()
    expect(isAsSeen(look.readSet(), fixture.root)).toBe(false)
  })
})
