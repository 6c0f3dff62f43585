import { afterAll, describe, expect, test } from 'bun:test'
import { appendFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { hasCode } from '../kit/errors.ts'
import type { JournalledAttempt } from './contract.ts'
import { draft, type Home, mustAppend, required } from './fixture.ts'
import { anchorLine, headLine, parseAnchor, sealAnchor } from './form/anchor.ts'
import { follow, start } from './form/chain.ts'
import { lineOf, readReceipt, sealed } from './form/receipt.ts'
import { readKey } from './key.ts'
import { diskFailure } from './receipt-failure.ts'
import { anchorAt, edit, first, homes, lines, recompute, rewrite } from './tampering.fixture.ts'
import { deepVerify } from './verify/deep.ts'

const { another, empty, removeAll } = homes()
afterAll(removeAll)

const told = ({ problems }: ReturnType<typeof first>) => problems.map(({ record, kind, message }) => `${record} ${kind}: ${message}`)

describe('the chain says of a line', () => {
  const home = another()
  const [one = '', two = '', three = ''] = lines(home)
  const key = home.key()
  const after = (line: string) => {
    const link = follow(start, line, key)
    if (!link.ok) throw new Error(link.fault.message)
    return link.at
  }
  const forge = (change: object) => {
    const { receipt_hash: _, mac: __, ...body } = { ...required(readReceipt(two)), ...change }
    return lineOf(sealed(body, key))
  }
  const logId = required(readReceipt(one)).log_id
  const id = required(readReceipt(two)).id
  test.each<[string, string | undefined, object]>([
    [
      'of another log',
      forge({ log_id: 'a'.repeat(32) }),
      { kind: 'log', message: `it belongs to another log (${'a'.repeat(32)}, not ${logId})`, id },
    ],
    ['out of order', three, { kind: 'order', message: 'it says it is receipt 3', id: required(readReceipt(three)).id }],
    [
      'after another one',
      forge({ previous_hash: 'b'.repeat(64) }),
      { kind: 'link', message: 'its previous_hash is not the hash of the receipt before it', id },
    ],
    ['edited', two.replace('file_read', 'file_lost'), { kind: 'hash', message: 'its content does not match its receipt_hash', id }],
    [
      'of another key',
      two.replace(/"mac":"[0-9a-f]*"/, `"mac":"${'c'.repeat(64)}"`),
      { kind: 'mac', message: 'its mac was not made with this key', id },
    ],
    ['that is none', '{}', { kind: 'form', message: 'the line is not a receipt in canonical form' }],
    ['that is no text', undefined, { kind: 'form', message: 'the line is not a receipt in canonical form' }],
  ])('%s', (_, line, fault) => expect(follow(after(one), line, key)).toEqual({ ok: false, fault: expect.objectContaining(fault) }))
})

describe('a verification says', () => {
  test('what the checkpoint and the head file know of a tail that is cut', () => {
    const home = another()
    const checkpoint = home.fill(0)
    rewrite(home, (all) => all.slice(0, 3))
    expect(told(first({ home }, checkpoint))).toEqual([
      '4 cut: it is missing: the checkpoint knows 5 receipts, the log holds 3',
      '4 cut: it is missing: the head file knows 5 receipts, the log holds 3',
    ])
  })

  test('that another receipt stands where a witness knows one', () => {
    const home = another()
    const [checkpoint, against] = [home.fill(0), anchorAt(home, 2)]
    recompute(home, 2, { key: home.key(), change: (receipt) => ({ ...receipt, tool: 'shell' }) })
    const found = first({ home, against }, checkpoint)
    expect(told(found)).toEqual([
      '5 rewritten: it is not the receipt that the checkpoint knows',
      '5 rewritten: it is not the receipt that the head file knows',
      '2 rewritten: it is not the receipt that the anchor knows',
    ])
    expect(found.completeness).toBe('not provable without an anchor')
  })

  test('which witness speaks of another log, or was sealed with another key', () => {
    const home = another()
    const { logId, head } = anchorAt(home, 5)
    const stranger = sealAnchor(home.key(), { logId: 'd'.repeat(32), count: 5, head })
    expect(told(first({ home, against: stranger }, undefined))).toEqual([
      `1 log: the anchor speaks of another log (${'d'.repeat(32)}, not ${logId})`,
    ])
    const unsealed = sealAnchor(new Uint8Array(32), { logId, count: 0, head })
    const found = first({ home, against: unsealed }, undefined)
    expect(told(found)).toEqual(['1 seal: the anchor was not sealed with this key'])
    expect(found.completeness).toBe('not provable without an anchor')
  })

  test('no more than it can without a key, whatever witnesses there are', () => {
    const home = another()
    const checkpoint = home.fill(0)
    rmSync(home.paths.key)
    const missing = `1 key: the receipt key "${home.paths.key}" is missing; restore it from a backup, without it no receipt can be trusted`
    const found = first({ home, against: checkpoint }, checkpoint)
    expect(found).toMatchObject({ ok: false, count: 0, size: 0, tornBytes: 0, completeness: 'not provable without an anchor' })
    expect(told(found)).toEqual([missing])
    home.setLog('')
    expect(told(first({ home }, undefined))).toEqual([missing])
  })

  test('what a crash left, and what cannot be compared', () => {
    const home = empty()
    const early = home.fill(2)
    mustAppend(home.append, [draft(2), draft(3), draft(4)], early)
    writeFileSync(home.paths.head, `${headLine(early)}\n`)
    appendFileSync(home.paths.log, '{"torn')
    expect(first({ home }, early)).toMatchObject({
      ok: true,
      count: 5,
      tornBytes: 6,
      warnings: [
        { record: 6, kind: 'torn', message: 'the log ends in an unfinished line of 6 bytes, left by a crash; the next start removes it' },
        { record: 3, kind: 'ahead', message: 'the log is 3 ahead of the checkpoint, as after a crash; the next start adopts them' },
        { record: 3, kind: 'behind', message: 'the head file stops at 2' },
      ],
    })
    expect(first({ home }, undefined).warnings.at(-1)).toEqual({
      record: 5,
      kind: 'no_checkpoint',
      message: 'the checkpoint to compare with is missing: the database is new or was replaced',
    })
  })

  test('of a log that is proved to its end, nothing', () => {
    const home = another()
    const checkpoint = home.fill(0)
    const against = required(parseAnchor(anchorLine(anchorAt(home, 5))))
    expect(first({ home }, checkpoint)).toMatchObject({ ok: true, problems: [], warnings: [], completeness: 'proved by checkpoint' })
    expect(first({ home, against }, checkpoint)).toMatchObject({ ok: true, warnings: [], completeness: 'proved by anchor' })
    expect(first({ home, against: anchorAt(home, 4) }, undefined).completeness).toBe('not provable without an anchor')
  })

  test('nothing of a log that never began, but something of one whose head file is odd', () => {
    const home = empty()
    expect(first({ home }, undefined)).toMatchObject({ ok: true, count: 0, problems: [], warnings: [] })
    writeFileSync(home.paths.head, 'x\n')
    const damaged = `1 head: the head file "${home.paths.head}" is damaged; the next append rewrites it if the checkpoint agrees with the log`
    expect(told(first({ home }, undefined))).toEqual([damaged])
    rmSync(home.paths.head)
    mkdirSync(home.paths.head)
    expect(told(first({ home }, undefined))).toEqual([damaged])
    const full = another()
    rmSync(full.paths.head)
    expect(told(first({ home: full }, undefined))).toEqual([
      damaged.replace(home.paths.head, full.paths.head).replace(/damaged|1(?= head)/g, (word) => (word === '1' ? '5' : 'missing')),
    ])
  })

  test('in a refusal to settle, the receipt that broke the chain', () => {
    const home = another()
    const checkpoint = home.fill(0)
    home.fill(2)
    edit(home, 7, (line) => line.replace('file_read', 'file_lost'))
    const refused = home.append([], checkpoint)
    expect(refused).toEqual({
      ok: false,
      failure: {
        code: 'altered',
        message: `the receipts log "${home.paths.log}" was altered: invalid chain at receipt 7: its content does not match its receipt_hash; run "braidclaw receipt verify", then restore it from a backup`,
      },
    })
  })
})

describe('the deep check says of a call', () => {
  const home = another()
  const id = (seq: number) => required(readReceipt(required(lines(home)[seq - 1]))).id
  const attempt = (own: Partial<JournalledAttempt>): JournalledAttempt => {
    const { conversationId, tool, argsHash, resultHash, status } = draft(0)
    const known = { conversationId, tool, argsHash, resultHash, status, receiptId: id(1) }
    return { runId: 'r', callId: 'c', pending: false, unfinished: false, ...known, ...own }
  }
  const said = (home: Home, ...attempts: JournalledAttempt[]) => deepVerify(home.paths.log, attempts)
  const what = 'call c (file_read) of run r'
  test.each<[string, Partial<JournalledAttempt>, object]>([
    ['that has no end', { status: undefined }, { kind: 'no_result', message: `${what} began, and its result is gone` }],
    ['without a receipt', { receiptId: undefined }, { kind: 'no_receipt', message: `${what} has no receipt` }],
    ['with a lost receipt', { receiptId: 'x' }, { id: 'x', kind: 'no_receipt', message: `${what} names x, which is not in the log` }],
    ['that is told differently', { status: 'denied' }, { id: id(1), kind: 'differs', message: `${what} and ${id(1)} differ in status` }],
  ])('%s', (_, own, problem) => {
    const found = said(home, attempt(own))
    expect(found.ok).toBe(false)
    expect<unknown>(found.problems).toEqual([{ runId: 'r', callId: 'c', ...problem }])
  })

  test('whose receipt another call has, and how many receipts nobody names', () => {
    const found = said(home, attempt({}), attempt({ callId: 'd' }))
    expect(found).toEqual({
      ok: false,
      attempts: 2,
      pending: 0,
      unfinished: [],
      withoutAttempt: 4,
      problems: [
        {
          runId: 'r',
          callId: 'd',
          id: id(1),
          kind: 'shared',
          message: `call d (file_read) of run r names ${id(1)}, which another call named before`,
        },
      ],
    })
    expect(said(home, attempt({ receiptId: undefined, pending: true }))).toMatchObject({ ok: true, withoutAttempt: 5 })
    expect(said({ ...home, paths: { ...home.paths, log: home.folder } })).toMatchObject({ ok: true, withoutAttempt: 0 })
  })

  test('whether it ran confined as its receipt says, where the journal knows', () => {
    const jailed = empty()
    jailed.fill(1, () => ({ sandbox: 'landlock' }))
    const receiptId = required(readReceipt(required(lines(jailed)[0]))).id
    expect(said(jailed, attempt({ receiptId, sandbox: 'landlock' })).problems).toEqual([])
    expect(said(jailed, attempt({ receiptId })).problems).toEqual([])
    expect(said(jailed, attempt({ receiptId, sandbox: 'none' })).problems[0]?.message).toEndWith('differ in sandbox')
  })
})

describe('trouble with the disk', () => {
  const errno = (code: string) => Object.assign(new Error('the call failed'), { code, errno: -1 })
  const why = 'receipts at "/r" cannot be written or read (the call failed)'
  const full = 'no receipt can be appended to "/r": the disk is full; free some space and try again'
  test.each([
    ['ENOSPC', 'full', full],
    ['EDQUOT', 'full', full],
    ['EROFS', 'read_only', `${why}; the file system is read-only: remount it, or move the home`],
    ['EACCES', 'unreadable', `${why}; check that it is a file you own on a working disk, or name another "path" in [receipts]`],
  ])('%s is %s', (code, kind, message) => expect<unknown>(diskFailure('/r', errno(code))).toEqual({ code: kind, message }))

  test('what is no error of the system is a bug, and only a missing file is missing', () => {
    const bugs = [new Error('x'), { code: 'ENOSPC', errno: -1 }, Object.assign(new Error('x'), { code: 'ENOSPC' }), undefined, 'ENOSPC']
    for (const bug of [...bugs, Object.assign(new Error('x'), { errno: -1 })]) expect(diskFailure('/r', bug)).toBeUndefined()
    expect(hasCode(errno('ENOENT'), 'ENOENT')).toBe(true)
    for (const other of [errno('EACCES'), { code: 'ENOENT' }, new Error('ENOENT'), undefined]) expect(hasCode(other, 'ENOENT')).toBe(false)
  })

  test('a key that is a folder is called one', () => {
    const home = another()
    rmSync(home.paths.key)
    mkdirSync(home.paths.key, { mode: 0o700 })
    expect(readKey(home.paths.key)).toMatchObject({
      missing: false,
      failure: { code: 'key', message: `the receipt key "${home.paths.key}" is not a regular file; restore the key from a backup` },
    })
    rmSync(home.paths.key, { recursive: true })
    writeFileSync(home.paths.key, 'ab'.repeat(32), { mode: 0o600 })
    expect(readKey(home.paths.key).ok).toBe(true)
  })
})
