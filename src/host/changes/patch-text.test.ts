import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { changeSetOf, type Side, type Sides } from './fixture.ts'
import { patchText } from './patch-text.ts'

let base = ''
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'braidclaw-patch-'))
})
afterEach(() => rmSync(base, { recursive: true, force: true }))

/** Writes one side of all paths into a new folder. */
function laidOut(name: string, sides: Sides, at: 0 | 1): string {
  const root = join(base, name)
  mkdirSync(root)
  for (const [path, pair] of Object.entries(sides)) put(join(root, path), pair[at])
  return root
}

function put(path: string, side: Side): void {
  if (side === null) return
  mkdirSync(dirname(path), { recursive: true })
  if (typeof side === 'object' && 'link' in side) {
    symlinkSync(side.link, path)
    return
  }
  const text = typeof side === 'object' && 'mode' in side ? (side.text ?? '') : side
  writeFileSync(path, text)
  if (typeof side === 'object' && 'mode' in side) chmodSync(path, side.mode)
}

/** Everything below a folder as `path kind content`, executable bits included. */
function treeOf(root: string): readonly string[] {
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((path) => !path.startsWith('.git'))
  return files
    .flatMap((path) => {
      const stat = lstatSync(join(root, path))
      if (stat.isDirectory()) return []
      const content = stat.isSymbolicLink() ? `→ ${readlinkSync(join(root, path))}` : readFileSync(join(root, path)).toString('base64')
      return [`${path} ${stat.isSymbolicLink() ? '' : stat.mode & 0o100} ${content}`]
    })
    .sort()
}

function run(cwd: string, command: readonly string[], stdin: string) {
  const { exitCode, stdout, stderr } = Bun.spawnSync([...command], { cwd, stdin: Buffer.from(stdin), env: { ...process.env, HOME: base } })
  return { exitCode, said: `${stdout}${stderr}` }
}

const page = Array.from({ length: 30 }, (_, at) => `line ${at}\n`).join('')
const texts: Sides = {
  'a.txt': [page, page.replace('line 3\n', 'line three\nand more\n').replace('line 28\n', '')],
  'sub/new file.txt': [null, 'with a space\n'],
  'gone.txt': ['bye\n', null],
  'unended.txt': ['one\ntwo', 'one\ntwo\nthree'],
  'crlf.txt': ['a\r\nb\r\n', 'a\r\nc\r\n'],
  'ünïcode.txt': ['ä\n', 'ö\n'],
  'quo"te\\.txt': ['x\n', 'y\n'],
  'tab\there.txt': [null, 'z\n'],
  'run.sh': [
    { mode: 0o644, text: 'echo\n' },
    { mode: 0o755, text: 'echo hi\n' },
  ],
  'old/name.txt': [page, null],
  'new/name.txt': [null, `${page}more\n`],
}
const gitOnly: Sides = {
  ...texts,
  'bits.bin': [new Uint8Array([0, 1, 2, 255]), Uint8Array.from({ length: 1000 }, (_, at) => (at * 7) % 256)],
  'new.bin': [null, new Uint8Array([0, 0, 0])],
  'gone.bin': [new Uint8Array([0, 9]), null],
  'empty.txt': [null, ''],
  'now-empty.txt': ['full\n', ''],
  link: [{ link: 'a.txt' }, { link: 'crlf.txt' }],
  'new-link': [null, { link: '../elsewhere' }],
  turned: ['a file\n', { link: 'a.txt' }],
  moved: ['same\n', null],
  'moved to/here': [null, 'same\n'],
  'x.sh': [
    { mode: 0o755, text: 'same\n' },
    { mode: 0o644, text: 'same\n' },
  ],
}

describe('git', () => {
  test('applies the patch, forwards and backwards, to exactly the other side', () => {
    const before = laidOut('before', gitOnly, 0)
    const after = laidOut('after', gitOnly, 1)
    const patch = patchText(changeSetOf(gitOnly))
    run(before, ['git', 'init', '-q'], '')
    expect(run(before, ['git', 'apply', '--check', '-'], patch)).toEqual({ exitCode: 0, said: '' })
    const original = treeOf(before)
    expect(run(before, ['git', 'apply', '-'], patch).exitCode).toBe(0)
    expect(treeOf(before)).toEqual(treeOf(after))
    expect(run(before, ['git', 'apply', '-R', '-'], patch)).toEqual({ exitCode: 0, said: '' })
    expect(treeOf(before)).toEqual(original)
  })

  test('refuses it where the content is another', () => {
    const before = laidOut('before', { 'bits.bin': [new Uint8Array([0, 5]), null] }, 0)
    expect(
      run(before, ['git', 'apply', '--check', '-'], patchText(changeSetOf({ 'bits.bin': gitOnly['bits.bin'] ?? ['', ''] }))).exitCode,
    ).not.toBe(0)
  })
})

test('GNU patch applies the patch of text files', () => {
  const before = laidOut('before', texts, 0)
  const after = laidOut('after', texts, 1)
  const patch = patchText(changeSetOf(texts))
  expect(run(before, ['patch', '-p1', '--dry-run', '--binary'], patch).exitCode).toBe(0)
  expect(run(before, ['patch', '-p1', '--binary'], patch)).toMatchObject({ exitCode: 0 })
  expect(treeOf(before)).toEqual(treeOf(after))
})

test('what a patch cannot hold is said in it, and git reads the rest', () => {
  const set = changeSetOf({ dir: [null, { mode: 0o40755 }], 'a.txt': ['one\n', 'two\n'], '/srv/git/config': ['old\n', 'new\n'] })
  const [first, second, outside] = set.changes
  const folder = { path: 'dir', after: { kind: 'folder', mode: 0o755 } } as const
  const lost = { path: 'lost', before: { kind: 'file', mode: 0o644, size: 4 } } as const
  const patch = patchText({ ...set, changes: [folder, lost, ...(first && second && outside ? [second, outside] : [])] })
  expect(patch).toStartWith(
    '# new folder dir: not part of this patch\n# deleted lost: its content is not kept, so it is not part of this patch\ndiff --git',
  )
  expect(patch).toEndWith('\n# @@ -1 +1 @@\n# -old\n# +new\n')
  const before = laidOut('before', { 'a.txt': ['one\n', ''] }, 0)
  expect(run(before, ['git', 'apply', '--check', '-'], patch)).toEqual({ exitCode: 0, said: '' })
  expect(run(before, ['patch', '-p1', '--dry-run'], patch).exitCode).toBe(0)
})

test('a name that is not UTF-8 is written by its bytes', () => {
  const bytes = Buffer.from([0x66, 0xfc, 0x2e, 0x74])
  const set = changeSetOf({ 'f\ufffd.t': [null, 'x\n'] })
  const patch = patchText({ ...set, changes: set.changes.map((change) => ({ ...change, bytes: bytes.toString('base64') })) })
  expect(patch).toStartWith('diff --git "a/f\\374.t" "b/f\\374.t"\nnew file mode 100644\n--- /dev/null\n+++ "b/f\\374.t"\n')
  const before = laidOut('before', {}, 0)
  expect(run(before, ['git', 'apply', '-'], patch)).toEqual({ exitCode: 0, said: '' })
  expect(readdirSync(before, { encoding: 'buffer' }).map(String)).toEqual([bytes.toString()])
})
