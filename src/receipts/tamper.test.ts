import { afterAll, expect, test } from 'bun:test'
import { copyFileSync, rmSync, writeFileSync } from 'node:fs'
import { isDeep } from '../../test/support/tier.ts'
import { createHome, draft, mustAppend, required } from './fixture.ts'
import { headLine, sealAnchor } from './form/anchor.ts'
import { readReceipt } from './form/receipt.ts'
import { anchorAt, edit, first, homes, lines, recompute, rewrite, second, testBoth } from './tampering.fixture.ts'
import type { Verification } from './verify/verify-chain.ts'

const { another, empty, removeAll } = homes()
afterAll(removeAll)

testBoth(
  [
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
    {
      name: 'the last receipt edited',
      do: ({ home }) => edit(home, 5, (line) => line.replace('"low"', '"high"')),
      record: 5,
      kind: 'hash',
    },
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
      do: ({ home, checkpoint, another }) => {
        const other = another()
        copyFileSync(other.paths.log, home.paths.log)
        copyFileSync(other.paths.key, home.paths.key)
        return { checkpoint: { ...checkpoint, count: 1 } }
      },
    },
    {
      name: 'receipt 3 alone rewritten by someone who has the key',
      do: ({ home }) => {
        const [, , , fourth = '', fifth = ''] = lines(home)
        recompute(home, 3, { key: home.key(), change: (receipt) => ({ ...receipt, tool: 'time' }) })
        rewrite(home, (all) => [...all.slice(0, 3), fourth, fifth])
      },
      record: 4,
      kind: 'link',
    },
    {
      name: 'a number skipped by someone who has the key',
      do: ({ home }) => recompute(home, 3, { key: home.key(), change: (receipt) => ({ ...receipt, seq: receipt.seq + 1 }) }),
      record: 3,
      kind: 'order',
    },
    {
      name: 'moved to another log from 3 on by someone who has the key',
      do: ({ home }) => recompute(home, 3, { key: home.key(), change: (receipt) => ({ ...receipt, log_id: 'ab'.repeat(16) }) }),
      record: 3,
      kind: 'log',
    },
    {
      name: 'the log of another home',
      do: ({ home, another }) => copyFileSync(another().paths.log, home.paths.log),
      record: 1,
      kind: 'mac',
    },
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
    {
      name: 'a receipt of another log in the middle',
      do: ({ home, another }) => edit(home, 4, () => required(lines(another())[3])),
      record: 4,
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
  ],
  { another, isDeep },
)

test('the second verifier agrees on a log longer than its batches', async () => {
  const home = empty()
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
  const home = empty()
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
  const checkpoint = home.fill(0)
  mustAppend(home.append, [draft(6), draft(7)], checkpoint)
  writeFileSync(home.paths.head, `${headLine(anchorAt(home, 6))}\n`)
  home.setLog(`${home.log()}{"torn`)
  const { ok, warnings, tornBytes } = first({ home }, checkpoint)
  expect({ ok, tornBytes, kinds: warnings.map(({ kind, record }) => [kind, record]) }).toEqual({
    ok: true,
    tornBytes: 6,
    kinds: [
      ['torn', 8],
      ['ahead', 6],
      ['behind', 7],
    ],
  })
})
