/** `braidclaw export trajectories` through the real executable: files, parts, what is said, and what goes wrong. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { noon } from '../../../src/memory/fixture.ts'
import { openMemory } from '../../../src/memory/memory.ts'
import { nest } from '../../support/cli.ts'
import { readAtif, readOpenAi, readSeed } from '../../support/training-formats.ts'
import { answered, createJournalWriter, limited, runOf, said } from './journal.ts'

const at = nest()
afterAll(() => at[Symbol.dispose]())
const key = 'swordfish-4711-swordfish'
const trajectories = (...words: string[]) => at.run(['export', 'trajectories', ...words], { env: { TEST_API_KEY: key } })

/** Two turns of the executable, and checked runs of one task after them. */
beforeAll(async () => {
  at.file('note.txt', `the key is ${key}`)
  const responses = [{ tool_calls: [{ name: 'file_read', arguments: { path: 'note.txt' } }] }, { text: 'Read it.' }]
  for (const task of ['Read note.txt', 'Read it \u202e again'])
    expect((await at.run(['agent', '-m', task], { env: { BRAIDCLAW_MOCK_FIXTURE: at.fixture(responses) } })).code).toBe(0)
  const opened = openMemory({ path: join(at.home, '.braidclaw/memory.sqlite'), log: () => {}, now: () => noon })
  if (!opened.ok) throw new Error(opened.failure.message)
  const to = createJournalWriter({ memory: opened.memory, clock: { now: noon }, folder: at.dir, path: '', remove: () => {} })
  for (const number of [1, 2, 3, 4]) {
    const run = runOf(number, { conversationId: `conversation_${number}` })
    to.beginChecked(run, `Task ${number % 2}`)
    to.reply(run, [said('Done')])
    to.checked(run, 1, number < 3)
    to.end(run, number < 3 ? answered : limited)
  }
  opened.memory.close()
})

test('without a checked run it says so, and runs without checks go where no reward is needed', async () => {
  const { code, stdout, stderr } = await trajectories('--format', 'openai', '--task', 'Read note.txt')
  expect([code, stderr]).toEqual([0, '1 record (openai) of 1 task: 0 runs passed, 0 failed, 1 unchecked; 1 secret redacted\n'])
  expect(readOpenAi(stdout.trimEnd())).toMatchObject({ prompt: 'Read note.txt', answers: ['', 'Read it.'] })
  expect(stdout).not.toContain(key)
  const none = await trajectories('--task', 'Read note.txt')
  expect([none.code, none.stdout]).toEqual([0, ''])
  expect(none.stderr).toContain('left out: 1 run without an executed check')
})

test('each record has the digests of its journal and its receipts, as they are on record', async () => {
  const { stdout } = await trajectories('--format', 'atif', '--task', 'Read note.txt')
  const { extra } = readAtif(stdout.trimEnd())
  const { provenance } = extra as {
    provenance: { run_id: string; receipts: object; journal_sha256: string; version: string; tools_sha256: string }
  }
  const run = JSON.parse((await at.run(['run', 'show', provenance.run_id, '--json'])).stdout)
  const ids = JSON.stringify(run.entries).match(/receipt-[0-9a-f]{8}-\d+/g) ?? []
  const receipt = JSON.parse((await at.run(['receipt', 'show', ids[0] ?? ''])).stdout)
  const sha256 = new Bun.CryptoHasher('sha256').update(receipt.receipt_hash).digest('hex')
  expect(provenance.receipts).toEqual({ count: 1, sha256 })
  expect(provenance.journal_sha256).toMatch(/^[0-9a-f]{64}$/)
  expect([provenance.version, provenance.tools_sha256]).toEqual([
    expect.stringMatching(/^\d+\.\d+\.\d+/),
    expect.stringMatching(/^[0-9a-f]{64}$/),
  ])
})

test('stdout and a file have the same bytes; the file is for its owner alone, and replaces an old one at once', async () => {
  const out = join(at.dir, 'night.jsonl')
  writeFileSync(out, 'old', { mode: 0o644 })
  const [first, piped] = [await trajectories('--out', out), await trajectories()]
  expect(first).toMatchObject({ code: 0, stdout: '' })
  expect(first.stderr).toContain('4 records (seed) of 2 tasks: 2 runs passed, 2 failed, 0 unchecked\n')
  expect(readFileSync(out, 'utf8')).toBe(piped.stdout)
  expect(statSync(out).mode & 0o777).toBe(0o600)
  for (const line of piped.stdout.trimEnd().split('\n')) readSeed(line)
  expect(readdirSync(at.dir).filter((name) => name.startsWith('night.jsonl'))).toEqual(['night.jsonl'])
})

test('the parts are two files that have all records together, and a task in one of them', async () => {
  const { code } = await trajectories('--out', join(at.dir, 'parts.jsonl'), '--split')
  const [train, tests] = ['train', 'test'].map((part) => readFileSync(join(at.dir, `parts.${part}.jsonl`), 'utf8'))
  const all = (await trajectories()).stdout
  expect([code, `${train}${tests}`.length, readdirSync(at.dir).includes('parts.jsonl')]).toEqual([0, all.length, false])
})

test('the summary as JSON is on stderr', async () => {
  const { stderr } = await trajectories('--format', 'trl-pref', '--json')
  expect(JSON.parse(stderr)).toMatchObject({
    format: 'trl-pref',
    records: 2,
    tasks: 2,
    passed: 2,
    failed: 2,
    left: { unchecked: 2 },
    altered: [],
  })
})

describe('what goes wrong', () => {
  test.each<[string, string[], string]>([
    ['parts without a file', ['--split'], '--split writes two files'],
    ['a time that is none', ['--since', 'yesterday'], '--since "yesterday" is not a time; write 7d'],
    ['a format that does not exist', ['--format', 'trl-stf'], 'trl-sft'],
    ['a task that no run has', ['--task', 'Nothing'], 'no run has such a task'],
  ])('%s is a usage error', async (_, words, says) => {
    const { code, stdout, stderr } = await trajectories(...words)
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toContain(says)
  })

  test('a file that cannot be written is named, and nothing is left', async () => {
    mkdirSync(join(at.dir, 'folder'))
    for (const out of ['none/night.jsonl', 'folder']) {
      const { code, stderr } = await trajectories('--out', join(at.dir, out))
      expect(code).toBe(1)
      expect(stderr).toContain(`error: ${join(at.dir, out)}: `)
    }
    expect(readdirSync(at.dir).filter((name) => name.startsWith('folder'))).toEqual(['folder'])
  })

  test('a run that does not exist is named', async () => {
    const { code, stderr } = await trajectories('--run', 'run_none')
    expect([code, stderr]).toEqual([1, 'error: no run "run_none"; see: braidclaw run list\n'])
  })
})
