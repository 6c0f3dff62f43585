/** docs/extending.md, done as it stands there: one file, one line, and the program has it. */

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Nest, nest } from './support/cli.ts'

const root = join(import.meta.dir, '..')
const page = readFileSync(join(root, 'docs/extending.md'), 'utf8')
/** `path` and the code below it. */
const blocks = [...page.matchAll(/`(src\/[\w/.-]+\.ts)`[^`]*\n\n?```ts\n(.*?)```/gs)].map(([, path = '', code = '']) => ({ path, code }))

let at: Nest
let copy: string
beforeAll(() => {
  at = nest()
  copy = mkdtempSync(join(tmpdir(), 'braidclaw-extended-'))
  for (const name of ['src', 'bin', 'package.json', 'tsconfig.json']) cpSync(join(root, name), join(copy, name), { recursive: true })
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'))
  for (const { path, code } of blocks) extend(join(copy, path), code)
})
afterAll(() => {
  at[Symbol.dispose]()
  rmSync(copy, { recursive: true, force: true })
})

/** A file that is there gets the line at the end of its list. */
function extend(path: string, code: string): void {
  const text = existsSync(path) ? readFileSync(path, 'utf8').replace(/^\]$/m, `${code}]`) : code
  writeFileSync(path, text)
}

function run(...words: string[]) {
  const { exitCode, stdout, stderr } = Bun.spawnSync([join(copy, 'bin/braidclaw'), ...words], {
    cwd: at.workspace,
    env: at.env,
    timeout: 20_000,
  })
  return { code: exitCode, stdout: stdout.toString(), stderr: stderr.toString() }
}

test('a command is one file and one line', () => {
  expect(blocks.map(({ path, code }) => [path, existsSync(join(root, path)) ? code.trim().split('\n').length : 'new'])).toEqual([
    ['src/cli/commands/talk/greet.ts', 'new'],
    ['src/cli/commands/list.ts', 1],
  ])
})

test('it runs, its faults are told, and help and completion know it', () => {
  expect(run('greet', 'Ada', '--times', '2')).toEqual({ code: 0, stdout: 'hello, Ada\nhello, Ada\n', stderr: '' })
  expect(run('greet', '--times', '0', '--tmes')).toEqual({
    code: 2,
    stdout: '',
    stderr:
      'error: no flag "--tmes"; did you mean "--times"?\nerror: --times: 0 is out of range; must be from 1 to 9\nerror: <name> is missing\nSee: braidclaw greet --help\n',
  })
  expect(run('gret').stderr).toContain('did you mean "greet"?')
  expect(run('greet', '--help').stdout).toContain('Who is greeted')
  expect(run('--help').stdout).toContain('\n  greet       Say hello\n')
  expect(run('__complete', 'bash', 'gree').stdout).toBe('greet\n')
})

test('its types hold: nothing has to be cast', () => {
  writeFileSync(join(copy, 'types.json'), JSON.stringify({ extends: './tsconfig.json', include: ['src/main.ts'] }))
  const tsc = [join(root, 'node_modules/.bin/tsc'), '--noEmit', '-p', join(copy, 'types.json')]
  const { exitCode, stdout } = Bun.spawnSync(tsc, { timeout: 60_000 })
  expect([exitCode, stdout.toString()]).toEqual([0, ''])
}, 60_000)
