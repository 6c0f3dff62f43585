import { describe, expect, test } from 'bun:test'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isDeep } from '../../../test/support/tier.ts'
import { createFixture, type Fixture } from '../../workspace/fixture.ts'
import { mentionCompleter, mentionsIn, showCalls } from './mentions.ts'

/** Returns the calls for what a message names in this workspace, where `forbidden` may not be read. */
function mentioned(at: Fixture, words: string) {
  const policy = { home: at.outside, workspace: at.root }
  const { calls, notes } = mentionsIn(words, { files: at.workspace, policy })
  return { calls: calls.map(({ name, input: { path, ...range } }) => [name, path, ...Object.values(range)].join(' ')), notes }
}

function filled(): Fixture {
  const at = createFixture()
  for (const folder of ['src', 'node_modules/@scope', 'my docs', 'forbidden']) mkdirSync(join(at.root, folder), { recursive: true })
  for (const path of ['src/a.ts', 'my docs/read me.txt', 'a:1', 'x.', 'shot.png', 'forbidden/key', 'odd\u001b[31m.txt'])
    writeFileSync(join(at.root, path), 'text\n')
  writeFileSync(join(at.outside, 'a b.png'), 'text\n')
  return at
}

describe('what names nothing stays text', () => {
  test.each([
    ['an e-mail address', 'write to me@src or a@src/a.ts'],
    ['a decorator, a scope, a handle', '@Injectable() @scope/package @babel/core @someone @'],
    ['a path that does not exist, inside and outside', '@src/b.ts @/components/Button.vue @../nothing @~/nothing'],
    ['a name with a control character or an escape', '@odd\u001b[31m.txt @"odd\u001b[31m.txt" @"src/\na.ts"'],
    ['the name of a picture that does not exist, and one within a word', '/logo.png see/shot.png'],
    ['quotes without an end', '@"src/a.ts'],
  ])('%s', (_, words) => {
    using at = filled()
    expect(mentioned(at, words)).toEqual({ calls: [], notes: [] })
  })
})

test('what exists and is forbidden becomes a call, which the gate then refuses', () => {
  using at = filled()
  symlinkSync(join(at.outside, 'secret.txt'), join(at.root, 'link'))
  expect(mentioned(at, `@forbidden/key @forbidden/other @link @${at.outside}/secret.txt @~/secret.txt`).calls).toEqual([
    'file_read forbidden/key',
    'file_read link',
    `file_read ${at.outside}/secret.txt`,
  ])
})

test('files, folders, lines and quoted names, also at the end of a sentence', () => {
  using at = filled()
  expect(
    mentioned(at, 'See @src/a.ts, (@src) and @src/a.ts:2-4. @src/a.ts:7! @"my docs/read me.txt":3-1 @"my docs" @src/a.ts').calls,
  ).toEqual([
    'file_read src/a.ts',
    'file_list src',
    'file_read src/a.ts 2 3',
    'file_read src/a.ts 7 1',
    'file_read my docs/read me.txt 3 1',
    'file_list my docs',
  ])
})

test('the literal name comes before lines and the end of a sentence', () => {
  using at = filled()
  expect(mentioned(at, '@a:1 @x. @shot.png').calls).toEqual(['file_read a:1', 'file_read x.', 'file_read shot.png'])
})

test('the pasted path of a picture counts as one with "@": bare, quoted, with backslashes; not that of another file', () => {
  using at = filled()
  const picture = join(at.outside, 'a b.png')
  const read = [`file_read ${picture}`]
  for (const words of [`'${picture}'`, `what is "${picture}"`, `${picture.replaceAll(' ', '\\ ')} says?`])
    expect([words, mentioned(at, words).calls]).toEqual([words, read])
  expect(mentioned(at, `${at.root}/src/a.ts ${at.outside}/secret.txt`).calls).toEqual([])
})

test('a message adds at most 20 files, of 200 names', () => {
  using at = filled()
  for (let n = 0; n < 30; n++) writeFileSync(join(at.root, `n${n}`), '')
  const names = Array.from({ length: 10_000 }, (_, n) => `@n${n}`).join(' ')
  const { calls, notes } = mentioned(at, names)
  expect([calls.length, notes]).toEqual([20, ['a message adds at most 20 files', 'only the first 200 names were looked at']])
})

test('a message of 1 MB takes no time to speak of', () => {
  using at = filled()
  const before = performance.now()
  for (const piece of ['@', '/', '@"', " '/a", '@a:1-', '\\']) mentioned(at, piece.repeat(1_000_000 / piece.length))
  expect(performance.now() - before).toBeLessThan(3_000)
})

describe('completion', () => {
  /** Completes this text at its end. */
  const completing = ({ workspace }: Fixture) => {
    const complete = mentionCompleter(async () => workspace)
    return async (text: string) => ((await complete(text, text.length))?.words ?? []).map((word) => word.slice(1))
  }

  test('shows no forbidden, ignored or unnameable path, and nothing outside', async () => {
    using at = filled()
    symlinkSync(at.outside, join(at.root, 'out'))
    writeFileSync(join(at.root, '.gitignore'), 'ignored*\n')
    writeFileSync(join(at.root, 'ignored.txt'), '')
    writeFileSync(join(at.root, 'a"b.txt'), '')
    mkdirSync(join(at.root, 'also'))
    writeFileSync(join(at.root, 'also/forbidden'), '')
    const all = await completing(at)('@')
    expect(all).toContain('src/a.ts')
    expect(all.filter((path) => /forbidden|ignored\.|node_modules|secret|a"|odd/.test(path))).toEqual([])
  })

  test('the best first: from the beginning, then in the name, then anywhere; either case', async () => {
    using at = createFixture()
    for (const path of ['lib/tab/x.ts', 'src/tab.ts', 'src/my-tab.ts', 'tables.md']) {
      mkdirSync(join(at.root, path, '..'), { recursive: true })
      writeFileSync(join(at.root, path), '')
    }
    const complete = completing(at)
    expect(await complete('@TAB')).toEqual(['lib/tab/', 'tables.md', 'src/tab.ts', 'src/my-tab.ts', 'lib/tab/x.ts'])
    expect(await complete('@src/t')).toEqual(['src/tab.ts'])
    expect(await complete('@nothing')).toEqual([])
  })

  test('replaces the word with "@" at the cursor, with quotes where it needs them', async () => {
    using at = filled()
    const complete = mentionCompleter(async () => at.workspace)
    expect(await complete('see @src/a and more', 10)).toEqual({ from: 4, words: ['@src/a.ts'] })
    expect(await complete('@"read m', 8)).toEqual({ from: 0, words: ['@"my docs/read me.txt"'] })
    for (const line of ['see src', 'me@src', '@src ']) expect(await complete(line, line.length)).toBeUndefined()
  })

  test('many files never hold up the keyboard, and all are found after some keys', async () => {
    using at = createFixture()
    const folders = isDeep ? 50 : 5
    const last = `f${folders - 1}/file999`
    for (let folder = 0; folder < folders; folder++) {
      mkdirSync(join(at.root, `f${folder}`))
      for (let n = 0; n < 1_000; n++) writeFileSync(join(at.root, `f${folder}/file${n}.txt`), '')
    }
    const complete = completing(at)
    const times: number[] = []
    const timed = async (text: string) => {
      const before = performance.now()
      const found = await complete(text)
      times.push(performance.now() - before)
      return found
    }
    let found: readonly string[] = []
    for (let tries = 0; tries < 200 && found.length === 0; tries++) found = await timed(`@${last}`)
    expect(found).toEqual([`${last}.txt`])
    expect(await timed('@e')).toHaveLength(50)
    // A machine that does other work may need longer; a whole walk in one step takes more than that.
    expect(times.toSorted((a, b) => a - b)[times.length >> 1]).toBeLessThan(100)
    console.log(`${times.length} completions of ${folders},000 files in ms: ${times.map(Math.round).join(' ')}`)
  })
})

test('a file that was added is one line, and of a command its output is shown; other events are shown as usual', () => {
  const printed: string[] = []
  const [out, err] = [(text: string) => void printed.push(text), (text: string) => void printed.push(`2> ${text}`)]
  const calls = [{ name: 'file_read', input: { path: 'a.ts' } }]
  const shownOf = (output: string, status: 'completed' | 'failed' = 'completed', own = calls) => {
    printed.length = 0
    const show = showCalls(own, { show: (event) => void printed.push(event.type), out, err })
    show({ type: 'tool_use', toolCallId: '1', toolName: 'x', input: {} })
    show({ type: 'tool_result', toolCallId: '1', status, output })
    show({ type: 'tool_use', toolCallId: '2', toolName: 'x', input: {} })
    show({ type: 'tool_result', toolCallId: '2', status, output })
    expect(printed.splice(-2)).toEqual(['tool_use', 'tool_result'])
    return printed.join('')
  }
  expect(shownOf('one\ntwo\n')).toBe('2> + a.ts (2 lines)\n')
  expect(shownOf('one')).toBe('2> + a.ts (1 line)\n')
  expect(shownOf('(empty file)')).toBe('2> + a.ts (empty)\n')
  expect(shownOf('two\n[lines 2–2 of 9; continue with offset 3]')).toBe('2> + a.ts (lines 2–2 of 9)\n')
  expect(shownOf('[a picture, image/png, 69 bytes]\n[more]')).toBe('2> + a.ts (a picture, image/png, 69 bytes)\n')
  expect(shownOf('Denied by x: no\nmore', 'failed')).toBe('2> ✗ a.ts: Denied by x: no\n')
  const command = [{ name: 'shell', input: { path: '', command: 'ls' } }]
  expect(shownOf('a\nb', 'completed', command)).toBe('a\nb\n')
  expect(shownOf('exit code 1\na\n', 'failed', command)).toBe('a\n2> ✗ exit code 1\n')
  expect(shownOf('exit code 1', 'failed', command)).toBe('2> ✗ exit code 1\n')
})
