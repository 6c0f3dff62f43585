/** Every law that judges files one by one, each with sources that break it and sources it must let be. */

import { databaseIsOpenedInOnePlace } from './database.ts'
import { exportsAreNamed, filesAreShort, filesParse, filesSayWhatTheyAreFor, importsLeadSomewhere, noBarrels, TOO_LONG } from './files.ts'
import { nothingHappensOnImport } from './inert.ts'
import { coreImportsOnlyCore, everyFolderIsKnown, organImportsCoreAndItself, theProgramStandsAlone } from './layers.ts'
import type { Law } from './module.ts'
import { bunIsSpelledOut, networkHasOnePlace, printingHasOnePlace, serversHaveTheirPlaces, sqliteHasItsPlaces } from './places.ts'
import { coreDoesNoIo } from './purity.ts'
import { noModuleLevelLet, noModuleLevelStore, noModuleStateIsChanged, noPatternRemembers } from './state.ts'

/** A path and a source that stands there. */
export type Sample = readonly [path: string, source: string]

export type LawCase = {
  readonly name: string
  readonly check: Law
  readonly guilty: readonly Sample[]
  readonly innocent?: readonly Sample[]
}

export const laws: readonly LawCase[] = [
  {
    name: 'every file parses',
    check: filesParse,
    guilty: [['src/kit/a.ts', 'export const = 1']],
  },

  {
    name: 'every folder in src is one the architecture names',
    check: everyFolderIsKnown,
    guilty: [
      ['src/utils/a.ts', ''],
      ['src/helpers.ts', ''],
    ],
    innocent: [
      ['src/kernel/a.ts', ''],
      ['src/main.test.ts', ''],
    ],
  },

  {
    name: 'core imports only core',
    check: coreImportsOnlyCore,
    guilty: [
      ['src/kernel/a.ts', `import { openFile } from '../workspace/open.ts'`],
      ['src/kernel/a.ts', `import type { Settings } from '../config/settings.ts'`],
      ['src/security/a.ts', `import { readFileSync } from 'node:fs'`],
      ['src/security/a.ts', `import { resolve } from 'node:path'`],
      ['src/security/a.ts', `import * as path from 'node:path'`],
      ['src/security/a.ts', `const load = () => import('smol-toml')`],
      ['src/runtime/a.ts', `export * from '../memory/store.ts'`],
      ['src/runtime/a.ts', `type Store = import('../memory/store.ts').Store`],
      ['src/kit/a.ts', `const fs = require('fs')`],
      ['src/kit/a.ts', `const load = (name: string) => import(name)`],
      ['src/kit/a.test.ts', `import { store } from '../memory/store.ts'`],
    ],
    innocent: [
      ['src/security/a.ts', `import { canonical } from '../kit/json.ts'; import { parse } from 'unbash'; import { join } from 'node:path'`],
      ['src/kit/a.test.ts', `import { test } from 'bun:test'; import { tmpdir } from 'node:os'`],
    ],
  },

  {
    name: 'core does no I/O',
    check: coreDoesNoIo,
    guilty: [
      ['src/kernel/a.ts', 'export const at = () => Date.now()'],
      ['src/kernel/a.ts', 'export const at = () => Date["now"]()'],
      ['src/kernel/a.ts', 'export const at = () => new Date()'],
      ['src/kernel/a.ts', 'export const at = () => Date()'],
      ['src/kernel/a.ts', 'export const at = () => { const { now } = Date; return now() }'],
      ['src/kernel/a.ts', 'export const dice = () => Math.random()'],
      ['src/kernel/a.ts', 'export const dice = (f: (m: Math) => number) => f(Math)'],
      ['src/runtime/a.ts', 'export const wait = () => setTimeout(() => {}, 1)'],
      ['src/runtime/a.ts', 'export const signal = () => AbortSignal.timeout(1)'],
      ['src/runtime/a.ts', 'export const get = () => fetch("http://x")'],
      ['src/runtime/a.ts', 'export const get = () => globalThis.fetch("http://x")'],
      ['src/runtime/a.ts', 'export const say = () => console.log(1)'],
      ['src/security/a.ts', 'export const home = () => process.env.HOME'],
      ['src/security/a.ts', 'export const read = () => Bun.file("/etc/passwd")'],
      ['src/security/a.ts', 'export const id = () => crypto.randomUUID()'],
      ['src/security/a.ts', 'export const here = () => import.meta.dir'],
      ['src/kit/a.ts', 'export const run = (text: string) => eval(text)'],
      ['src/kit/a.ts', 'export const f = (a = Date.now()) => a'],
    ],
    innocent: [
      ['src/runtime/a.ts', 'export const get = (fetch: (url: string) => string) => fetch("http://x")'],
      ['src/runtime/a.ts', 'export const get = ({ fetch: get }: { fetch: typeof fetch }) => get("http://x")'],
      ['src/runtime/a.ts', 'export const show = (at: number) => new Date(at).toISOString()'],
      ['src/runtime/a.ts', 'export const top = (at: unknown) => at instanceof Date || Math.max(1, 2)'],
      ['src/security/a.ts', 'export const digest = (text: string) => new Bun.CryptoHasher("sha256").update(text)'],
      ['src/security/a.ts', 'export const of = (event: { process: string }) => event.process'],
      ['src/security/a.test.ts', 'export const at = () => Date.now()'],
    ],
  },

  {
    name: 'an organ imports core and its own folder only',
    check: organImportsCoreAndItself,
    guilty: [
      ['src/tools/shell.ts', `import { open } from '../workspace/open.ts'`],
      ['src/tools/shell.ts', `import type { Store } from '../memory/store.ts'`],
      ['src/tools/shell.ts', `const load = () => import('../config/load.ts')`],
      ['src/tools/shell.ts', `import { start } from '../main.ts'`],
      ['src/tools/shell.ts', `import { createAgent } from 'braidclaw'`],
      ['src/tools/shell.test.ts', `import { open } from '../workspace/open.ts'`],
    ],
    innocent: [
      [
        'src/tools/shell.ts',
        `import type { Tool } from '../runtime/port.ts'; import { cap } from './cap.ts'; import { readFileSync } from 'node:fs'`,
      ],
      ['src/workspace/net/fetch.ts', `import { open } from '../open.ts'`],
      ['src/cli/agent.ts', `import { open } from '../workspace/open.ts'; import { store } from '../memory/store.ts'`],
    ],
  },

  {
    name: 'the program stands alone',
    check: theProgramStandsAlone,
    guilty: [
      ['src/cli/a.ts', `import { measure } from '../../bench/measure.ts'`],
      ['src/cli/a.ts', `import { x } from '/work/shared/x.ts'`],
      ['src/cli/a.ts', `const load = (name: string) => import(name)`],
    ],
    innocent: [['src/cli/version.ts', `import { version } from '../../package.json'`]],
  },

  {
    name: 'sqlite has its places',
    check: sqliteHasItsPlaces,
    guilty: [
      ['src/receipts/a.ts', `import { Database } from 'bun:sqlite'`],
      ['src/receipts/a.ts', `import type { Database } from 'bun:sqlite'`],
      ['src/main.ts', `const load = () => import('bun:sqlite')`],
    ],
    innocent: [['src/memory/a.ts', `import { Database } from 'bun:sqlite'`]],
  },

  {
    name: 'the database is opened in one place',
    check: databaseIsOpenedInOnePlace,
    guilty: [
      ['src/memory/a.ts', `import { Database } from 'bun:sqlite'; export const f = (path: string) => new Database(path)`],
      ['src/memory/a.ts', 'export const f = (path: string) => Database.open(path)'],
      ['src/memory/store.ts', 'export const f = (path: string) => closeSync(openSync(path, constants.O_RDWR | constants.O_CREAT, 0o600))'],
      ['src/memory/database-file.ts', 'export const f = (path: string) => openSync(path, constants.O_RDWR | constants.O_CREAT)'],
      ['src/memory/store.ts', 'export const f = (path: string) => fs.copyFileSync(path, `${path}.copy`)'],
      ['src/cli/commands/a.ts', 'export const f = ({ memory }: Config) => readFileSync(memory.path)'],
      ['src/cli/commands/a.ts', 'export const f = (home: string) => Bun.file(join(home, "memory.sqlite")).size'],
      ['src/cli/commands/a.ts', 'export const f = (path: string) => promises.readFile(`${path}-wal`)'],
      ['src/config/a.ts', 'export const f = (to: string) => copyFileSync(config.memory.path, to)'],
    ],
    innocent: [
      ['src/memory/store.ts', 'export const f = (path: string) => new Database(path)'],
      ['src/memory/database-file.ts', 'export const f = (path: string) => openSync(path, constants.O_CREAT | constants.O_EXCL, 0o600)'],
      ['src/memory/a.ts', 'export const f = (path: string) => statSync(path).size'],
      ['src/memory/a.ts', 'export const f = () => readFileSync("/proc/self/stat", "latin1")'],
      ['src/memory/recall/a.ts', 'export const f = (path: string) => openSync(path, "r")'],
      ['src/cli/commands/a.ts', 'export const f = ({ memory }: Config) => openMemory({ path: memory.path })'],
    ],
  },

  {
    name: 'servers have their places',
    check: serversHaveTheirPlaces,
    guilty: [['src/service/a.ts', 'export const start = () => Bun.serve({ fetch: () => new Response() })']],
    innocent: [['src/channels/http/serve.ts', 'export const start = () => Bun.serve({ fetch: () => new Response() })']],
  },

  {
    name: 'printing has one place',
    check: printingHasOnePlace,
    guilty: [
      ['src/cli/a.ts', 'export const say = () => console.log("x")'],
      ['src/cli/a.ts', 'export const say = () => process.stdout.write("x")'],
      ['src/cli/a.ts', 'export const say = () => process["stderr"].write("x")'],
      ['src/cli/a.ts', 'export const say = () => { const { stdout } = process; stdout.write("x") }'],
      ['src/cli/a.ts', 'export const say = () => Bun.write(Bun.stdout, "x")'],
      ['src/cli/a.ts', `import { writeSync } from 'node:fs'; export const say = () => writeSync(2, 'x')`],
      ['src/cli/a.ts', `import * as fs from 'node:fs'; export const say = () => fs.writeFileSync(1, 'x')`],
      ['src/cli/a.ts', `import { openSync } from 'node:fs'; export const say = () => openSync('/dev/tty', 'w')`],
      ['src/cli/a.ts', `export const start = () => Bun.spawn(['ls'], { stdout: 'inherit' })`],
      ['src/cli/a.ts', `import { stdout } from 'node:process'; export const say = () => stdout.write('x')`],
      ['src/cli/a.ts', `import { openDescriptor } from '../channels/descriptor.ts'; export const say = () => openDescriptor(2).put('x')`],
    ],
    innocent: [
      [
        'src/cli/a.ts',
        'export const say = ({ process }: { process: { stdout: { write(text: string): void } } }) => process.stdout.write("x")',
      ],
      ['src/cli/a.ts', 'export const home = () => process.env.HOME'],
    ],
  },

  {
    name: 'the network has one place',
    check: networkHasOnePlace,
    guilty: [
      ['src/providers/a.ts', 'export const ask = () => fetch("http://x")'],
      ['src/main.ts', 'export const start = () => provider({ fetch })'],
      ['src/providers/a.ts', 'export const ask = () => globalThis.fetch("http://x")'],
      ['src/providers/a.ts', 'export const ask = () => Bun.fetch("http://x")'],
      ['src/tools/a.ts', 'export const dial = () => Bun.connect({ hostname: "x", port: 1, socket: {} })'],
      ['src/tools/a.ts', `import { request } from 'node:https'`],
    ],
    innocent: [
      ['src/workspace/net/fetch.ts', 'export const get = () => fetch("http://x")'],
      ['src/providers/a.ts', 'export const ask = (fetch: typeof globalThis.fetch) => fetch("http://x")'],
      ['src/providers/a.ts', 'export const ask = (port: { fetch: () => void }) => port.fetch()'],
    ],
  },

  {
    name: 'Bun is spelled out',
    check: bunIsSpelledOut,
    guilty: [
      ['src/tools/a.ts', 'const { serve } = Bun'],
      ['src/tools/a.ts', `import { serve } from 'bun'`],
    ],
    innocent: [['src/tools/a.ts', `import type { Subprocess } from 'bun'; export const run = () => Bun.spawn(['ls'])`]],
  },

  {
    name: 'there are no barrels',
    check: noBarrels,
    guilty: [['src/tools/index.ts', '']],
  },

  {
    name: 'a file has at most 300 lines, unless it is a pure table',
    check: filesAreShort,
    guilty: [['src/kit/a.ts', `export function f() {${TOO_LONG}}\n`]],
    innocent: [['src/kit/table.ts', `import type { Row } from './row.ts'\nexport const rows = [1,${TOO_LONG}] as const satisfies Row[]\n`]],
  },

  {
    name: 'a file opens with what it is for',
    check: filesSayWhatTheyAreFor,
    guilty: [
      ['src/kit/a.ts', 'export const a = 1'],
      ['src/kit/a.ts', '// short\nexport const a = 1'],
      ['src/kit/a.ts', '/** */\nexport const a = 1'],
      ['src/kit/a.ts', '/**\n */\nexport const a = 1'],
    ],
    innocent: [
      ['scripts/a.ts', '#!/usr/bin/env bun\n/** Does a. */\nexport const a = 1'],
      ['src/kit/a.ts', '/**\n * Does a.\n */\nexport const a = 1'],
    ],
  },

  {
    name: 'exports are named',
    check: exportsAreNamed,
    guilty: [['src/kit/a.ts', 'export default 1']],
  },

  {
    name: 'an import leads to a file',
    check: importsLeadSomewhere,
    guilty: [
      ['src/kit/a.ts', `import { b } from './b'`],
      ['src/kit/a.ts', `import type { b } from './nowhere.ts'`],
    ],
    innocent: [['src/kit/a.ts', `import { version } from '../../package.json'`]],
  },
  {
    name: 'nothing happens on import',
    check: nothingHappensOnImport,
    guilty: [
      ['src/tools/a.ts', 'register("a")'],
      ['src/tools/a.ts', `import './b.ts'`],
      ['src/tools/a.ts', 'export const a = await load()'],
      ['src/tools/a.ts', 'export const a = registry.add("a")'],
      ['src/tools/a.ts', 'export const a = (() => 1)()'],
      ['src/tools/a.ts', 'export const a = new Store()'],
      ['src/tools/a.ts', 'export const a = { b: [open("x")] }'],
      ['src/tools/a.ts', 'if (Bun.env.X) patch()'],
      ['src/tools/a.ts', 'globalThis.x = 1'],
      ['src/tools/a.ts', 'for (const x of [1]) use(x)'],
      ['src/tools/a.ts', 'class A { static b = open("x") }'],
      ['src/tools/a.ts', 'class A { static { open("x") } }'],
      ['src/tools/a.ts', 'class A extends mixin(B) {}'],
      ['src/tools/a.ts', 'export const a = Object.assign(b, {})'],
      ['src/tools/a.ts', 'export const a = (b.c = 1)'],
      ['src/tools/a.ts', 'export const a = make(); function make() { Bun.gc(); return 1 }'],
      ['src/tools/a.ts', `import { add } from './registry.ts'; export const a = add(1)`],
      ['src/main.ts', `import './tools/a.ts'`],
    ],
    innocent: [
      ['src/tools/a.ts', 'export const a = new Set(["b"]); const c = /x/g; const d = Object.freeze({ e: [1, -2] })'],
      ['src/tools/a.ts', 'export const words = "a b".split(" ").map((word) => load(word))'],
      ['src/tools/a.ts', 'class A { b = open("x"); static c = 1; d() { return open("y") } }'],
      ['src/config/a.ts', `import { z } from 'zod'; export const port = z.number().int().min(1)`],
      ['src/tools/a.ts', 'export const a = make("a"); function make(name: string) { return { name, run: () => Bun.gc() } }'],
      ['src/tools/a.ts', `import { make } from '../kit/make.ts'; export const a = make(1)`],
      ['src/braidclaw.ts', 'await main(Bun.argv)'],
    ],
  },

  {
    name: 'no module-level let',
    check: noModuleLevelLet,
    guilty: [
      ['src/kit/a.ts', 'let count = 0'],
      ['src/kit/a.ts', 'export let count = 0'],
      ['src/kit/a.ts', 'var count = 0'],
    ],
    innocent: [['src/kit/a.ts', 'export function f() { let n = 0; return n++ }']],
  },

  {
    name: 'no module-level store',
    check: noModuleLevelStore,
    guilty: [
      ['src/kit/a.ts', 'const cache = new Map<string, string>()'],
      ['src/kit/a.ts', 'export const seen: string[] = []'],
      ['src/kit/a.ts', 'const byName = {} as Record<string, string>'],
    ],
    innocent: [['src/kit/a.ts', 'const words = new Set(["a"])']],
  },

  {
    name: 'no module state is changed',
    check: noModuleStateIsChanged,
    guilty: [
      ['src/kit/a.ts', 'const words = new Set(["a"]); export const learn = (word: string) => words.add(word)'],
      ['src/kit/a.ts', 'const words = ["a"]; export const learn = (word: string) => { words[1] = word }'],
      ['src/kit/a.ts', 'const counts = { a: 1 }; export const count = () => { counts.a++ }'],
      ['src/kit/a.ts', 'const deep = { a: [1] }; export const push = () => deep.a.push(2)'],
      ['src/kit/a.ts', 'const counts = { a: 1 }; export const drop = () => delete counts.a'],
      ['src/kit/a.ts', 'const defaults = { a: 1 }; export const set = (more: object) => Object.assign(defaults, more)'],
      ['src/kit/a.ts', `import { words } from './words.ts'; export const learn = (word: string) => words.add(word)`],
      ['src/kit/a.ts', 'export function next() { return next.count++ }'],
    ],
    innocent: [
      ['src/kit/a.ts', 'const words = new Set(["a"]); export const f = (words: Set<string>) => words.add("b")'],
      ['src/kit/a.ts', 'const words = ["b", "a"]; export const f = () => [...words].sort()'],
      ['src/kit/a.ts', 'const defaults = { a: 1 }; export const f = () => Object.assign({}, defaults)'],
      ['src/kit/a.ts', `import { z } from 'zod'; export const f = () => z.set(z.string())`],
    ],
  },

  {
    name: 'no pattern remembers',
    check: noPatternRemembers,
    guilty: [['src/kit/a.ts', 'const word = /a/g; export const f = (text: string) => word.test(text)']],
    innocent: [
      ['src/kit/a.ts', 'const word = /a/g; const one = /b/u; export const f = (text: string) => [...text.matchAll(word), one.test(text)]'],
    ],
  },
]
