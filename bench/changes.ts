/**
 * What it costs to apply and to undo a change set, beside the floor: a link and a rename for each file, with nothing checked, journalled or
 * flushed. `--json` prints one object a line, `--in FOLDER` uses another file system, `--large` adds 30,000 changes.
 */

import { linkSync, mkdirSync, renameSync, rmSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { sha256 } from '../src/kit/sha256.ts'
import type { Change, EntryState } from '../src/runtime/changes.ts'
import { about, createFixture, createView, type Fixture } from '../src/workspace/changes/fixture.ts'
import { openWorkspace } from '../src/workspace/workspace.ts'

const KINDS = ['changed', 'added', 'deleted'] as const
type Kind = (typeof KINDS)[number]

const PER_FOLDER = 100
const before: EntryState = { kind: 'file', mode: 0o644, size: 3, sha256: sha256('old') }
const after: EntryState = { kind: 'file', mode: 0o644, size: 4, sha256: sha256('new!') }

const nameOf = (number: number) => `d${Math.floor(number / PER_FOLDER)}/f${number}`
const ms = (since: number) => Math.round((performance.now() - since) * 10) / 10

function fill(root: string, count: number, content?: string): void {
  for (let number = 0; number < count; number++) {
    if (number % PER_FOLDER === 0) mkdirSync(join(root, `d${number / PER_FOLDER}`), { recursive: true })
    if (content !== undefined) writeFileSync(join(root, nameOf(number)), content)
  }
}

function changesOf(kind: Kind, count: number): Change[] {
  const sides = { ...(kind !== 'added' && { before }), ...(kind !== 'deleted' && { after }) }
  return Array.from({ length: count }, (_, number) => ({ path: nameOf(number), ...sides }))
}

function floor(base: string, kind: Kind, count: number): number {
  const [work, fresh, kept] = ['work', 'fresh', 'kept'].map((name) => join(base, name))
  if (work === undefined || fresh === undefined || kept === undefined) throw new Error('three folders')
  fill(work, count, kind === 'added' ? undefined : 'old')
  fill(fresh, count, 'new!')
  fill(kept, count)
  const began = performance.now()
  for (let number = 0; number < count; number++) {
    const name = nameOf(number)
    if (kind !== 'added') linkSync(join(work, name), join(kept, name))
    if (kind === 'deleted') unlinkSync(join(work, name))
    else renameSync(join(fresh, name), join(work, name))
  }
  const took = ms(began)
  for (const folder of [work, fresh, kept]) rmSync(folder, { recursive: true })
  return took
}

/** The longest time in which nothing else of the process could run, in milliseconds. */
function watchLoop(): { stop(): number } {
  const seen = { last: performance.now(), longest: 0 }
  const look = () => {
    const now = performance.now()
    seen.longest = Math.max(seen.longest, now - seen.last)
    seen.last = now
  }
  const timer = setInterval(look, 1)
  return {
    stop() {
      look()
      clearInterval(timer)
      return Math.round(seen.longest * 10) / 10
    },
  }
}

async function measure(fixture: Fixture, kind: Kind, count: number) {
  const { root, store, options, base } = fixture
  fill(root, count, kind === 'added' ? undefined : 'old')
  const view = createView(join(options.folder, 'tx-1'), root)
  if (kind !== 'deleted') fill(join(view, 'up'), count, 'new!')
  Bun.spawnSync(['sync', '-f', base])
  const watch = watchLoop()
  const processor = process.cpuUsage()
  const began = performance.now()
  const applied = await store.apply({ id: 'tx-1', changes: changesOf(kind, count), about })
  const apply = ms(began)
  const { user, system } = process.cpuUsage(processor)
  const blocked = watch.stop()
  const undoing = performance.now()
  const undone = await store.undo('tx-1')
  if (!applied.ok || !undone.ok) throw new Error(`the change set was refused: ${JSON.stringify([applied, undone])}`)
  const undo = ms(undoing)
  const least = floor(base, kind, count)
  return {
    kind,
    count,
    apply_ms: apply,
    cpu_ms: Math.round((user + system) / 1000),
    blocked_ms: blocked,
    undo_ms: undo,
    floor_ms: least,
    ratio: Math.round((apply / least) * 10) / 10,
  }
}

/** What a write by a file tool costs more, because its original is kept: the quick quarter of 200. */
function keepingMs({ root, store }: Fixture): number {
  const check = () => ({ ok: true }) as const
  const plain = openWorkspace({ root, check })
  const keeping = openWorkspace({ root, check, originals: store.originals({ conversation: 'c', run: () => 'r' }) })
  const times: { [name: string]: number[] } = { plain: [], keeping: [] }
  for (let round = 0; round < 200; round++)
    for (const [name, files] of Object.entries({ plain, keeping })) {
      const began = performance.now()
      files.writeText('file', `${round}`)
      times[name]?.push(performance.now() - began)
    }
  const quick = (name: string) => times[name]?.sort((a, b) => a - b)[50] ?? 0
  return Math.round((quick('keeping') - quick('plain')) * 1000) / 1000
}

const flag = (name: string) => process.argv.includes(`--${name}`)
const storeIn = flag('in') ? process.argv[process.argv.indexOf('--in') + 1] : undefined
for (const count of [10, 5_000, ...(flag('large') ? [30_000] : [])])
  for (const kind of KINDS) {
    await using fixture = await createFixture({ storeIn })
    const result = await measure(fixture, kind, count)
    const { apply_ms, cpu_ms, blocked_ms, undo_ms, floor_ms, ratio } = result
    if (flag('json')) console.log(JSON.stringify(result))
    else
      console.log(
        `${String(count).padStart(6)} ${kind.padEnd(8)} apply ${apply_ms} ms (processor ${cpu_ms}, longest block ${blocked_ms}), undo ${undo_ms} ms; floor ${floor_ms} ms, ratio ${ratio}`,
      )
  }
await using fixture = await createFixture({ storeIn })
const keeping = keepingMs(fixture)
console.log(flag('json') ? JSON.stringify({ keeping_ms: keeping }) : `keeping the original of a write: ${keeping} ms more`)
