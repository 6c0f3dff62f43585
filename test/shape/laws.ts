/** Lists every law that judges files one by one, each with sources that break it and sources that it must accept. */

import { databaseIsOpenedInOnePlace } from './database.ts'
import { exportsAreNamed, filesAreShort, filesParse, filesSayWhatTheyAreFor, importsLeadSomewhere, noBarrels, TOO_LONG } from './files.ts'
import { pathsAreShort } from './folders.ts'
import { nothingHappensOnImport } from './inert.ts'
import { layerLaws } from './layer-laws.ts'
import type { LawCase } from './module.ts'
import {
  bunIsSpelledOut,
  lookingAgainHasItsPlaces,
  memoryIsOpenedByTheHost,
  networkHasOnePlace,
  printingHasOnePlace,
  serversHaveTheirPlaces,
  sqliteHasItsPlaces,
} from './places.ts'
import { noModuleLevelLet, noModuleLevelStore, noModuleStateIsChanged, noPatternRemembers } from './state.ts'
import { commentsHaveASubject, messagesSayIsNot } from './words.ts'

const GENERATED = "/** Lists rows; `scripts/rows.ts` writes this file. */\nimport type { Row } from './row.ts'\n"

export const laws: readonly LawCase[] = [
  { name: 'every file parses', check: filesParse, guilty: [['src/kit/a.ts', 'export const = 1']] },

  ...layerLaws,

  {
    name: 'sqlite has its places',
    check: sqliteHasItsPlaces,
    guilty: [
      ['src/receipts/a.ts', `import { Database } from 'bun:sqlite'`],
      ['src/receipts/a.ts', `import type { Database } from 'bun:sqlite'`],
      ['src/host/run/conversation.ts', `const load = () => import('bun:sqlite')`],
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
    name: 'memory is opened by the host',
    check: memoryIsOpenedByTheHost,
    guilty: [
      ['src/cli/commands/a.ts', `import { openMemory } from '../../memory/memory.ts'`],
      ['src/channels/a.ts', `const load = () => import('../memory/memory.ts')`],
    ],
    innocent: [
      ['src/host/open/open-records.ts', `import { type Memory, openMemory } from '../memory/memory.ts'`],
      ['src/cli/commands/a.ts', `import type { Memory } from '../../memory/memory.ts'`],
    ],
  },

  {
    name: 'looking again and again has its places',
    check: lookingAgainHasItsPlaces,
    guilty: [['src/channels/a.ts', 'export const f = (look: () => void) => setInterval(look, 150)']],
    innocent: [['src/service/a.ts', 'export const f = (look: () => void) => setInterval(look, 150)']],
  },

  {
    name: 'servers have their places',
    check: serversHaveTheirPlaces,
    guilty: [['src/service/a.ts', 'export const start = () => Bun.serve({ fetch: () => new Response() })']],
    innocent: [['src/http/listen.ts', 'export const start = () => Bun.serve({ fetch: () => new Response() })']],
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
      [
        'src/cli/a.ts',
        `import { openDescriptor } from '../channels/terminal/descriptor.ts'; export const say = () => openDescriptor(2).put('x')`,
      ],
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
      ['src/host/run/conversation.ts', 'export const start = () => provider({ fetch })'],
      ['src/providers/a.ts', 'export const ask = () => globalThis.fetch("http://x")'],
      ['src/providers/a.ts', 'export const ask = () => Bun.fetch("http://x")'],
      ['src/tools/a.ts', 'export const dial = () => Bun.connect({ hostname: "x", port: 1, socket: {} })'],
      ['src/tools/a.ts', `import { request } from 'node:https'`],
      ['src/control/hostd/a.ts', 'export const ask = () => Bun.connect({ unix: "/x", socket: {} })'],
      ['src/control/server/a.ts', 'export const serve = () => Bun.listen({ unix: "/x", socket: {} })'],
    ],
    innocent: [
      ['src/control/hostd/serve-socket.ts', 'export const serve = () => Bun.listen({ unix: "/x", socket: {} })'],
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

  { name: 'there are no barrels', check: noBarrels, guilty: [['src/tools/index.ts', '']] },

  {
    name: 'a file has at most 500 lines, unless it is a generated table',
    check: filesAreShort,
    guilty: [
      ['src/kit/a.ts', `export function f() {${TOO_LONG}}\n`],
      ['src/kit/a.ts', `${GENERATED}export function f() {${TOO_LONG}}\n`],
      ['src/kit/table.ts', `/** Lists rows. */\nexport const rows = [1,${TOO_LONG}]\n`],
    ],
    innocent: [['src/kit/table.ts', `${GENERATED}export const rows = [1,${TOO_LONG}] as const satisfies Row[]\n`]],
  },

  {
    name: 'a path has at most four folders below src',
    check: pathsAreShort,
    guilty: [['src/host/a/b/c/d/e.test.ts', '']],
    innocent: [
      ['src/host/a/b/c/e.ts', ''],
      ['test/control/a/b/c/d/e.ts', ''],
    ],
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

  { name: 'exports are named', check: exportsAreNamed, guilty: [['src/kit/a.ts', 'export default 1']] },

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
      ['src/host/run/conversation.ts', `import './tools/a.ts'`],
    ],
    innocent: [
      ['src/tools/a.ts', 'export const a = new Set(["b"]); const c = /x/g; const d = Object.freeze({ e: [1, -2] })'],
      ['src/tools/a.ts', 'export const words = "a b".split(" ").map((word) => load(word))'],
      ['src/tools/a.ts', 'class A { b = open("x"); static c = 1; d() { return open("y") } }'],
      ['src/config/a.ts', `import { z } from 'zod'; export const port = z.number().int().min(1)`],
      ['src/tools/a.ts', 'export const a = make("a"); function make(name: string) { return { name, run: () => Bun.gc() } }'],
      ['src/tools/a.ts', `import { make } from '../kit/make.ts'; export const a = make(1)`],
      ['src/main.ts', 'await main(Bun.argv)'],
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

  {
    name: 'a doc comment begins with its verb or its subject',
    check: commentsHaveASubject,
    guilty: [
      ['src/kit/a.ts', '/** Of two workers that start at once one moves it. */\nexport const a = 1'],
      ['src/kit/a.ts', '/**\n * Whoever asks first is served first.\n */\nexport const a = 1'],
      ['src/dashboard/page/a.tsx', '/** What is shown. */\nexport const a = 1'],
    ],
    innocent: [
      ['src/kit/a.ts', '/** Returns what was asked. */\nexport const a = 1'],
      ['src/kit/a.test.ts', '/** Who may open it. */\nexport const a = 1'],
    ],
  },

  {
    name: 'a message says "is not"',
    check: messagesSayIsNot,
    guilty: [
      ['src/kit/a.ts', "export const message = 'the body is no JSON'"],
      ['src/kit/a.ts', 'export const message = (path: string) => `${path} is no file`'],
    ],
    innocent: [
      ['src/kit/a.ts', "export const message = 'the body is not JSON'"],
      ['src/kit/a.ts', 'export const a = 1 // there is no other'],
    ],
  },
]
