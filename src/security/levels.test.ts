/**
 * Tests what each level of autonomy decides about commands. A line of the tables holds the command and, for each way of running commands
 * (nothing confines it; only a sandbox; a sandbox with a private view of the workspace), what readonly, supervised, supervised with --auto,
 * and full decide. Commands that hide a forbidden command come first; where full allows one of these, reading the command cannot find the
 * hidden part (a file, a decoder). After an intended change, rewrite the tables with `LEVELS=write bun test
 * ./src/security/levels.test.ts` and read the difference: every line of it is a decision.
 */

import { describe, expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { CommandMode } from './autonomy.ts'
import { defaultAllow } from './command/names.ts'
import { callOf, gateOf } from './gate.fixture.ts'
import type { Policy } from './policy.ts'
import type { Disk } from './targets/link.ts'

type LevelRow = readonly [unconfined: string, confined: string, transaction: string, command: string]

const modes: readonly CommandMode[] = [
  { confined: false, transaction: false },
  { confined: true, transaction: false },
  { confined: true, transaction: true },
]

function levelsOf(fields: Partial<Policy> = {}, commands: CommandMode = { confined: true, transaction: true }) {
  const gates = (['readonly', 'supervised', 'auto', 'full'] as const).map((level) => {
    const autonomy = level === 'auto' ? ({ autonomy: 'supervised', approveAllMedium: true } as const) : { autonomy: level }
    return gateOf({ allowCommands: defaultAllow, ...autonomy, ...fields }, { resolve: (name) => `/usr/bin/${name}`, commands })
  })
  return async (command: string) =>
    (await Promise.all(gates.map((gate) => gate.judge(callOf('shell', { command }))))).map(({ verdict }) => verdict).join(' ')
}

const byMode = modes.map((mode) => levelsOf({}, mode))

async function judged(rows: readonly LevelRow[]): Promise<LevelRow[]> {
  return Promise.all(
    rows.map(async ([, , , command]) => {
      const [unconfined = '', confined = '', transaction = ''] = await Promise.all(byMode.map((levels) => levels(command)))
      return [unconfined, confined, transaction, command] as const
    }),
  )
}

async function table(file: string): Promise<readonly LevelRow[]> {
  const path = join(import.meta.dir, file)
  const lines = readFileSync(path, 'utf8').trimEnd().split('\n')
  const rows = lines.map((line): LevelRow => JSON.parse(line))
  if (process.env.LEVELS === 'write') writeFileSync(path, (await judged(rows)).map((row) => `${JSON.stringify(row)}\n`).join(''))
  return rows
}

const hidden = await table('hidden.fixture.jsonl')
const everyday = await table('everyday.fixture.jsonl')
const refused = 'deny deny deny deny'
const isRefused = ([, , transaction]: LevelRow) => transaction === refused

test('a forbidden command is refused at every level, however it is spelt', async () => expect(await judged(hidden)).toEqual([...hidden]))

test('the table holds at least 90 spellings that are refused', () => expect(hidden.filter(isRefused).length).toBeGreaterThanOrEqual(90))

test('what is refused at every level is refused however commands run', () =>
  expect([...hidden, ...everyday].filter((row) => new Set(row.slice(0, 3).map((levels) => levels === refused)).size > 1)).toEqual([]))

test('everyday commands are judged as before', async () => expect(await judged(everyday)).toEqual([...everyday]))

test('of everyday commands at most two in a hundred are refused at every level', () =>
  expect(everyday.filter(isRefused).length / everyday.length).toBeLessThanOrEqual(0.02))

describe('with a private view', () => {
  test('no everyday command asks before it runs, unless it gets network; none is refused that some level runs', () => {
    const asking = everyday.filter(([, , transaction]) => transaction.split(' ')[1] !== 'allow' && transaction !== refused)
    expect(asking.map(([, , , command]) => command)).toEqual(
      everyday.filter(([, , , command]) => isOnline(command)).map(([, , , command]) => command),
    )
  })

  test('"before" with "block" decides as if there were no view, reading aside', async () => {
    const seed = levelsOf({ ask: 'before', unlistedCommands: 'block' })
    for (const [unconfined, , , command] of [...hidden, ...everyday]) {
      const now = await seed(command)
      if (isOnline(command)) continue
      if (!now.startsWith('allow')) expect(`${now} ${command}`).toBe(`${unconfined} ${command}`)
    }
  })

  test('readonly runs no more than what only reads, unless the changes are dropped', async () => {
    const dropping = levelsOf({ readonlyCommands: 'drop' })
    const reads = everyday.filter(([, , transaction]) => transaction.startsWith('allow'))
    expect(reads.length).toBeGreaterThan(60)
    for (const [, , transaction, command] of everyday) {
      const expected = transaction === refused || isOnline(command) ? 'deny' : 'allow'
      expect(`${(await dropping(command)).split(' ')[0]} ${command}`).toBe(`${expected} ${command}`)
    }
  })
})

/** Fetches from a registry or another host that its words name. */
function isOnline(command: string): boolean {
  return /^(npm (ci|install|view|outdated|audit|i)\b|npx |curl |wget |pip3? install|python3? -m pip install|cargo (add|install|fetch)|go (get|install|mod)|bun (install|add|x)|git clone http|gh |uv |yarn |pnpm )/.test(
    command,
  )
}

test('what development tools run unasked is not written unasked, though medium risks were approved in advance', async () => {
  const there = new Map([['/home/u/ws/src', ['b.ts']]])
  const disk: Disk = {
    real: (path) => path,
    linked: () => [],
    state: (path) =>
      there.has(path) ? { kind: 'folder', mode: 0o755 } : path.endsWith('/b.ts') ? { kind: 'file', mode: 0o644 } : undefined,
    names: (folder) => there.get(folder),
  }
  const gate = gateOf({ autonomy: 'supervised', approveAllMedium: true }, { disk })
  const verdictOf = async (path: string) => {
    const { verdict, rule } = await gate.judge(callOf('file_write', { path }))
    return `${verdict} ${rule}`
  }
  for (const path of [
    'Makefile',
    'sub/GNUmakefile',
    'package.json',
    'conftest.py',
    '.github/x.yml',
    'a/b/build.rs',
    '.x',
    'x.ts',
    'y/a.ts',
    'x.json',
    'x',
  ])
    expect([path, await verdictOf(path)]).toEqual([path, 'ask changes.not_harmless'])
  expect(await verdictOf('src/a.ts')).toBe('allow autonomy.approve_all_medium')
  const seed = gateOf({ autonomy: 'supervised', approveAllMedium: true, ask: 'before' })
  expect((await seed.judge(callOf('file_write', { path: 'Makefile' }))).verdict).toBe('allow')
})
