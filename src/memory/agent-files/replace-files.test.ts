import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { type Disk, realDisk } from './disk.ts'
import { type AgentFolderFixture, createAgentFolderFixture, Ended, endingDisk, historyOf, line, never, upTo } from './fixture.ts'

let den: AgentFolderFixture
beforeEach(() => {
  den = createAgentFolderFixture()
  den.write('summary.md', 'older things\n')
  den.fill(7)
})
afterEach(() => den.remove())

const old = { summary: 'older things\n', history: historyOf(1, 7) }
const fresh = { summary: 'up to a5\n', history: historyOf(6, 2) }
const both = () => ({ summary: den.read('summary.md'), history: den.read('history.jsonl') })
const leftovers = () => readdirSync(den.folder).filter((name) => /next$|compaction\.json$/.test(name))

async function compactUntil(last: number): Promise<number> {
  const disk = endingDisk(last)
  await den
    .open({ disk })
    .compact(upTo, never())
    .catch((error: unknown) => {
      if (!(error instanceof Ended)) throw error
    })
  return disk.steps.count
}

async function stepsOfOne(): Promise<number> {
  const steps = await compactUntil(Number.MAX_SAFE_INTEGER)
  expect(both()).toEqual(fresh)
  return steps
}

function reset(): void {
  for (const name of readdirSync(den.folder)) rmSync(join(den.folder, name))
  den.write('summary.md', old.summary)
  den.write('history.jsonl', old.history)
}

/** `new` means: the record was added once, and every removed line is in the archive once. */
function expectOldOrNew(): 'old' | 'new' {
  expect([old, fresh]).toContainEqual(both())
  expect(leftovers()).toEqual([])
  const isNew = den.read('history.jsonl') === fresh.history
  expect(den.read('history.archive.jsonl')).toBe(isNew ? historyOf(1, 5) : '')
  const records = den.read('compactions.jsonl').trim().split('\n')
  expect(records.filter((record) => record.startsWith('{"v":1') && record.endsWith('}'))).toHaveLength(isNew ? 1 : 0)
  return isNew ? 'new' : 'old'
}

test('an end before any step of a compaction leaves summary and history both old or both new', async () => {
  const steps = await stepsOfOne()
  expect(steps).toBeGreaterThan(20)
  const outcomes: string[] = []
  for (let last = 0; last < steps; last += 1) {
    reset()
    await compactUntil(last)
    den.open()
    outcomes.push(expectOldOrNew())
  }
  expect(outcomes).toEqual(outcomes.toSorted().toReversed())
  expect(new Set(outcomes).size).toBe(2)
}, 120_000)

test('an end before any step of putting that right, too', async () => {
  const steps = await stepsOfOne()
  for (let last = 0; last < steps; last += 1) {
    for (let later = 0; later < steps - last; later += 1) {
      reset()
      await compactUntil(last)
      if (leftovers().length === 0) break
      try {
        den.open({ disk: endingDisk(later) })
      } catch (error) {
        expect(error).toBeInstanceOf(Ended)
      }
      den.open()
      expectOldOrNew()
    }
  }
}, 120_000)

test('what a process that dies by kill -9 before any step leaves is old or new', async () => {
  const steps = await stepsOfOne()
  const script = `
    import { endingDisk, never, upTo } from ${JSON.stringify(join(import.meta.dir, 'fixture.ts'))}
    import { openRecall } from ${JSON.stringify(join(import.meta.dir, 'agent-memory.ts'))}
    const [folder, last] = process.argv.slice(-2)
    const disk = endingDisk(Number(last), () => process.kill(process.pid, 'SIGKILL'))
    const { recall } = openRecall({ folder, now: () => 0, log: () => {}, max: 10, keep: 4, disk })
    await recall.compact(upTo, never())`
  for (let last = 0; last < steps; last += 1) {
    reset()
    const child = Bun.spawnSync([process.execPath, '-e', script, den.folder, String(last)])
    expect([child.signalCode, child.stderr.toString()]).toEqual(['SIGKILL', ''])
    den.open()
    expectOldOrNew()
  }
}, 120_000)

describe('what a crash left', () => {
  /** Crashes directly after the marker's rename. */
  async function committed(): Promise<void> {
    for (let last = 0; !existsSync(join(den.folder, 'compaction.json')); last += 1) {
      reset()
      await compactUntil(last)
    }
    expect(both()).toEqual(old)
  }

  test('is dropped when somebody has edited the summary since: the history is whole, so nothing is lost', async () => {
    await committed()
    den.write('summary.md', 'by hand\n')
    den.open()
    expect([both(), leftovers()]).toEqual([{ summary: 'by hand\n', history: old.history }, []])
    expect(den.logged.join()).toContain('"compaction":"discarded"')
  })

  test('is dropped when somebody has edited the history since', async () => {
    await committed()
    const edited = old.history.replace('q1', 'Q1')
    den.write('history.jsonl', edited)
    den.open()
    expect([both(), leftovers()]).toEqual([{ summary: old.summary, history: edited }, []])
  })

  test('is completed with what another program appended meanwhile', async () => {
    await committed()
    writeFileSync(join(den.folder, 'history.jsonl'), historyOf(8, 1), { flag: 'a' })
    den.open()
    expect(both()).toEqual({ summary: fresh.summary, history: historyOf(6, 3) })
    expect(den.logged.join()).toContain('"compaction":"completed"')
  })

  test('keeps a summary that was edited after the history was cut', async () => {
    const steps = await stepsOfOne()
    for (let last = steps - 1; ; last -= 1) {
      reset()
      await compactUntil(last)
      if (existsSync(join(den.folder, 'history.jsonl.next'))) break
      if (!existsSync(join(den.folder, 'compaction.json'))) continue
      den.write('summary.md', 'by hand\n')
      den.open()
      expect([both(), leftovers()]).toEqual([{ summary: 'by hand\n', history: fresh.history }, []])
    }
  })

  test('is never cut twice, even where the kept lines read as those that went', async () => {
    const same = `${line('user', 'ping')}\n${line('assistant', 'a1')}\n`
    const repeated = { summary: 'up to a1\n', history: same.repeat(4) }
    for (let last = 0; ; last += 1) {
      reset()
      den.write('history.jsonl', same.repeat(6))
      const disk = endingDisk(last)
      const done = await den
        .open({ disk, keep: 8 })
        .compact(upTo, never())
        .catch(() => undefined)
      den.open()
      expect([{ summary: old.summary, history: same.repeat(6) }, repeated]).toContainEqual(both())
      if (done) break
    }
  })

  test('by the small router is completed before anything is added, at every step, and once', () => {
    const next = JSON.stringify(['theirs', historyOf(6, 2)])
    for (let last = 0; ; last += 1) {
      reset()
      den.write('compaction.planck', next)
      const disk = endingDisk(last)
      try {
        den.open({ disk })
      } catch (error) {
        expect(error).toBeInstanceOf(Ended)
      }
      den.open().remember('q8', 'a8')
      den.open()
      expect(both()).toEqual({ summary: 'theirs', history: historyOf(6, 3) })
      if (disk.steps.count <= last) break
    }
    den.write('compaction.planck', 'rubbish')
    den.open()
    expect(both()).toEqual({ summary: 'theirs', history: historyOf(6, 3) })
  })

  test('that is no marker of ours is taken away, and nothing else', () => {
    den.write('compaction.json', '{"record":{}}')
    den.write('history.jsonl.next', 'x')
    den.open()
    expect([both(), leftovers()]).toEqual([old, []])
  })
})

test('what another program appends at the last moment is carried over', async () => {
  const rename = (from: string, to: string) => {
    if (to.endsWith('history.jsonl')) writeFileSync(to, historyOf(8, 1), { flag: 'a' })
    realDisk.rename(from, to)
  }
  await den.open({ disk: { ...realDisk, rename } }).compact(upTo, never())
  expect(both()).toEqual({ summary: fresh.summary, history: historyOf(6, 3) })
})

test('no file gets its name before its bytes are on disk, and each name is on disk before the next step', async () => {
  const trace: string[] = []
  const disk: Disk = {
    ...realDisk,
    sync: () => void trace.push('sync'),
    rename: (from, to) => {
      trace.push(`rename ${basename(to)}`)
      realDisk.rename(from, to)
    },
    syncFolder: () => void trace.push('folder'),
    remove: (path) => {
      trace.push(`remove ${basename(path)}`)
      realDisk.remove(path)
    },
  }
  await den.open({ disk }).compact(upTo, never())
  const [rest, archive, entered] = ['sync', 'sync', 'sync']
  expect(trace).toEqual([
    ...[rest, 'sync', 'rename compaction.json', 'folder'],
    ...[archive, 'sync', 'rename summary.md', 'folder'],
    ...['sync', 'rename history.jsonl', 'folder'],
    ...[entered, 'remove compaction.json', 'folder'],
  ])
})

test('a full disk before the commit point changes nothing, and is said', async () => {
  const full = () => {
    throw Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' })
  }
  const recall = den.open({ disk: { ...realDisk, write: full } })
  expect(await recall.compact(upTo, never())).toMatchObject({ state: 'failed', message: expect.stringContaining('ENOSPC') })
  den.open()
  expect([both(), leftovers()]).toEqual([old, []])
})
