import { afterAll, describe, expect, test } from 'bun:test'
import { copyFileSync, linkSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Checkpoint } from './contract.ts'
import { createHome, draft, type Home, mustAppend, required } from './fixture.ts'
import { type Anchor, headLine } from './form/anchor.ts'
import { readKey } from './key.ts'
import { listReceipts, showReceipt } from './list-receipts.ts'
import { rotate } from './rotate.ts'
import { filesOf, segmentsOf } from './segments.ts'
import { verifyReceipts } from './verify/verify-chain.ts'

const homes: Home[] = []
afterAll(() => {
  for (const home of homes) home.remove()
})

const empty = () => {
  const home = createHome()
  homes.push(home)
  return home
}

function turnOver(home: Home, checkpoint: Checkpoint | undefined): Checkpoint {
  const rotated = rotate({ paths: home.paths, checkpoint, draft: draft(99, { tool: 'receipts.rotate' }) })
  if (!rotated.ok) throw new Error(rotated.failure.message)
  return required(rotated.checkpoint)
}

/** Receipts 1–3 and 4–6 in closed segments, 7 and 8 in the log. */
function segmented(): { readonly home: Home; readonly checkpoint: Checkpoint } {
  const home = empty()
  let checkpoint = turnOver(home, home.fill(3))
  for (const number of [5, 6]) checkpoint = mustAppend(home.append, [draft(number)], checkpoint)
  checkpoint = mustAppend(home.append, [draft(8)], turnOver(home, checkpoint))
  return { home, checkpoint }
}

const segment = ({ folder }: Home, number: number) => join(folder, `tool_receipts.${number}.log`)
const change = (path: string, how: (lines: string[]) => string[]) =>
  writeFileSync(path, how(readFileSync(path, 'utf8').split(/(?<=\n)/)).join(''))

function first({ paths }: Home, checkpoint: Anchor | undefined) {
  return verifyReceipts({ path: paths.log, headPath: paths.head, key: readKey(paths.key), checkpoint })
}

async function second({ paths }: Home, checkpoint: Anchor) {
  const script = join(import.meta.dir, '../../docs/verify-receipts.sh')
  const segments = segmentsOf(paths.log).flatMap((path) => ['--segment', path])
  const argv = ['sh', script, paths.log, paths.head, paths.key, ...segments, '--checkpoint', headLine(checkpoint)]
  const child = Bun.spawn(argv, { stdout: 'pipe', stderr: 'pipe' })
  const [text, code] = [await child.stdout.text(), await child.exited]
  return { ok: code === 0, record: code === 0 ? undefined : Number(/receipt ([0-9]+)/.exec(text)?.[1]) }
}

describe('both verifiers name the receipt when', () => {
  test.each<[string, (home: Home) => unknown, number]>([
    ['the first segment is missing', (home) => rmSync(segment(home, 1)), 1],
    ['a segment in the middle is missing', (home) => rmSync(segment(home, 2)), 4],
    ['the log that is written is missing', (home) => rmSync(home.paths.log), 7],
    [
      'two segments are swapped',
      (home) => {
        renameSync(segment(home, 1), join(home.folder, 'x'))
        renameSync(segment(home, 2), segment(home, 1))
        renameSync(join(home.folder, 'x'), segment(home, 2))
      },
      1,
    ],
    ['a segment is there twice', (home) => copyFileSync(segment(home, 1), segment(home, 3)), 7],
    ['a segment is cut at its end', (home) => change(segment(home, 1), (lines) => lines.slice(0, -1)), 3],
    ['a segment is cut at its beginning', (home) => change(segment(home, 2), (lines) => lines.slice(1)), 4],
    ['a segment is emptied', (home) => writeFileSync(segment(home, 1), ''), 1],
    ['a segment ends in half a line', (home) => change(segment(home, 1), (lines) => [lines.join('').slice(0, -9)]), 3],
    [
      'a receipt in a segment is edited',
      (home) => change(segment(home, 2), (lines) => lines.map((line, at) => (at === 1 ? line.replace('file_read', 'file_lost') : line))),
      5,
    ],
    ['the log is cut', (home) => change(home.paths.log, (lines) => lines.slice(0, -1)), 8],
  ])('%s', async (_, tamper, record) => {
    const { home, checkpoint } = segmented()
    tamper(home)
    const ours = first(home, checkpoint)
    expect([ours.ok, ours.problems[0]?.record]).toEqual([false, record])
    expect(await second(home, checkpoint)).toEqual({ ok: false, record })
  })
})

test('half a line at the end of a closed segment is called what it is', () => {
  const { home, checkpoint } = segmented()
  change(segment(home, 1), (lines) => [lines.join('').slice(0, -9)])
  expect(first(home, checkpoint).problems[0]).toMatchObject({ kind: 'form', message: expect.stringContaining('unfinished line') })
})

test('a log that was cut to half a line is not taken for a fresh one', () => {
  const { home, checkpoint } = segmented()
  change(home.paths.log, (lines) => [lines.join('').slice(0, 50)])
  const before = home.log()
  expect(home.append([draft(9)], checkpoint)).toMatchObject({ ok: false, failure: { code: 'altered' } })
  expect(home.log()).toBe(before)
})

test('a chain over three files is whole for both, and read as one', async () => {
  const { home, checkpoint } = segmented()
  expect(filesOf(home.paths.log)).toEqual([segment(home, 1), segment(home, 2), home.paths.log])
  expect(first(home, checkpoint)).toMatchObject({ ok: true, count: 8, warnings: [], completeness: 'proved by checkpoint' })
  expect(first(home, undefined)).toMatchObject({ ok: true, count: 8 })
  expect(await second(home, checkpoint)).toEqual({ ok: true, record: undefined })
  const listed = listReceipts({ path: home.paths.log, limit: 100 })
  expect(listed.ok && listed.receipts.map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
  expect(showReceipt(home.paths.log, '2')?.seq).toBe(2)
})

describe('a rotation', () => {
  test('of a log that was altered, or that is not there, changes nothing', () => {
    const { home, checkpoint } = segmented()
    change(home.paths.log, (lines) => lines.slice(0, -1))
    const before = readdirSync(home.folder)
    expect(rotate({ paths: home.paths, checkpoint, draft: draft(9) })).toMatchObject({ ok: false, failure: { code: 'altered' } })
    expect(readdirSync(home.folder)).toEqual(before)
    const none = empty()
    expect(rotate({ paths: none.paths, checkpoint: undefined, draft: draft(1) })).toMatchObject({ ok: true, checkpoint: undefined })
    expect(readdirSync(none.folder)).toEqual([])
  })

  test('that a crash cut off before its checkpoint was kept is taken up by the next append', () => {
    const home = empty()
    const before = home.fill(3)
    turnOver(home, before)
    const after = mustAppend(home.append, [draft(5)], before)
    expect(first(home, after)).toMatchObject({ ok: true, count: 6, warnings: [] })
  })

  test('that a crash cut off between the two names leaves one log, and the next one clears up', () => {
    const home = empty()
    const checkpoint = home.fill(3)
    linkSync(home.paths.log, segment(home, 1))
    expect(first(home, checkpoint)).toMatchObject({ ok: true, count: 3 })
    const after = turnOver(home, mustAppend(home.append, [draft(4)], checkpoint))
    expect(first(home, after)).toMatchObject({ ok: true, count: 5 })
    expect(segmentsOf(home.paths.log)).toEqual([segment(home, 1)])
  })

  test('does not let an older segment stand in for the log', () => {
    const { home, checkpoint } = segmented()
    copyFileSync(segment(home, 2), home.paths.log)
    expect(home.append([draft(9)], checkpoint)).toMatchObject({ ok: false, failure: { code: 'altered' } })
  })
})
