/** Two verifiers, one corpus of tampered logs: both must name the same record, and it must be the right one. */

import { afterAll, expect, test } from 'bun:test'
import { chmodSync, copyFileSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Anchor, anchorLine, headLine, sealAnchor } from './anchor.ts'
import { createHome, draft, type Home, mustAppend, required } from './fixture.ts'
import { readReceipt } from './grammar.ts'
import { readKey } from './key.ts'
import { lineOf, type Receipt, sealed } from './receipt.ts'
import { type Verification, verifyReceipts } from './verify.ts'

const script = join(import.meta.dir, '../../docs/verify-receipts.sh')
const homes: Home[] = []
afterAll(() => {
  for (const home of homes) home.remove()
})

type Scene = { readonly home: Home; readonly checkpoint?: Anchor; readonly against?: Anchor }
type Verdict = { readonly ok: boolean; readonly record?: number; readonly text: string }
type Tamper = {
  readonly name: string
  readonly do: (scene: Scene) => unknown
  /** The record both must name; undefined when the log is still to be called valid. */
  readonly record: number | undefined
  readonly kind?: string
}

function lines(home: Home): string[] {
  return home.log().split('\n').slice(0, -1)
}

function rewrite(home: Home, change: (lines: string[]) => string[]): void {
  home.setLog(
    change(lines(home))
      .map((line) => `${line}\n`)
      .join(''),
  )
}

function edit(home: Home, record: number, change: (line: string) => string): void {
  const before = required(lines(home)[record - 1])
  expect(change(before)).not.toBe(before)
  rewrite(home, (all) => all.map((line, at) => (at === record - 1 ? change(line) : line)))
}

/** What an intruder does who knows the format: recompute every hash from a record on. With the key, every mac too. */
function recompute(home: Home, from: number, { key, change }: { key?: Uint8Array; change: (receipt: Receipt) => Receipt }): void {
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

const everything: readonly Tamper[] = [
  { name: 'nothing', do: () => {}, record: undefined },
  {
    name: 'the status of receipt 2 edited',
    do: ({ home }) => edit(home, 2, (line) => line.replace('"allowed"', '"denied"')),
    record: 2,
    kind: 'hash',
  },
  {
    name: 'one hash digit of receipt 1 edited',
    do: ({ home }) => edit(home, 1, (line) => line.replace(/("args_hash":")(.)/, (_, a, b) => a + (b === '0' ? '1' : '0'))),
    record: 1,
    kind: 'hash',
  },
  { name: 'the last receipt edited', do: ({ home }) => edit(home, 5, (line) => line.replace('"low"', '"high"')), record: 5, kind: 'hash' },
  {
    name: 'receipts 2 and 3 swapped',
    do: ({ home }) => rewrite(home, ([a = '', b = '', c = '', ...rest]) => [a, c, b, ...rest]),
    record: 2,
    kind: 'order',
  },
  { name: 'receipt 3 deleted from the middle', do: ({ home }) => rewrite(home, (all) => all.toSpliced(2, 1)), record: 3, kind: 'order' },
  { name: 'the first receipt deleted', do: ({ home }) => rewrite(home, (all) => all.slice(1)), record: 1, kind: 'order' },
  { name: 'the tail cut after receipt 3', do: ({ home }) => rewrite(home, (all) => all.slice(0, 3)), record: 4, kind: 'cut' },
  {
    name: 'the tail cut and the head file set back by someone without the key',
    record: 4,
    kind: 'cut',
    do: ({ home }) => {
      rewrite(home, (all) => all.slice(0, 3))
      const { log_id, receipt_hash } = required(readReceipt(required(lines(home)[2])))
      writeFileSync(home.paths.head, `${headLine(sealAnchor(new Uint8Array(32), { logId: log_id, count: 3, head: receipt_hash }))}\n`)
    },
  },
  { name: 'everything cut', do: ({ home }) => home.setLog(''), record: 1, kind: 'cut' },
  { name: 'the log removed', do: ({ home }) => rmSync(home.paths.log), record: 1, kind: 'cut' },
  {
    name: 'receipt 2 written twice',
    do: ({ home }) => rewrite(home, (all) => all.toSpliced(1, 0, required(all[1]))),
    record: 3,
    kind: 'order',
  },
  {
    name: 'the last receipt written twice',
    do: ({ home }) => rewrite(home, (all) => [...all, required(all[4])]),
    record: 6,
    kind: 'order',
  },
  { name: 'the file cut within receipt 5', do: ({ home }) => home.setLog(home.log().slice(0, -40)), record: 5, kind: 'cut' },
  { name: 'the last newline cut off', do: ({ home }) => home.setLog(home.log().slice(0, -1)), record: 5, kind: 'cut' },
  {
    name: 'rewritten from 3 on, every hash recomputed without the key',
    do: ({ home }) => recompute(home, 3, { change: (receipt) => ({ ...receipt, tool: 'time' }) }),
    record: 3,
    kind: 'mac',
  },
  {
    name: 'rewritten from 3 on by someone who has the key',
    do: ({ home }) => recompute(home, 3, { key: home.key(), change: (receipt) => ({ ...receipt, tool: 'time' }) }),
    record: 5,
    kind: 'rewritten',
  },
  {
    name: 'the log of another home with its key',
    record: 1,
    kind: 'seal',
    do: ({ home, checkpoint }) => {
      const other = another()
      copyFileSync(other.paths.log, home.paths.log)
      copyFileSync(other.paths.key, home.paths.key)
      return { checkpoint: { ...checkpoint, count: 1 } }
    },
  },
  { name: 'the log of another home', do: ({ home }) => copyFileSync(another().paths.log, home.paths.log), record: 1, kind: 'mac' },
  {
    name: 'a new log begun with the old key',
    record: 1,
    kind: 'log',
    do: ({ home }) => {
      rmSync(home.paths.log)
      rmSync(home.paths.head)
      createHome(home.folder).fill(5)
    },
  },
  { name: 'a receipt of another log in the middle', do: ({ home }) => edit(home, 4, () => required(lines(another())[3])), record: 4 },
  { name: 'CRLF line ends', do: ({ home }) => home.setLog(home.log().replaceAll('\n', '\r\n')), record: 1, kind: 'form' },
  { name: 'a carriage return after receipt 4', do: ({ home }) => edit(home, 4, (line) => `${line}\r`), record: 4, kind: 'form' },
  {
    name: 'keys in another order',
    do: ({ home }) => edit(home, 2, (line) => JSON.stringify(Object.fromEntries(Object.entries(JSON.parse(line)).reverse()))),
    record: 2,
    kind: 'form',
  },
  { name: 'seq as 3.0', do: ({ home }) => edit(home, 3, (line) => line.replace('"seq":3', '"seq":3.0')), record: 3, kind: 'form' },
  { name: 'seq as 3e0', do: ({ home }) => edit(home, 3, (line) => line.replace('"seq":3', '"seq":3e0')), record: 3, kind: 'form' },
  { name: 'seq as a string', do: ({ home }) => edit(home, 3, (line) => line.replace('"seq":3', '"seq":"3"')), record: 3, kind: 'form' },
  { name: 'a blank inside', do: ({ home }) => edit(home, 3, (line) => line.replace('":', '": ')), record: 3, kind: 'form' },
  { name: 'a blank behind', do: ({ home }) => edit(home, 3, (line) => `${line} `), record: 3, kind: 'form' },
  { name: 'an empty line', do: ({ home }) => rewrite(home, (all) => all.toSpliced(2, 0, '')), record: 3, kind: 'form' },
  {
    name: 'a letter as an escape',
    do: ({ home }) => edit(home, 2, (line) => line.replace('file_read', 'file\\u005fread')),
    record: 2,
    kind: 'form',
  },
  { name: 'a member added', do: ({ home }) => edit(home, 2, (line) => line.replace('"v":1', '"v":1,"x":1')), record: 2, kind: 'form' },
  { name: 'a member doubled', do: ({ home }) => edit(home, 2, (line) => line.replace('"v":1', '"v":1,"v":1')), record: 2, kind: 'form' },
  {
    name: 'an error slipped in',
    do: ({ home }) => edit(home, 2, (line) => line.replace('"id":', '"error":"x","id":')),
    record: 2,
    kind: 'hash',
  },
  { name: 'the mac stripped', do: ({ home }) => edit(home, 4, (line) => line.replace(/"mac":"[0-9a-f]*",/, '')), record: 4, kind: 'form' },
  {
    name: 'an empty mac',
    do: ({ home }) => edit(home, 4, (line) => line.replace(/"mac":"[0-9a-f]*"/, '"mac":""')),
    record: 4,
    kind: 'form',
  },
  {
    name: 'a mac of zeros',
    do: ({ home }) => edit(home, 4, (line) => line.replace(/"mac":"[0-9a-f]*"/, `"mac":"${'0'.repeat(64)}"`)),
    record: 4,
    kind: 'mac',
  },
  {
    name: 'hashes in capitals',
    do: ({ home }) => edit(home, 4, (line) => line.replace(/"mac":"([0-9a-f]*)"/, (all) => all.toUpperCase().replace('MAC', 'mac'))),
    record: 4,
    kind: 'form',
  },
  { name: 'a NUL byte', do: ({ home }) => edit(home, 2, (line) => line.replace('file_read', 'file\0read')), record: 2, kind: 'form' },
  { name: 'bytes that are no UTF-8', do: ({ home }) => home.setLog(Buffer.from(home.log(), 'utf8').fill(0xff, 900, 902)), record: 2 },
  { name: 'a byte order mark', do: ({ home }) => home.setLog(`\ufeff${home.log()}`), record: 1, kind: 'form' },
  { name: 'garbage for a log', do: ({ home }) => home.setLog('not a log\n'), record: 1, kind: 'form' },
  {
    name: 'a line of two megabytes',
    do: ({ home }) => rewrite(home, (all) => [...all.slice(0, 2), `{${' '.repeat(2 << 20)}}`, ...all.slice(2)]),
    record: 3,
    kind: 'form',
  },
  { name: 'the key removed', do: ({ home }) => rmSync(home.paths.key), record: 1, kind: 'key' },
  { name: 'the key readable by others', do: ({ home }) => chmodSync(home.paths.key, 0o644), record: 1, kind: 'key' },
  { name: 'another key', do: ({ home }) => writeFileSync(home.paths.key, `${'ab'.repeat(32)}\n`), record: 1, kind: 'mac' },
  { name: 'a key that is none', do: ({ home }) => writeFileSync(home.paths.key, 'secret\n'), record: 1, kind: 'key' },
  {
    name: 'the log replaced by a link',
    record: 1,
    kind: 'unreadable',
    do: ({ home }) => {
      copyFileSync(home.paths.log, join(home.folder, 'real'))
      rmSync(home.paths.log)
      symlinkSync(join(home.folder, 'real'), home.paths.log)
    },
  },
  {
    name: 'the log replaced by a folder',
    record: 1,
    kind: 'unreadable',
    do: ({ home }) => {
      rmSync(home.paths.log)
      mkdirSync(home.paths.log)
    },
  },
  { name: 'the head file removed', do: ({ home }) => rmSync(home.paths.head), record: 5, kind: 'head' },
  { name: 'the head file damaged', do: ({ home }) => writeFileSync(home.paths.head, 'bc1:nonsense\n'), record: 5, kind: 'head' },
  {
    name: 'a head file with a second line',
    do: ({ home }) => writeFileSync(home.paths.head, `x\n${readFileSync(home.paths.head, 'utf8')}`),
    record: 5,
    kind: 'head',
  },
  {
    name: 'the count in the head file edited',
    do: ({ home }) => writeFileSync(home.paths.head, readFileSync(home.paths.head, 'utf8').replace(':5:', ':4:')),
    record: 4,
    kind: 'seal',
  },
  {
    name: 'log and head file rolled back together, checkpoint not',
    record: 4,
    kind: 'cut',
    do: ({ home }) => {
      rmSync(home.paths.head)
      rewrite(home, (all) => all.slice(0, 3))
      writeFileSync(home.paths.head, `${headLine(anchorAt(home, 3))}\n`)
    },
  },
  {
    name: 'log, head file and checkpoint rolled back together',
    record: undefined,
    do: ({ home }) => {
      rewrite(home, (all) => all.slice(0, 3))
      writeFileSync(home.paths.head, `${headLine(anchorAt(home, 3))}\n`)
      return { checkpoint: anchorAt(home, 3) }
    },
  },
  {
    name: 'all three rolled back, with an anchor from before',
    record: 4,
    kind: 'cut',
    do: ({ home, checkpoint }) => {
      rewrite(home, (all) => all.slice(0, 3))
      writeFileSync(home.paths.head, `${headLine(anchorAt(home, 3))}\n`)
      return { checkpoint: anchorAt(home, 3), against: checkpoint }
    },
  },
  {
    name: 'history replaced with key and checkpoint, with an anchor from before',
    record: 4,
    kind: 'rewritten',
    do: ({ home }) => {
      const against = anchorAt(home, 4)
      recompute(home, 2, { key: home.key(), change: (receipt) => ({ ...receipt, tool: 'time' }) })
      writeFileSync(home.paths.head, `${headLine(anchorAt(home, 5))}\n`)
      return { checkpoint: anchorAt(home, 5), against }
    },
  },
  { name: 'a forged anchor', do: ({ checkpoint }) => ({ against: { ...checkpoint, mac: '0'.repeat(64) } }), record: 5, kind: 'seal' },
  {
    name: 'an anchor of another log',
    do: ({ home, checkpoint }) => ({ against: sealAnchor(home.key(), { ...required(checkpoint), logId: 'ab'.repeat(16) }) }),
    record: 1,
    kind: 'log',
  },
  { name: 'a torn line behind the last receipt', do: ({ home }) => home.setLog(`${home.log()}{"args_hash":"12`), record: undefined },
  { name: 'the checkpoint lost', do: () => ({ checkpoint: undefined }), record: undefined },
  {
    name: 'the tail cut and the checkpoint lost',
    do: ({ home }) => {
      rewrite(home, (all) => all.slice(0, 4))
      return { checkpoint: undefined }
    },
    record: 5,
    kind: 'cut',
  },
]

function another(): Home {
  const home = createHome()
  homes.push(home)
  home.fill(5)
  return home
}

function anchorAt(home: Home, record: number): Anchor {
  const { log_id, receipt_hash } = required(readReceipt(required(lines(home)[record - 1])))
  return sealAnchor(home.key(), { logId: log_id, count: record, head: receipt_hash })
}

function first(scene: Scene, checkpoint: Anchor | undefined): Verification {
  const { home, against } = scene
  return verifyReceipts({
    path: home.paths.log,
    headPath: home.paths.head,
    key: readKey(home.paths.key),
    checkpoint,
    ...(against ? { against } : {}),
  })
}

async function second({ home, against }: Scene, checkpoint: Anchor | undefined): Promise<Verdict> {
  const witnesses = [...(checkpoint ? ['--checkpoint', headLine(checkpoint)] : []), ...(against ? ['--against', anchorLine(against)] : [])]
  const child = Bun.spawn(['sh', script, home.paths.log, home.paths.head, home.paths.key, ...witnesses], { stdout: 'pipe', stderr: 'pipe' })
  const [text, trouble, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  expect(trouble).toBe('')
  const record = /receipt ([0-9]+)/.exec(text)?.[1]
  return { ok: code === 0, ...(code === 0 || record === undefined ? {} : { record: Number(record) }), text }
}

for (const tamper of everything) {
  test.concurrent(`both verifiers, ${tamper.name}: ${tamper.record === undefined ? 'valid' : `receipt ${tamper.record}`}`, async () => {
    const home = another()
    const scene = { home, checkpoint: home.fill(0) }
    const { checkpoint, ...changed }: Scene = { ...scene, ...Object(tamper.do(scene)) }
    const ours = first(changed, checkpoint)
    expect({ ok: ours.ok, record: ours.problems[0]?.record }).toEqual({ ok: tamper.record === undefined, record: tamper.record })
    if (tamper.kind) expect(String(ours.problems[0]?.kind)).toBe(tamper.kind)
    const theirs = await second(changed, checkpoint)
    expect({ ok: theirs.ok, record: theirs.record }, theirs.text).toEqual({ ok: tamper.record === undefined, record: tamper.record })
  })
}

test('the second verifier agrees on a log longer than its batches', async () => {
  const home = createHome()
  homes.push(home)
  const checkpoint = mustAppend(
    home.append,
    Array.from({ length: 1203 }, (_, number) => draft(number)),
    undefined,
  )
  expect(await second({ home }, checkpoint)).toMatchObject({ ok: true, text: 'valid: 1203 receipts, proved by checkpoint\n' })
  edit(home, 1001, (line) => line.replace('"low"', '"high"'))
  expect(await second({ home }, checkpoint)).toMatchObject({ ok: false, record: 1001 })
  expect(first({ home }, checkpoint).problems[0]).toMatchObject({ record: 1001, id: required(readReceipt(required(lines(home)[1000]))).id })
})

test('the second verifier understands every text the first can write', async () => {
  const home = createHome()
  homes.push(home)
  const odd = ['"\\/', '\b\f\n\r\t\u0000\u001f\u007f', 'é ü 東京 🦆', "'$(reboot)`x`%s", '\u2028\ufeff']
  const checkpoint = mustAppend(
    home.append,
    odd.map((text, number) => draft(number, { tool: text, conversationId: text, error: text, approval: text, status: 'failed' })),
    undefined,
  )
  expect(first({ home }, checkpoint)).toMatchObject({ ok: true, count: 5, completeness: 'proved by checkpoint', warnings: [] })
  expect(await second({ home }, checkpoint)).toMatchObject({ ok: true })
})

test('completeness is claimed only as far as a witness reaches', async () => {
  const home = another()
  const checkpoint = home.fill(0)
  const early = anchorAt(home, 3)
  const said = (verified: Verification) => verified.completeness
  expect(said(first({ home }, undefined))).toBe('not provable without an anchor')
  expect(said(first({ home }, checkpoint))).toBe('proved by checkpoint')
  expect(said(first({ home, against: early }, checkpoint))).toBe('proved by checkpoint')
  expect(said(first({ home, against: early }, undefined))).toBe('not provable without an anchor')
  expect(said(first({ home, against: checkpoint }, undefined))).toBe('proved by anchor')
  expect((await second({ home, against: checkpoint }, undefined)).text).toContain('proved by anchor')
  expect((await second({ home }, undefined)).text).toContain('not provable without an anchor')
})

test('a log that a crash left ahead of its witnesses is valid, with a warning that says so', () => {
  const home = another()
  const checkpoint = anchorAt(home, 3)
  writeFileSync(home.paths.head, `${headLine(anchorAt(home, 4))}\n`)
  home.setLog(`${home.log()}{"torn`)
  const { ok, warnings, tornBytes } = first({ home }, checkpoint)
  expect({ ok, tornBytes, kinds: warnings.map(({ kind, record }) => [kind, record]) }).toEqual({
    ok: true,
    tornBytes: 6,
    kinds: [
      ['torn', 6],
      ['ahead', 4],
      ['behind', 5],
    ],
  })
})
