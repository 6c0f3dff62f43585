import { expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { disk } from './disk.ts'

/** `out` is a link to /usr, `in` a link to `folder`, `lost` a link to a missing file; `a` and `b` link to each other. */
function place(): Disposable & { readonly root: string } {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'braidclaw-disk-')))
  mkdirSync(join(root, 'folder'))
  writeFileSync(join(root, 'folder/file'), 'x')
  symlinkSync('/usr', join(root, 'out'))
  symlinkSync('folder', join(root, 'in'))
  symlinkSync('folder/none/deep', join(root, 'lost'))
  symlinkSync('/etc/none', join(root, 'folder/away'))
  symlinkSync('b', join(root, 'a'))
  symlinkSync('a', join(root, 'b'))
  return { root, [Symbol.dispose]: () => rmSync(root, { recursive: true }) }
}

test('a path leads where its links lead, also when its end is missing', () => {
  using at = place()
  const real = (path: string) => disk.real(join(at.root, path)).replace(`${at.root}/`, '')
  expect(real('folder/file')).toBe('folder/file')
  expect(real('in/file')).toBe('folder/file')
  expect(real('in/new')).toBe('folder/new')
  expect(real('out/bin')).toBe('/usr/bin')
  expect(real('out/none/deeper')).toBe('/usr/none/deeper')
  expect(real('lost')).toBe('folder/none/deep')
  expect(real('folder/away')).toBe('/etc/none')
})

test('behind a link .. goes up from its end, as for the kernel', () => {
  using at = place()
  expect(disk.real(`${at.root}/out/../etc`)).toBe('/etc')
  expect(disk.real(`${at.root}/in/../in/file`)).toBe(`${at.root}/folder/file`)
  expect(disk.real(`${at.root}/none/../folder`)).toBe(`${at.root}/folder`)
})

test('links in circles lead nowhere, and nothing is thrown', () => {
  using at = place()
  expect(disk.real(join(at.root, 'a'))).toBe(join(at.root, 'a'))
  expect(disk.real(`${at.root}/${'n'.repeat(300)}`)).toBe(`${at.root}/${'n'.repeat(300)}`)
})

test('a pattern gives the links that it matches, and what lies behind them, and nothing else', () => {
  using at = place()
  const linked = (pattern: string) =>
    disk
      .linked(`${at.root}/${pattern}`)
      ?.map((path) => path.slice(at.root.length + 1))
      .toSorted()
  expect(linked('*')).toEqual(['a', 'b', 'in', 'lost', 'out'])
  expect(linked('o*')).toEqual(['out'])
  expect(linked('[a-b]')).toEqual(['a', 'b'])
  expect(linked('*/file')).toEqual(['in/file'])
  expect(linked('f*/*')).toEqual(['folder/away'])
  expect(linked('folder/f*')).toEqual([])
  expect(linked('no*')).toEqual([])
  expect(linked('folder/file')).toEqual([])
})

test('of too many names none is given', () => {
  using at = place()
  for (let number = 0; number < 150; number++) mkdirSync(join(at.root, 'folder', `n${number}`))
  for (let number = 0; number < 140; number++) symlinkSync('../..', join(at.root, 'folder/n1', `l${number}`))
  expect(disk.linked(`${at.root}/folder/n1/*/folder/*`)).toBeUndefined()
})
