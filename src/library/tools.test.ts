import { afterAll, expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { toolKinds } from '../tools/list.ts'
import { bash, editFile, plainTools, readFile, search, writeFile } from './tools.ts'

const dir = mkdtempSync(join(tmpdir(), 'plain-tools-'))
afterAll(() => rmSync(dir, { recursive: true, force: true }))
const cwd = join(dir, 'work')
mkdirSync(join(cwd, 'src/deep'), { recursive: true })
writeFileSync(join(dir, 'secret'), 'hush')
writeFileSync(join(cwd, 'a.txt'), 'one\ntwo\nthree')
writeFileSync(join(cwd, 'src/b.ts'), 'const a = 1 // TODO\nconst b = 2')
writeFileSync(join(cwd, 'src/deep/c,d.tsx'), '// todo: $& more')
symlinkSync(join(dir, 'secret'), join(cwd, 'link'))
symlinkSync(dir, join(cwd, 'up'))
symlinkSync(join(dir, 'new'), join(cwd, 'dangling'))
symlinkSync('a.txt', join(cwd, 'inner'))

test.each(['../secret', `${dir}/secret`, 'link', 'up/secret', 'up', 'src/../../secret', 'up/work/../secret', 'dangling', 'up/sub/new'])(
  'a path that leaves the folder is refused by every tool: %s',
  async (path) => {
    const tried = [
      await readFile({ path }, { cwd }),
      await writeFile({ path, content: 'x', createDirs: true }, { cwd }),
      await editFile({ path, oldString: 'hush', newString: 'x' }, { cwd }),
      await search({ path, pattern: 'hush' }, { cwd }),
    ]
    for (const result of tried) expect(result).toEqual({ success: false, error: expect.stringMatching(/is outside of|ENOENT.*dangling/) })
    expect(readFileSync(join(dir, 'secret'), 'utf8')).toBe('hush')
    expect([existsSync(join(dir, 'new')), existsSync(join(dir, 'sub'))]).toEqual([false, false])
  },
)

test('an agent does not run them in the process of its caller: each names a tool of the agent', () => {
  for (const tool of Object.values(plainTools)) {
    expect(() => tool.execute()).toThrow('the agent has one of its own for this')
    expect(toolKinds.map(({ name }) => name)).toContain(tool.builtin)
  }
  expect(Object.keys(plainTools)).toEqual(Object.values(plainTools).map(({ name }) => name))
})

test('input that does not fit the schema, and a file that is not there, are results and no exceptions', async () => {
  const read: (input: never) => Promise<unknown> = readFile
  expect(await Reflect.apply(read, undefined, [{ path: 7 }, { cwd }])).toMatchObject({
    success: false,
    error: expect.stringContaining('expected string'),
  })
  expect(await readFile({ path: 'none' }, { cwd })).toMatchObject({ success: false, error: expect.stringContaining('ENOENT') })
  expect(await editFile({ path: 'a.txt', oldString: 'four', newString: '' }, { cwd })).toEqual({
    success: false,
    error: 'oldString is not in a.txt',
  })
  expect(await search({ pattern: '(' }, { cwd })).toMatchObject({ success: false })
})

test('a file is read whole or by lines, also through a link that stays inside', async () => {
  expect(await readFile({ path: 'inner' }, { cwd })).toEqual({ success: true, path: 'inner', content: 'one\ntwo\nthree' })
  expect(await readFile({ path: 'a.txt', startLine: 2, endLine: 9 }, { cwd })).toEqual({
    success: true,
    path: 'a.txt',
    content: 'two\nthree',
    lines: { start: 2, end: 3, total: 3 },
  })
  expect(await readFile({ path: 'a.txt', startLine: 4 }, { cwd })).toMatchObject({
    success: false,
    error: expect.stringContaining('has 3 lines'),
  })
})

test('a file is written and edited, to the letter', async () => {
  expect(await writeFile({ path: 'x/y.txt', content: 'a' }, { cwd })).toMatchObject({ success: false })
  expect(await writeFile({ path: 'x/y.txt', content: 'ä $1 ä', createDirs: true }, { cwd })).toEqual({
    success: true,
    path: 'x/y.txt',
    bytesWritten: 8,
  })
  expect(await editFile({ path: 'x/y.txt', oldString: 'ä', newString: '$&$1' }, { cwd })).toMatchObject({ replacements: 1 })
  expect(await readFile({ path: 'x/y.txt' }, { cwd })).toMatchObject({ content: '$&$1 $1 ä' })
  expect(await editFile({ path: 'x/y.txt', oldString: '$1', newString: '-', replaceAll: true }, { cwd })).toMatchObject({ replacements: 2 })
  expect(await readFile({ path: 'x/y.txt' }, { cwd })).toMatchObject({ content: '$&- - ä' })
  rmSync(join(cwd, 'x'), { recursive: true })
})

test('files are found by glob, lines by pattern, and links are not followed', async () => {
  const found = async (input: Parameters<typeof search>[0]) => {
    const result = await search(input, { cwd })
    return result.success ? [result.files, result.matches.map(({ file, line }) => `${file}:${line}`)] : result.error
  }
  expect(await found({})).toEqual([['a.txt', 'src/b.ts', 'src/deep/c,d.tsx'], []])
  expect(await found({ glob: '*.{ts,tsx}' })).toEqual([['src/b.ts', 'src/deep/c,d.tsx'], []])
  expect(await found({ glob: 'src/*.ts' })).toEqual([['src/b.ts'], []])
  expect(await found({ glob: 'src/**/c,?.tsx' })).toEqual([['src/deep/c,d.tsx'], []])
  expect(await found({ pattern: 'TODO', ignoreCase: true, path: 'src' })).toEqual([
    ['src/b.ts', 'src/deep/c,d.tsx'],
    ['src/b.ts:1', 'src/deep/c,d.tsx:1'],
  ])
  expect(await search({ pattern: 'o', maxResults: 1 }, { cwd })).toMatchObject({
    count: 5,
    matches: [{ file: 'a.txt', line: 1, content: 'one' }],
  })
})

test('a command runs in the folder, and one that fails or takes too long says so', async () => {
  expect(await bash({ command: 'pwd; echo $X >&2', env: { X: 'y' } }, { cwd })).toEqual({
    success: true,
    stdout: `${cwd}\n`,
    stderr: 'y\n',
    exitCode: 0,
    command: 'pwd; echo $X >&2',
  })
  expect(await bash({ command: 'echo out; exit 3' }, { cwd })).toEqual({
    success: false,
    error: 'the command failed: exit code 3',
    stdout: 'out\n',
    stderr: '',
    exitCode: 3,
  })
  expect(await bash({ command: 'sleep 30', timeout: 50 }, { cwd })).toMatchObject({
    success: false,
    error: 'the command failed: it took longer than 50 ms',
  })
})
