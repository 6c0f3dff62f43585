import { afterAll, beforeAll, expect, test } from 'bun:test'
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
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

/** Holds what these versions printed into a pipe about small projects with mistakes, and how many findings a person counts in it. */
const recorded: readonly { readonly tool: string; readonly version: string; readonly found: number; readonly output: string }[] =
  readFileSync(join(import.meta.dir, 'static-tools.fixture.jsonl'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))

test.each(recorded)('$tool $version: its findings are counted, and come first', ({ tool: name, found, output }) => {
  const tool = staticTools.find((each) => each.name === name)
  if (tool === undefined) throw new Error(name)
  const [heading, first = ''] = summarised(tool, output).split('\n')
  expect(heading).toBe(`${name} found ${found} ${found === 1 ? 'problem' : 'problems'}:`)
  expect(output).toContain(first)
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
