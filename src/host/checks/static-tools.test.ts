import { afterAll, beforeAll, expect, test } from 'bun:test'
import { cpSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { place } from '../../../test/support/host.ts'
import { needs } from '../../../test/support/needs.ts'
import type { Host } from '../api.ts'
import { runCheck } from './check.ts'
import { commandCheck } from './find-checks.ts'
import { freezeChecks } from './frozen-checks.ts'
import { staticToolOf, staticTools, summarised } from './static-tools.ts'

const confined = test.if(needs('bwrap'))
const here = place()
const state: { host?: Host } = {}
const write = (path: string, text: string) => writeFileSync(join(here.cwd, path), text)
const hostHere = () => {
  if (state.host === undefined) throw new Error('beforeAll has not run')
  return state.host
}

/** The real tools, as a project has them. */
beforeAll(async () => {
  const modules = join(import.meta.dir, '../../../node_modules')
  mkdirSync(join(here.cwd, 'node_modules/.bin'), { recursive: true })
  for (const name of ['typescript', '@typescript', '@biomejs'])
    cpSync(join(modules, name), join(here.cwd, 'node_modules', name), { recursive: true })
  symlinkSync('../typescript/bin/tsc', join(here.cwd, 'node_modules/.bin/tsc'))
  symlinkSync('../@biomejs/biome/bin/biome', join(here.cwd, 'node_modules/.bin/biome'))
  write('tsconfig.json', '{ "compilerOptions": { "strict": true }, "files": ["a.ts"] }\n')
  write('biome.json', '{ "files": { "includes": ["a.ts"] }, "formatter": { "indentStyle": "space" } }\n')
  state.host = await here.host()
})
afterAll(async () => {
  await state.host?.close()
  here[Symbol.dispose]()
})

const run = (command: string, frozen = freezeChecks([commandCheck(command)], here.cwd)) =>
  runCheck(commandCheck(command), { host: hostHere(), setup: hostHere().setup, frozen })

confined('tsc and biome of the project decide, and their findings come first', async () => {
  write('a.ts', 'export const a: number = 1;\n')
  expect(await run('tsc --noEmit')).toMatchObject({ tier: 1, pass: true, exit: 0 })
  expect(await run('biome check')).toMatchObject({ tier: 1, pass: true, exit: 0 })
  write('a.ts', 'export const a: number = "x"\n')
  const [types, lint] = [await run('npx tsc --noEmit'), await run('biome check')]
  expect(types).toMatchObject({ tier: 1, pass: false })
  expect(types.evidence).toStartWith("tsc found 1 problem:\na.ts(1,14): error TS2322: Type 'string' is not assignable to type 'number'.")
  expect(lint).toMatchObject({ tier: 1, pass: false })
  expect(lint.evidence).toStartWith('biome found 1 problem:\na.ts format\n')
  // It prints how long it took.
  expect((await run('biome check')).evidence).toBe(lint.evidence)
})

confined('a program that is not the frozen one decides nothing', async () => {
  const frozen = freezeChecks([commandCheck('tsc --noEmit')], here.cwd)
  const bin = join(here.cwd, 'node_modules/.bin/tsc')
  rmSync(bin)
  writeFileSync(bin, '#!/bin/sh\nexit 0\n', { mode: 0o755 })
  const swapped = await run('tsc --noEmit', frozen)
  expect(swapped).toMatchObject({ pass: false, notRun: true })
  expect(swapped.evidence).toContain('"tsc --noEmit" is not the one that was frozen: node_modules/.bin/tsc changed')
  rmSync(bin)
  symlinkSync('../typescript/bin/tsc', bin)
  expect((await run('tsc --noEmit', frozen)).notRun).toBeUndefined()
  // What the program loads counts as well.
  writeFileSync(join(here.cwd, 'node_modules/typescript/lib/added.js'), 'process.exit(0)\n')
  expect(await run('tsc --noEmit', frozen)).toMatchObject({ pass: false, notRun: true })
  rmSync(join(here.cwd, 'node_modules/typescript/lib/added.js'))
  const [native = ''] = readdirSync(join(here.cwd, 'node_modules/@typescript'))
  writeFileSync(join(here.cwd, 'node_modules/@typescript', native, 'added'), '')
  expect(await run('tsc --noEmit', frozen)).toMatchObject({ pass: false, notRun: true })
})

confined('a tool that is not there was not run', async () => {
  expect(await run('eslint .')).toMatchObject({ tier: 1, pass: false, notRun: true })
})

// biome-ignore format: a table to be read
const recorded: readonly (readonly [tool: string, output: string, found: readonly string[]])[] = [
  ['eslint', "\n/p/a.js\n  1:7  error    'a' is assigned a value but never used  no-unused-vars\n  2:1  warning  Unexpected console statement             no-console\n\n✖ 2 problems (1 error, 1 warning)\n\n",
    ["1:7  error    'a' is assigned a value but never used  no-unused-vars", '2:1  warning  Unexpected console statement             no-console']],
  ['ruff', 'F401 [*] `os` imported but unused\n --> a.py:1:8\n  |\n1 | import os\n  |        ^^\n  |\nhelp: Remove unused import: `os`\n\nFound 1 error.\n[*] 1 fixable with the `--fix` option.\n', ['F401 [*] `os` imported but unused']],
  ['ruff', 'a.py:1:8: F401 [*] `os` imported but unused\nFound 1 error.\n', ['a.py:1:8: F401 [*] `os` imported but unused']],
  ['mypy', 'a.py:1: error: Incompatible types in assignment (expression has type "str", variable has type "int")  [assignment]\na.py:2: note: Revealed type is "builtins.int"\nFound 1 error in 1 file (checked 1 source file)\n',
    ['a.py:1: error: Incompatible types in assignment (expression has type "str", variable has type "int")  [assignment]']],
  ['cargo', '    Checking p v0.1.0 (/p)\nwarning: unused variable: `y`\n --> src/main.rs:2:9\n  |\nerror[E0308]: mismatched types\n --> src/main.rs:3:18\n  |\nFor more information about this error, try `rustc --explain E0308`.\nwarning: `p` (bin "p") generated 1 warning\nerror: could not compile `p` (bin "p") due to 1 previous error; 1 warning emitted\n',
    ['warning: unused variable: `y`', 'error[E0308]: mismatched types']],
  ['go', '# example.com/p\n# [example.com/p]\n./main.go:6:2: fmt.Printf format %d has arg "x" of wrong type string\n', ['./main.go:6:2: fmt.Printf format %d has arg "x" of wrong type string']],
  ['go', 'vet: ./main.go:4:2: undefined: x\n', ['vet: ./main.go:4:2: undefined: x']],
]
test.each(recorded)('%s: its findings are counted, and come first', (name, output, found) => {
  const tool = staticTools.find((each) => each.name === name)
  if (tool === undefined) throw new Error(name)
  const [heading, ...rest] = summarised(tool, output).split('\n')
  expect(heading).toBe(`${name} found ${found.length} ${found.length === 1 ? 'problem' : 'problems'}:`)
  for (const line of found) expect(rest.map((each) => each.trim())).toContain(line)
  expect(summarised(tool, 'all is well\n')).toBe('all is well\n')
})

test.each([
  ['tsc -p .', 'tsc'],
  ['npx eslint src', 'eslint'],
  ['node_modules/.bin/biome ci', 'biome'],
  ['cargo check', 'cargo'],
  ['cargo test', undefined],
  ['go vet ./...', 'go'],
  ['go test ./...', undefined],
  ['tsc -p . || true', undefined],
  ['npm test', undefined],
])('%s is a call of %s', (command, name) => expect(staticToolOf(command)?.name).toBe(name))
