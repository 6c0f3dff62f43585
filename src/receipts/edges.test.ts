import { afterAll, describe, expect, test } from 'bun:test'
import { appendFileSync, linkSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { draft, mustAppend, required } from './fixture.ts'
import { headLine } from './form/anchor.ts'
import { readReceipt } from './form/receipt.ts'
import { type LogLine, readLines } from './form/receipt-lines.ts'
import { readHead } from './head.ts'
import { readKey } from './key.ts'
import { createReceiptLog } from './ledger.ts'
import { listReceipts, showReceipt } from './list-receipts.ts'
import { rotate } from './rotate.ts'
import { filesOf, nextSegment, secondNames, segmentsOf } from './segments.ts'
import { first, homes, lines } from './tampering.fixture.ts'
import { isConsistent } from './verify/log-end.ts'
import { verifyReceipts } from './verify/verify-chain.ts'

const { another, empty, removeAll } = homes()
afterAll(removeAll)

describe('a log that was touched at its very end is refused', () => {
  test.each<[string, (log: string) => string | Uint8Array]>([
    ['its last newline replaced', (log) => `${log.slice(0, -1)}x`],
    ['bytes in its last line that are no UTF-8', (log) => Buffer.from(log).fill(0xff, log.length - 9, log.length - 8)],
    [
      'a byte order mark before its last line, paid for by the line before',
      (log) => log.replace(/"tool":"file_read"(?=[^\n]*\n[^\n]*\n$)/, '"tool":"file_r"').replace(/\n(?=[^\n]*\n$)/, '\n\ufeff'),
    ],
  ])('%s', (_, change) => {
    const home = another()
    const checkpoint = home.fill(0)
    const changed = change(home.log())
    expect(Buffer.byteLength(changed)).toBe(checkpoint.size)
    home.setLog(changed)
    expect(isConsistent(home.paths, checkpoint)).toBe(false)
    expect(home.append([draft(9)], checkpoint)).toMatchObject({ ok: false, failure: { code: 'altered' } })
    expect(home.log()).toBe(Buffer.from(changed).toString())
  })
})

describe('a head file is damaged when it holds', () => {
  const home = another()
  const line = readFileSync(home.paths.head, 'latin1').trimEnd()
  test.each([` ${line}\n`, `${line} \n`, `\n${line}\n`, line.replace(':5:', ':5:\n'), `${line}\n${line}\n`])('%j', (text) => {
    writeFileSync(home.paths.head, text)
    expect(readHead(home.paths.head)).toEqual({ state: 'damaged' })
  })
  test.each([line, `${line}\n`, `${line}\n\n`])('but not when it is %j', (text) => {
    writeFileSync(home.paths.head, text)
    expect(readHead(home.paths.head)).toMatchObject({ state: 'read', anchor: { count: 5 } })
  })
})

describe('the head file follows', () => {
  test('what was adopted, or a torn line that was cut off', () => {
    const home = empty()
    const early = home.fill(2)
    mustAppend(home.append, [draft(2), draft(3)], early)
    writeFileSync(home.paths.head, `${headLine(early)}\n`)
    const settled = home.append([], early)
    expect(settled).toMatchObject({ ok: true, adopted: 2, tornBytes: 0 })
    const late = required(settled.ok ? settled.checkpoint : undefined)
    expect(readFileSync(home.paths.head, 'latin1')).toContain(':5:')
    rmSync(home.paths.head)
    appendFileSync(home.paths.log, '{"torn')
    expect(home.append([], late)).toMatchObject({ ok: true, adopted: 0, tornBytes: 6 })
    expect(readFileSync(home.paths.head, 'latin1')).toBe(`${headLine(late)}\n`)
  })

  test('nothing when nothing had to be settled', () => {
    const home = another()
    rmSync(home.paths.head)
    expect(home.append([], home.fill(0))).toMatchObject({ ok: true, adopted: 0, tornBytes: 0, receiptIds: [] })
    expect(readHead(home.paths.head)).toEqual({ state: 'missing' })
  })
})

test('an empty log is left alone until there is a receipt for it', () => {
  const home = empty()
  home.setLog('')
  expect(home.append([], undefined)).toEqual({ ok: true, receiptIds: [], checkpoint: undefined, adopted: 0, tornBytes: 0 })
  expect(readdirSync(home.folder)).toEqual(['tool_receipts.log'])
})

test('an error is kept whole up to 300 characters, and cut visibly beyond', () => {
  const home = empty()
  for (const error of ['short', 'x'.repeat(300), 'x'.repeat(301)]) home.fill(1, () => ({ error, status: 'failed' }))
  const errors = lines(home).map((line) => readReceipt(line)?.error)
  expect(errors).toEqual(['short', 'x'.repeat(300), `${'x'.repeat(299)}…`])
})

test('another program at the same log is called what it is', () => {
  const home = another()
  const crowded = createReceiptLog({ paths: home.paths, sync: () => appendFileSync(home.paths.log, 'x') })
  expect(crowded([draft(4)], home.fill(0))).toEqual({
    ok: false,
    failure: {
      code: 'altered',
      message: `another program wrote to "${home.paths.log}" at the same time; find it, then run "braidclaw receipt verify"`,
    },
  })
})

describe('lines at the border of what is read at once', () => {
  const piece = 1 << 20
  const sizes = (content: string | Uint8Array) => {
    const path = join(empty().folder, 'lines')
    writeFileSync(path, content)
    return [...readLines(path)].map(({ text, bytes, torn }: LogLine) => [text?.length, bytes, torn])
  }
  test.each<[string, string | Uint8Array, unknown[]]>([
    ['a line of just 1 MiB', `${'x'.repeat(piece - 1)}\n`, [[piece - 1, piece, false]]],
    ['one of a byte more', `${'x'.repeat(piece)}\n`, [[undefined, piece + 1, false]]],
    ['a torn one of just 1 MiB', 'x'.repeat(piece), [[piece, piece, true]]],
    ['a torn one of a byte more, and what follows is not read', `${'x'.repeat(2 * piece)}\nx\n`, [[undefined, 2 * piece, false]]],
    [
      'lines that lie across three pieces',
      `${'a'.repeat(700_000)}\n${'b'.repeat(900_000)}\n${'c'.repeat(1_000_000)}\nd`,
      [
        [700_000, 700_001, false],
        [900_000, 900_001, false],
        [1_000_000, 1_000_001, false],
        [1, 1, true],
      ],
    ],
    [
      'empty and broken ones together',
      new Uint8Array([10, 0x61, 0xff, 10, 0x62, 10, 10]),
      [
        [0, 1, false],
        [undefined, 3, false],
        [1, 2, false],
        [0, 1, false],
      ],
    ],
  ])('%s', (_, content, expected) => expect<unknown>(sizes(content)).toEqual(expected))
})

describe('receipts are listed', () => {
  test('without what stands in an unfinished line', () => {
    const home = empty()
    home.fill(4)
    home.setLog(home.log().slice(0, -1))
    expect(listReceipts({ path: home.paths.log, limit: 9 })).toMatchObject({ receipts: [{ seq: 1 }, { seq: 2 }, { seq: 3 }], torn: true })
    expect(showReceipt(home.paths.log, '4')).toBeUndefined()
  })

  test('the newest of a long log, however few are asked for', () => {
    const home = empty()
    home.append(
      Array.from({ length: 200 }, (_, number) => draft(number)),
      undefined,
    )
    for (const limit of [1, 2, 70, 150]) {
      const listed = listReceipts({ path: home.paths.log, limit })
      expect(listed.ok && listed.receipts.map(({ seq }) => seq)).toEqual(Array.from({ length: limit }, (_, at) => 201 - limit + at))
    }
  })
})

test('a path that no system call takes is a bug, never a finding', () => {
  const path = join(empty().folder, 'a\0b')
  const key = { ok: true, key: new Uint8Array(32) } as const
  expect(() => listReceipts({ path, limit: 1 })).toThrow('null bytes')
  expect(() => readKey(path)).toThrow('null bytes')
  expect(() => verifyReceipts({ path: another().paths.log, headPath: path, key, checkpoint: undefined })).toThrow('null bytes')
})

describe('segments', () => {
  test('are the files of exactly those names, in the order of their numbers', () => {
    const { folder, paths } = another()
    const like = ['01.log', '0.log', '1.log.bak', '1', '1.txt', 'x.log', '1.1.log', '-1.log', '1234567890.log'].map(
      (end) => `tool_receipts.${end}`,
    )
    for (const name of [...like, 'receipts.1.log', 'tool_receipts1.log', 'xtool_receipts.1.log', '.1.log'])
      writeFileSync(join(folder, name), '')
    expect(filesOf(paths.log)).toEqual([paths.log])
    for (const number of [10, 9, 2]) writeFileSync(join(folder, `tool_receipts.${number}.log`), '')
    expect(segmentsOf(paths.log)).toEqual([2, 9, 10].map((number) => join(folder, `tool_receipts.${number}.log`)))
    expect(nextSegment(paths.log)).toBe(join(folder, 'tool_receipts.11.log'))
    linkSync(paths.log, join(folder, 'tool_receipts.11.log'))
    expect(secondNames(paths.log)).toEqual([join(folder, 'tool_receipts.11.log')])
    expect(nextSegment(paths.log)).toBe(join(folder, 'tool_receipts.12.log'))
  })

  test('are numbered behind the name when it has no ending', () => {
    const { folder } = empty()
    expect(nextSegment(join(folder, 'receipts'))).toBe(join(folder, 'receipts.1'))
    expect(nextSegment(join(folder, '.receipts'))).toBe(join(folder, '.receipts.1'))
    writeFileSync(join(folder, 'receipts.1'), '')
    expect(filesOf(join(folder, 'receipts'))).toEqual([join(folder, 'receipts.1'), join(folder, 'receipts')])
    expect(filesOf(join(folder, 'none', 'r.log'))).toEqual([join(folder, 'none', 'r.log')])
  })

  test('that lead nowhere are unreadable, not fatal', () => {
    const home = another()
    symlinkSync(join(home.folder, 'nowhere'), join(home.folder, 'tool_receipts.1.log'))
    expect(first({ home }, home.fill(0))).toMatchObject({ ok: false, problems: [{ record: 1, kind: 'unreadable' }] })
  })
})

describe('a rotation', () => {
  test('says which segment it closed, and leaves log and head file with the receipt of just that', () => {
    const home = another()
    const before = home.log()
    writeFileSync(`${home.paths.log}.next`, 'left by a crash')
    const rotated = rotate({ paths: home.paths, checkpoint: home.fill(0), draft: draft(9, { tool: 'receipts.rotate' }) })
    const receipt = required(readReceipt(required(lines(home)[0])))
    const checkpoint = required(rotated.ok ? rotated.checkpoint : undefined)
    expect(rotated).toEqual({
      ok: true,
      receiptIds: [receipt.id],
      checkpoint: { logId: receipt.log_id, count: 6, head: receipt.receipt_hash, mac: checkpoint.mac, size: Buffer.byteLength(home.log()) },
      adopted: 0,
      tornBytes: 0,
      segment: join(home.folder, 'tool_receipts.1.log'),
    })
    expect(receipt).toMatchObject({ seq: 6, tool: 'receipts.rotate' })
    expect(lines(home)).toHaveLength(1)
    expect(readFileSync(join(home.folder, 'tool_receipts.1.log'), 'utf8')).toBe(before)
    expect(readFileSync(home.paths.head, 'utf8')).toBe(`${headLine(checkpoint)}\n`)
    expect(readdirSync(home.folder).sort()).toEqual(['receipt.key', 'receipts.head', 'tool_receipts.1.log', 'tool_receipts.log'])
    expect(isConsistent(home.paths, mustAppend(home.append, [draft(10)], checkpoint))).toBe(true)
  })

  test('that the disk does not let be is a failure, and one of nonsense a bug', () => {
    const home = another()
    const checkpoint = home.fill(0)
    expect(() => rotate({ paths: home.paths, checkpoint, draft: draft(9, { at: Number.NaN }) })).toThrow(RangeError)
    mkdirSync(`${home.paths.log}.next`)
    const refused = rotate({ paths: home.paths, checkpoint, draft: draft(9) })
    expect(refused).toMatchObject({ ok: false, failure: { code: 'unreadable', message: expect.stringContaining(home.paths.log) } })
    expect(lines(home)).toHaveLength(5)
    rmSync(home.paths.key)
    expect(rotate({ paths: home.paths, checkpoint, draft: draft(9) })).toMatchObject({ ok: false, failure: { code: 'key' } })
  })
})

test('nothing leaves a file open', () => {
  const open = () => readdirSync('/proc/self/fd').length
  const home = another()
  let checkpoint = home.fill(0)
  const everything = () => {
    const before = checkpoint
    const rotated = rotate({ paths: home.paths, checkpoint, draft: draft(9) })
    checkpoint = mustAppend(home.append, [draft(1)], rotated.ok ? before : undefined)
    checkpoint = mustAppend(home.append, [draft(2)], checkpoint)
    isConsistent(home.paths, checkpoint)
    isConsistent({ ...home.paths, key: home.folder }, checkpoint)
    first({ home }, checkpoint)
    readKey(home.folder)
    const fresh = empty()
    fresh.fill(1)
  }
  everything()
  const before = open()
  for (let round = 0; round < 5; round += 1) everything()
  expect(open()).toBe(before)
})
