import { describe, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { diffTexts, hunkHeader, type TextDiff } from './hunks.ts'

/** Applies hunks strictly, as a careful `patch` would. */
function patched(before: string, { hunks }: TextDiff): string {
  const lines = before === '' ? [] : before.split(/(?<=\n)/)
  const out: string[] = []
  let at = 0
  for (const hunk of hunks) {
    const from = hunk.count === 0 ? hunk.start : hunk.start - 1
    out.push(...lines.slice(at, from))
    at = from
    expect(hunk.newCount === 0 ? hunk.newStart : hunk.newStart - 1).toBe(out.length)
    for (const { mark, text, unended } of hunk.lines) {
      const line = unended ? text : `${text}\n`
      if (mark !== '+') expect(lines[at++]).toBe(line)
      if (mark !== '-') out.push(line)
    }
    expect(at - from).toBe(hunk.count)
  }
  return [...out, ...lines.slice(at)].join('')
}

const few = fc.array(fc.constantFrom('a', 'b', 'c', '', 'd\r'), { maxLength: 40 })
const text = fc.tuple(few, fc.boolean()).map(([lines, ended]) => lines.join('\n') + (ended && lines.length > 0 ? '\n' : ''))

describe('a diff of two texts', () => {
  test('leads from the one to the other, and has the fewest lines', () => {
    fc.assert(
      fc.property(text, text, (before, after) => {
        const diff = diffTexts(before, after)
        expect(patched(before, diff)).toBe(after)
        expect(diff.added + diff.removed).toBe(fewest(before, after))
      }),
      { numRuns: 2_000 },
    )
  })

  test('of equal texts is empty', () => expect(diffTexts('a\nb', 'a\nb')).toEqual({ hunks: [], added: 0, removed: 0 }))

  test('sees a missing newline at the end', () => {
    const { hunks } = diffTexts('a\nb', 'a\nb\n')
    expect(hunks[0]?.lines).toEqual([
      { mark: ' ', text: 'a' },
      { mark: '-', text: 'b', unended: true },
      { mark: '+', text: 'b' },
    ])
  })

  test('numbers its hunks as diff does', () => {
    const lines = Array.from({ length: 40 }, (_, at) => `line ${at}`)
    const changed = lines.map((line, at) => (at === 3 || at === 30 ? 'new' : line))
    const headers = diffTexts(`${lines.join('\n')}\n`, `${changed.join('\n')}\n`).hunks.map(hunkHeader)
    expect(headers).toEqual(['@@ -1,7 +1,7 @@', '@@ -28,7 +28,7 @@'])
    expect(diffTexts('', 'x\n').hunks.map(hunkHeader)).toEqual(['@@ -0,0 +1 @@'])
    expect(diffTexts('x\ny\n', '').hunks.map(hunkHeader)).toEqual(['@@ -1,2 +0,0 @@'])
  })

  test('is the one that GNU diff prints for a page of prose', () => {
    const folder = mkdtempSync(join(tmpdir(), 'braidclaw-diff-'))
    try {
      const before = readFileSync(join(import.meta.dir, '../../../docs/security.md'), 'utf8')
      const after = before.replace('\n\n', '\nadded\n\n').replaceAll('sandbox', 'box')
      writeFileSync(join(folder, 'a'), before)
      writeFileSync(join(folder, 'b'), after)
      const gnu = Bun.spawnSync(['diff', '-u', '--minimal', 'a', 'b'], { cwd: folder }).stdout.toString()
      const ours = diffTexts(before, after)
      const sizes = gnu.split('\n').filter((line) => /^[-+](?!--|\+\+)/.test(line)).length
      expect(ours.added + ours.removed).toBe(sizes)
      expect(ours.hunks.map(hunkHeader)).toEqual(gnu.split('\n').filter((line) => line.startsWith('@@')))
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})

describe('a diff of 10,000 lines', () => {
  const numbered = Array.from({ length: 10_000 }, (_, at) => `line ${at}`)
  const random = seeded(7)
  const coin = () => Array.from({ length: 10_000 }, () => (random() < 0.5 ? 'heads' : 'tails'))
  const pairs: readonly (readonly [string, readonly string[], readonly string[]])[] = [
    ['with 500 edits', numbered, numbered.map((line, at) => (at % 20 === 0 ? `${line} changed` : line))],
    ['rewritten', numbered, numbered.map((line) => `other ${line}`)],
    ['reversed', numbered, numbered.toReversed()],
    ['of two words at random', coin(), coin()],
    ['of shuffled lines', numbered, shuffled(numbered, random)],
    ['of one repeated line against another order', numbered.map((_, at) => String(at % 7)), numbered.map((_, at) => String(at % 11))],
  ]

  test.each(pairs)('%s is correct and quick', (_name, before, after) => {
    const [from, to] = [`${before.join('\n')}\n`, `${after.join('\n')}\n`]
    diffTexts(from, to)
    const start = process.cpuUsage().user
    const diff = diffTexts(from, to)
    const ms = (process.cpuUsage().user - start) / 1000
    expect(patched(from, diff)).toBe(to)
    expect(ms).toBeLessThan(200)
  })
})

function fewest(before: string, after: string): number {
  const [a, b] = [before, after].map((each) => (each === '' ? [] : each.split(/(?<=\n)/)))
  let row = new Array((b?.length ?? 0) + 1).fill(0).map((_, at) => at)
  for (const [i, line] of (a ?? []).entries()) {
    const next = [i + 1]
    for (const [j, other] of (b ?? []).entries()) next.push(line === other ? (row[j] ?? 0) : 1 + Math.min(row[j + 1] ?? 0, next[j] ?? 0))
    row = next
  }
  return row.at(-1) ?? 0
}

function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 48_271) % 2_147_483_647
    return state / 2_147_483_647
  }
}

function shuffled(lines: readonly string[], random: () => number): readonly string[] {
  return lines
    .map((line) => [random(), line] as const)
    .sort(([a], [b]) => a - b)
    .map(([, line]) => line)
}
