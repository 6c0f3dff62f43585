/** Lists the import laws, each with sources that break it and sources that it must accept. */

import {
  adapterImportsCoreAndItself,
  commandsTakeTypesOfShapes,
  coreImportsOnlyCore,
  entrancesImportNoCommand,
  everyFolderIsKnown,
  hostImportsNoEntrance,
  systemImportsOnlyCore,
  theProgramStandsAlone,
} from './layers.ts'
import type { LawCase } from './module.ts'
import { coreDoesNoIo } from './purity.ts'

export const layerLaws: readonly LawCase[] = [
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
      ['src/runtime/a.ts', `import { sleep } from '../kit/abort.ts'`],
      ['src/kit/a.ts', `import type { startTick } from './proc.ts'`],
    ],
    innocent: [
      ['src/security/a.ts', `import { canonical } from '../kit/json.ts'; import { parse } from 'unbash'; import { join } from 'node:path'`],
      ['src/kit/a.test.ts', `import { test } from 'bun:test'; import { tmpdir } from 'node:os'`],
    ],
  },

  {
    name: 'the files of kit that wait and read /proc import only core',
    check: systemImportsOnlyCore,
    guilty: [
      ['src/kit/abort.ts', `import { store } from '../memory/store.ts'`],
      ['src/kit/proc.ts', `import type { Setup } from '../host/api.ts'`],
    ],
    innocent: [['src/kit/proc.ts', `import { readFileSync } from 'node:fs'; import { quote } from './text.ts'`]],
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
    name: 'an adapter imports core and its own folder only',
    check: adapterImportsCoreAndItself,
    guilty: [
      ['src/tools/builtin/shell.ts', `import { open } from '../../workspace/open.ts'`],
      ['src/tools/builtin/shell.ts', `import type { Store } from '../../memory/store.ts'`],
      ['src/tools/builtin/shell.ts', `const load = () => import('../../config/load.ts')`],
      ['src/tools/builtin/shell.ts', `import { start } from '../../main.ts'`],
      ['src/tools/builtin/shell.ts', `import { createAgent } from 'braidclaw'`],
      ['src/tools/builtin/shell.test.ts', `import { open } from '../../workspace/open.ts'`],
      ['src/tools/builtin/shell.ts', `import { open } from '../../workspace/contract.ts'`],
    ],
    innocent: [
      [
        'src/tools/builtin/shell.ts',
        `import type { Tool } from '../../runtime/port.ts'; import { cap } from './cap.ts'; import { readFileSync } from 'node:fs'`,
      ],
      ['src/workspace/net/fetch.ts', `import { open } from '../open.ts'; import { sleep } from '../../kit/abort.ts'`],
      ['src/tools/builtin/shell.ts', `import type { View } from '../../sandbox/contract.ts'`],
      ['src/cli/agent.ts', `import { open } from '../workspace/open.ts'; import { store } from '../memory/store.ts'`],
    ],
  },

  {
    name: 'the host imports core and adapters, and no entrance',
    check: hostImportsNoEntrance,
    guilty: [
      ['src/host/open-home.ts', `import { CliExit } from '../cli/exit.ts'`],
      ['src/host/open-home.ts', `import type { Repl } from '../channels/repl.ts'`],
      ['src/host/open-home.ts', `import { wake } from '../main.ts'`],
      ['src/host/open-home.ts', `import { createAgent } from 'braidclaw'`],
    ],
    innocent: [
      ['src/host/open-home.ts', `import { openMemory } from '../memory/db.ts'; import type { Config } from '../config/config.ts'`],
    ],
  },

  {
    name: 'channels import no command',
    check: entrancesImportNoCommand,
    guilty: [
      ['src/channels/take-turn.ts', `import { exitCodes } from '../cli/exit.ts'`],
      ['src/channels/discord/channel.ts', `import type { AgentFlags } from '../../cli/args/turn-flags.ts'`],
      ['src/channels/take-turn.ts', `import { createAgent } from '../agent.ts'`],
      ['src/channels/take-turn.ts', `import { createAgent } from 'braidclaw'`],
    ],
    innocent: [
      [
        'src/channels/take-turn.ts',
        `import type { Conversation } from '../host/api.ts'; import { openReader } from '../service/fifo/fifo-reader.ts'`,
      ],
    ],
  },

  {
    name: 'commands take only types of shapes',
    check: commandsTakeTypesOfShapes,
    guilty: [
      ['src/cli/a.ts', `import { task } from '../control/contract/task-shapes.ts'`],
      ['src/control/client/a.ts', `import { type Task, task } from '../contract/task-shapes.ts'`],
    ],
    innocent: [
      ['src/cli/a.ts', `import type { Task } from '../control/contract/task-shapes.ts'`],
      ['src/control/client/a.ts', `import { type Task, type TaskDraft } from '../contract/task-shapes.ts'`],
      ['src/cli/a.ts', `import { taskStatuses } from '../control/contract/state-names.ts'`],
      ['src/control/plane/a.ts', `import { task } from '../contract/task-shapes.ts'`],
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
    innocent: [
      ['src/cli/version.ts', `import { version } from '../../package.json'`],
      ['src/cli/a.ts', `import text from '../../lib/log.sh' with { type: 'text' }`],
    ],
  },
]
