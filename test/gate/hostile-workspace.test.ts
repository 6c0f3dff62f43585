/** A workspace full of files that a runtime might obey: none of them may run or leak, from sources or from the executable. */

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { chmodSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { compile } from '../../scripts/compile.ts'
import { isDeep } from '../support/tier.ts'

const root = join(import.meta.dir, '../..')
const bun = process.execPath
const scratch = mkdtempSync(join(tmpdir(), 'braidclaw-hostile-'))
const workspace = join(scratch, 'work space')
const clone = join(scratch, 'clone')

/** Reports what reached it; imports a package and a file that the workspace shadows. */
const STUB = `
const { z } = await import('zod')
const { word } = await import('./word.tsx')
const leaked = Object.keys(process.env).filter((name) => name.startsWith('LEAK'))
console.log(JSON.stringify({ args: process.argv.slice(2), leaked, zod: typeof z.string, word: word() }))
`

const CANARY = `require('node:fs').writeFileSync(${JSON.stringify(join(workspace, 'PWNED-'))} + Math.random(), 'x')\nexport const z = {}\n`
const ENV_FILES = ['.env', '.env.local', '.env.production', '.env.development', '.env.test']

const hostile: { readonly [path: string]: string } = {
  ...Object.fromEntries(ENV_FILES.map((name) => [name, `LEAK${name.replaceAll('.', '_')}=1\nBRAIDCLAW_HOME=/nowhere\n`])),
  'evil.ts': CANARY,
  'evil/word.tsx': CANARY,
  'evil/jsx-runtime.ts': CANARY,
  'node_modules/zod/index.js': CANARY,
  'node_modules/zod/package.json': '{"name":"zod","main":"index.js"}',
  'node_modules/braidclaw/package.json': '{"name":"braidclaw","main":"../../evil.ts","bin":"../../evil.ts"}',
  'bunfig.toml': 'preload = ["./evil.ts"]\n[run]\npreload = ["./evil.ts"]\n[test]\npreload = ["./evil.ts"]\n[install]\nauto = "force"\n',
  'tsconfig.json': JSON.stringify({
    compilerOptions: {
      // The second matches whatever is asked for, the program's own entry included.
      paths: { zod: ['./evil.ts'], '*': ['./evil/*', './evil.ts'] },
      jsx: 'react-jsx',
      jsxImportSource: './evil',
      plugins: [{ name: './evil.ts' }],
    },
  }),
  'package.json': JSON.stringify({
    name: 'braidclaw',
    type: 'commonjs',
    main: './evil.ts',
    exports: './evil.ts',
    imports: { zod: './evil.ts', '#zod': './evil.ts' },
    browser: { zod: './evil.ts' },
    scripts: { preinstall: 'touch PWNED-install', braidclaw: 'touch PWNED-script' },
    bun: { preload: ['./evil.ts'] },
    workspaces: ['evil'],
  }),
  '.npmrc': 'registry=http://127.0.0.1:9/\nnode-options=--require ./evil.ts\nscript-shell=./evil.ts\n',
  '.node-version': '0.0.0\n',
}

beforeAll(async () => {
  for (const [path, text] of Object.entries(hostile)) write(join(workspace, path), text)
  write(join(clone, 'src', 'main.ts'), STUB)
  write(join(clone, 'src', 'word.tsx'), `export const word = () => 'ours'\n`)
  mkdirSync(join(clone, 'bin'))
  copyFileSync(join(root, 'bin', 'braidclaw'), join(clone, 'bin', 'braidclaw'))
  copyFileSync(join(root, 'tsconfig.json'), join(clone, 'tsconfig.json'))
  symlinkSync(join(root, 'node_modules'), join(clone, 'node_modules'))
  symlinkSync('clone/bin/braidclaw', join(scratch, 'link'))
  symlinkSync('clone', join(scratch, 'elsewhere'))
  expect(await compile({ entry: join(clone, 'src', 'main.ts'), outfile: join(scratch, 'braidclaw') })).toMatchObject({ ok: true })
})

afterAll(() => rmSync(scratch, { recursive: true, force: true }))

function write(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}

async function run(command: readonly string[], options: { readonly env?: Record<string, string>; readonly cwd?: string } = {}) {
  const env = { PATH: '/usr/bin:/bin', HOME: scratch, ...options.env }
  const child = Bun.spawn([...command], { cwd: options.cwd ?? workspace, env, stdio: ['ignore', 'pipe', 'pipe'] })
  const [stdout, stderr, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  return { stdout, stderr, code }
}

function canaries(): string[] {
  return readdirSync(workspace).filter((name) => name.startsWith('PWNED'))
}

const untouched = { leaked: [], zod: 'function', word: 'ours' }

afterEach(() => {
  for (const name of canaries()) rmSync(join(workspace, name))
})

test('the trap is real: a plain bun in this workspace runs its code and loads its variables', async () => {
  await run([bun, join(clone, 'src', 'main.ts')])
  expect(canaries()).not.toEqual([])
  await run([bun, '--config=/dev/null', '--no-env-file', join(clone, 'src', 'main.ts')])
  expect(canaries()).toHaveLength(2)
  const { stdout } = await run([bun, '--config=/dev/null', '--tsconfig-override=/dev/null', join(clone, 'src', 'main.ts')])
  expect(JSON.parse(stdout).leaked).toHaveLength(ENV_FILES.length - 2)
})

describe.each([
  ['the launcher', 'clone/bin/braidclaw'],
  ['the launcher through a symlink', 'link'],
  ['the launcher in a symlinked folder', 'elsewhere/bin/braidclaw'],
  ['the executable', 'braidclaw'],
])('%s', (_, path) => {
  test('obeys nothing in the workspace and passes its arguments on unchanged', async () => {
    const { stdout, stderr, code } = await run([join(scratch, path), 'a b', '--config=x', '', '*'])
    expect({ stderr, code }).toEqual({ stderr: '', code: 0 })
    expect(JSON.parse(stdout)).toEqual({ args: ['a b', '--config=x', '', '*'], ...untouched })
    expect(canaries()).toEqual([])
  })
})

test('the launcher ignores runtime options in the environment', async () => {
  const env = {
    BUN_OPTIONS: '--preload ./evil.ts',
    NODE_OPTIONS: '--require ./evil.ts',
    NODE_PATH: 'node_modules',
    BUN_INSPECT_PRELOAD: './evil.ts',
    BUN_BE_BUN: '1',
  }
  const { stdout } = await run([join(scratch, 'link')], { env })
  expect(JSON.parse(stdout)).toEqual({ args: [], ...untouched })
  expect(canaries()).toEqual([])
})

test('the launcher is found on PATH and by a relative name', async () => {
  const path = { PATH: `${join(clone, 'bin')}:/usr/bin:/bin` }
  expect(JSON.parse((await run(['/bin/sh', '-c', 'braidclaw x'], { env: path })).stdout).args).toEqual(['x'])
  expect(JSON.parse((await run(['./braidclaw', 'y'], { cwd: join(clone, 'bin') })).stdout).args).toEqual(['y'])
  expect(JSON.parse((await run(['sh', 'braidclaw', 'z'], { cwd: join(clone, 'bin') })).stdout).args).toEqual(['z'])
})

test('without its packages the launcher says what to do', async () => {
  const bare = join(scratch, 'bare')
  mkdirSync(join(bare, 'bin'), { recursive: true })
  copyFileSync(join(root, 'bin', 'braidclaw'), join(bare, 'bin', 'braidclaw'))
  chmodSync(join(bare, 'bin', 'braidclaw'), 0o755)
  const { stderr, code } = await run([join(bare, 'bin', 'braidclaw')])
  expect(stderr).toBe(`braidclaw: ${bare}/node_modules/bun/bin/bun.exe is missing; run "npm ci" in ${bare}\n`)
  expect(code).toBe(1)
})

if (isDeep)
  test('the same sources give the same executable', async () => {
    const again = join(scratch, 'again', 'braidclaw')
    expect(await compile({ entry: join(clone, 'src', 'main.ts'), outfile: again })).toMatchObject({ ok: true })
    expect(await digest(again)).toBe(await digest(join(scratch, 'braidclaw')))
  })

async function digest(path: string): Promise<string> {
  return new Bun.CryptoHasher('sha256').update(await Bun.file(path).bytes()).digest('hex')
}

test('a build never replaces what is not a regular file, and a failed one leaves the old file', async () => {
  const target = join(scratch, 'old')
  write(target, 'old')
  expect(await compile({ entry: join(scratch, 'nowhere.ts'), outfile: target })).toMatchObject({ ok: false })
  expect(await Bun.file(target).text()).toBe('old')
  const device = join(scratch, 'device')
  symlinkSync('/dev/null', device)
  expect(await compile({ entry: join(clone, 'src', 'main.ts'), outfile: device })).toMatchObject({ ok: false })
  expect(readdirSync(scratch).filter((name) => name.startsWith('.build-'))).toEqual([])
})

describe('the program itself', () => {
  /** A run of all tests has compiled it already. */
  const given = process.env.BRAIDCLAW_TEST_BINARY
  const executable = given || join(scratch, 'real', 'braidclaw')

  test('is built', async () => {
    if (given) expect(existsSync(given)).toBe(true)
    else expect(await compile({ entry: join(root, 'src', 'main.ts'), outfile: executable })).toMatchObject({ ok: true })
  })

  test.each([
    ['from its sources', join(root, 'bin', 'braidclaw')],
    ['as an executable', executable],
  ])('%s answers in the workspace and obeys nothing in it', async (_, program) => {
    const { version } = await Bun.file(join(root, 'package.json')).json()
    expect(await run([program, '--version'])).toEqual({ stdout: `${version}\n`, stderr: '', code: 0 })
    const { stdout, code } = await run([program, 'agent', '-m', 'What files are in this project?'])
    expect(code).toBe(0)
    expect(stdout).toContain('bunfig.toml')
    expect(canaries()).toEqual([])
    expect(existsSync('/nowhere')).toBe(false)
  })
})
