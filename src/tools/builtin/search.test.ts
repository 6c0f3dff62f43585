import { describe, expect, test } from 'bun:test'
import { truncateSync } from 'node:fs'
import type { JsonObject } from '../../kit/json.ts'
import { context, createFolder, type Folder, plainFiles } from '../fixture.ts'
import { cleanEnvironment, type Spawn, spawnPlain } from '../process.ts'
import { toolFrom } from '../tool-kind.ts'
import { search as searchKind } from './search.ts'

const env = cleanEnvironment({ home: '/' })
const rg = Bun.which('rg', { PATH: env.PATH ?? '' })

const search = (folder: Folder, input: JsonObject, ripgrep: string | null = null, spawn: Spawn = spawnPlain) =>
  toolFrom(searchKind, { files: plainFiles(folder.root), spawn, env, ripgrep }).invoke(input, context())

describe('what is refused', () => {
  test('neither pattern nor glob, a missing folder and a broken pattern are told what to do', async () => {
    using folder = createFolder()
    expect(await search(folder, {})).toMatchObject({ success: false, error: expect.stringContaining('give a pattern') })
    expect(await search(folder, { glob: '*', path: 'nope' })).toMatchObject({ success: false, error: '"nope" does not exist' })
    for (const engine of [null, rg])
      expect(await search(folder, { pattern: '(' }, engine)).toMatchObject({
        success: false,
        error: expect.stringContaining('not a regular expression'),
      })
  })

  test('a pattern that explodes ends with advice instead of hanging', async () => {
    using folder = createFolder()
    folder.put('f', `${'a'.repeat(60)}b\n`.repeat(50))
    expect(await search(folder, { pattern: '^(a+)+$' })).toMatchObject({
      success: false,
      error: expect.stringContaining('f:1; write it without nested'),
    })
  })
})

const engines = [['our own engine', null] as const, ...(rg === null ? [] : [['ripgrep', rg] as const])]
for (const [name, engine] of engines)
  describe(`with ${name}`, () => {
    test('lines are found with path and number, limited by glob and folder', async () => {
      using folder = createFolder()
      folder.put('a.ts', 'one\ntwo needle\n')
      folder.put('-e', 'needle')
      folder.put('src/ü b.ts', 'x\r\nneedle 🦋\r\n')
      folder.put('src/c.md', 'needle needle')
      const output = async (input: JsonObject) => (await search(folder, input, engine)).output.split('\n').sort()
      expect(await output({ pattern: 'needle' })).toEqual([
        '-e:1: needle',
        'a.ts:2: two needle',
        'src/c.md:1: needle needle',
        expect.stringMatching(/^src\/ü b.ts:2: needle 🦋\r?$/),
      ])
      expect(await output({ pattern: '^two', glob: '*.ts' })).toEqual(['a.ts:2: two needle'])
      expect(await output({ pattern: 'n.*e', glob: 'src/*.md' })).toEqual(['src/c.md:1: needle needle'])
      expect(await output({ pattern: '(?i)NEEDLE', path: 'src', glob: '*.md' })).toEqual(['src/c.md:1: needle needle'])
      expect(await output({ pattern: 'absent' })).toEqual(['no line matches in 4 files'])
    })

    test('too many results are cut with a word, and skipped places are named', async () => {
      using folder = createFolder()
      folder.put('many', 'x\n'.repeat(150))
      folder.put('more', 'x\n'.repeat(150))
      folder.put('forbidden/f', '')
      const { output } = await search(folder, { pattern: 'x' }, engine)
      expect(output.split('\n').filter((line) => line.endsWith(': x')).length).toBe(200)
      expect(output).toContain('[… more than 200 lines match')
      expect(output).toContain('[1 places were not searched: forbidden (forbidden_paths)]')
    })

    test('a file too large to search is named, not dropped', async () => {
      using folder = createFolder()
      folder.put('small', 'needle')
      folder.put('sparse', '')
      truncateSync(`${folder.root}/sparse`, 1024 ** 3)
      expect((await search(folder, { pattern: 'needle' }, engine)).output).toBe(
        'small:1: needle\n[1 places were not searched: sparse (larger than 64 MiB)]',
      )
    })

    test('thousands of files with long names are searched in pieces', async () => {
      using folder = createFolder()
      const long = 'n'.repeat(200)
      for (let i = 0; i < 1_500; i++) folder.put(`${long}-${i}`, i === 1_400 ? 'needle' : '')
      expect((await search(folder, { pattern: 'needle' }, engine)).output).toBe(`${long}-1400:1: needle`)
    })
  })

test('a pattern that ripgrep does not know is left to our engine', async () => {
  using folder = createFolder()
  folder.put('f', 'foo bar\nfoo baz\n')
  expect((await search(folder, { pattern: 'foo (?=baz)' }, rg)).output).toBe('f:2: foo baz')
})

test('a ripgrep that lies about a line shows what the workspace reads there, and nothing of its own', async () => {
  using folder = createFolder()
  folder.put('f', 'inside')
  const liar: Spawn = async ({ onOutput }) => {
    onOutput(new TextEncoder().encode('./f\x001:\n/etc/passwd\x001:\n./f\x009:\nOUTSIDE\n'), 'stdout')
    return { ok: true, code: 0, leftBehind: false }
  }
  expect((await search(folder, { pattern: 'x' }, '/rg', liar)).output).toBe('f:1: inside')
})

test('names are found by glob, in any folder when it has no slash', async () => {
  using folder = createFolder()
  for (const path of ['a.ts', 'src/b.ts', 'src/deep/c.ts', 'd.md', 'new\nline.ts']) folder.put(path, '')
  const names = async (glob: string) => (await search(folder, { glob })).output.split('\n').sort()
  expect(await names('*.ts')).toEqual(['"new\\nline.ts"', 'a.ts', 'src/b.ts', 'src/deep/c.ts'])
  expect(await names('src/*.ts')).toEqual(['src/b.ts'])
  expect(await names('./**/*.{md,txt}')).toEqual(['d.md'])
  expect(await names('nope')).toEqual(['no file matches'])
})
