/** Provides tests with ways to tamper with receipts, and runs both verifiers on the result. */

import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { createHome, type Home, required } from './fixture.ts'
import { type Anchor, anchorLine, headLine, sealAnchor } from './form/anchor.ts'
import { lineOf, type Receipt, readReceipt, sealed } from './form/receipt.ts'
import { readKey } from './key.ts'
import { type Verification, verifyReceipts } from './verify/verify-chain.ts'

const script = () => join(import.meta.dir, '../../docs/verify-receipts.sh')

/** `another` creates a further home with five receipts. */
export type Scene = { readonly home: Home; readonly checkpoint?: Anchor; readonly against?: Anchor; readonly another: () => Home }
export type Verdict = { readonly ok: boolean; readonly record?: number; readonly text: string }
export type Tamper = {
  readonly name: string
  readonly do: (scene: Scene) => unknown
  /** The record that both verifiers must name; undefined when the log must still be valid. */
  readonly record: number | undefined
  readonly kind?: string
}

export function lines(home: Home): string[] {
  return home.log().split('\n').slice(0, -1)
}

export function rewrite(home: Home, change: (lines: string[]) => string[]): void {
  home.setLog(
    change(lines(home))
      .map((line) => `${line}\n`)
      .join(''),
  )
}

export function edit(home: Home, record: number, change: (line: string) => string): void {
  const before = required(lines(home)[record - 1])
  expect(change(before)).not.toBe(before)
  rewrite(home, (all) => all.map((line, at) => (at === record - 1 ? change(line) : line)))
}

/** Imitates an intruder who knows the format: recomputes every hash from a record on. With the key, every mac too. */
export function recompute(home: Home, from: number, { key, change }: { key?: Uint8Array; change: (receipt: Receipt) => Receipt }): void {
  let previous: string | undefined
  rewrite(home, (all) =>
    all.map((line, at) => {
      const receipt = required(readReceipt(line))
      if (at + 1 < from) return line
      const { receipt_hash: _, mac, ...body } = change({ ...receipt, previous_hash: previous ?? receipt.previous_hash })
      const made = sealed(body, key ?? new Uint8Array(32))
      previous = made.receipt_hash
      return lineOf(key ? made : { ...made, mac })
    }),
  )
}

export function anchorAt(home: Home, record: number): Anchor {
  const { log_id, receipt_hash } = required(readReceipt(required(lines(home)[record - 1])))
  return sealAnchor(home.key(), { logId: log_id, count: record, head: receipt_hash })
}

export function first(scene: Omit<Scene, 'another'>, checkpoint: Anchor | undefined): Verification {
  const { home, against } = scene
  return verifyReceipts({
    path: home.paths.log,
    headPath: home.paths.head,
    key: readKey(home.paths.key),
    checkpoint,
    ...(against ? { against } : {}),
  })
}

export async function second({ home, against }: Omit<Scene, 'another'>, checkpoint: Anchor | undefined): Promise<Verdict> {
  const witnesses = [...(checkpoint ? ['--checkpoint', headLine(checkpoint)] : []), ...(against ? ['--against', anchorLine(against)] : [])]
  const child = Bun.spawn(['sh', script(), home.paths.log, home.paths.head, home.paths.key, ...witnesses], {
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [text, trouble, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  expect(trouble).toBe('')
  const record = /receipt ([0-9]+)/.exec(text)?.[1]
  return { ok: code === 0, ...(code === 0 || record === undefined ? {} : { record: Number(record) }), text }
}

/**
 * Creates one test per tamper: both verifiers must name the expected record. The second one starts many programs, so it sees
 * each tamper in the deep tier alone, and one of each kind in the fast one.
 */
export function testBoth(
  tampers: readonly Tamper[],
  { another, isDeep }: { readonly another: () => Home; readonly isDeep: boolean },
): void {
  const ofEachKind = new Set(new Map(tampers.toReversed().map((tamper) => [tamper.kind, tamper])).values())
  for (const tamper of tampers) {
    test.concurrent(`both verifiers, ${tamper.name}: ${tamper.record === undefined ? 'valid' : `receipt ${tamper.record}`}`, async () => {
      const home = another()
      const scene = { home, checkpoint: home.fill(0), another }
      const { checkpoint, ...changed }: Scene = { ...scene, ...Object(tamper.do(scene)) }
      const ours = first(changed, checkpoint)
      expect({ ok: ours.ok, record: ours.problems[0]?.record }).toEqual({ ok: tamper.record === undefined, record: tamper.record })
      if (tamper.kind) expect(String(ours.problems[0]?.kind)).toBe(tamper.kind)
      if (!isDeep && !ofEachKind.has(tamper)) return
      const theirs = await second(changed, checkpoint)
      expect({ ok: theirs.ok, record: theirs.record }, theirs.text).toEqual({ ok: tamper.record === undefined, record: tamper.record })
    })
  }
}

/** Creates homes with five receipts or none, and removes all of them. */
export function homes(): { another: () => Home; empty: () => Home; removeAll: () => void } {
  const made: Home[] = []
  const empty = () => {
    const home = createHome()
    made.push(home)
    return home
  }
  const another = () => {
    const home = empty()
    home.fill(5)
    return home
  }
  const removeAll = () => {
    for (const home of made) home.remove()
  }
  return { another, empty, removeAll }
}
