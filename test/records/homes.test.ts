/** A home made by an older version opens, verifies, replays and resumes; one made by a newer version is refused in one line. */

import { expect, test } from 'bun:test'
import { type Nest, nest } from '../support/cli.ts'
import { repetitions } from '../support/tier.ts'
import { addTurns, database, nameOf, oldHome, unpack } from './homes/unpack.ts'

function aged(): Nest {
  const at = nest()
  unpack(oldHome, at)
  return at
}

const json = async (at: Nest, words: readonly string[], timeoutMs = 30_000) => {
  const { code, stdout, stderr } = await at.run(words, { timeoutMs })
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return JSON.parse(stdout)
}

type RunRow = { readonly run_id: string; readonly conversation_id: string; readonly code: string | null; readonly channel: string }

function rows(at: Nest): RunRow[] {
  using db = database(at)
  return db.query<RunRow, []>('SELECT run_id, conversation_id, code, channel FROM runs ORDER BY started').all()
}

test('the run that was killed is closed with one receipt, and everything verifies', async () => {
  using at = aged()
  expect(rows(at).map(({ code }) => code)).toEqual([
    'answered',
    'denied',
    'answered',
    'approval_needed',
    'answered',
    'answered',
    'answered',
    null,
  ])
  expect((await at.run(['agent', '-m', 'hello'])).code).toBe(0)
  expect(
    rows(at)
      .map(({ code }) => code)
      .slice(6),
  ).toEqual(['answered', 'error', 'answered'])
  const receipts: { status: string; error?: string }[] = await json(at, ['receipt', 'list', '--json'])
  expect(receipts.map(({ status }) => status).sort()).toEqual(['allowed', 'allowed', 'denied', 'denied', 'failed', 'failed'])
  expect((await at.run(['receipt', 'verify', '--deep'])).stdout).toStartWith('valid: 6 receipts')
  expect((await at.run(['rebuild', '--check'])).code).toBe(0)
})

test('every run replays, and nothing is asked of the network', async () => {
  using at = aged()
  for (const { run_id } of rows(at).filter(({ code }) => code !== null)) {
    const { code, stderr } = await at.run(['replay', run_id])
    expect({ run_id, code, stderr }).toEqual({ run_id, code: 0, stderr: expect.not.stringContaining('diverge') })
  }
  expect((await at.run(['replay', '--all'])).code).toBe(0)
})

test('a conversation goes on, of the terminal as of the filter', async () => {
  using at = aged()
  for (const channel of ['cli', 'filter']) {
    const id = rows(at).find((row) => row.channel === channel)?.conversation_id ?? ''
    const { code, stderr } = await at.run(['agent', '--resume', id, '-m', 'And now?'])
    expect({ channel, code, stderr }).toEqual({ channel, code: 0, stderr: expect.any(String) })
    expect(rows(at).at(-1)?.conversation_id).toBe(id)
  }
  const { code } = await at.run(['-c', 'And now?'])
  expect(code).toBe(0)
})

test('what was always allowed is not asked again', async () => {
  using at = aged()
  expect((await at.run(['approvals', 'rules', 'list'])).stdout).toContain('/usr/bin/mkdir')
  const make = { tool_calls: [{ name: 'shell', arguments: { command: 'mkdir another' } }] }
  const env = { BRAIDCLAW_MOCK_FIXTURE: at.fixture([make, { text: 'made' }]) }
  expect(await at.run(['agent', '-m', 'make it'], { env })).toMatchObject({ code: 0, stdout: 'made\n' })
})

test('a question that stood open can be answered', async () => {
  using at = aged()
  {
    using db = database(at)
    db.run(`UPDATE approvals SET created = ${Date.now() - 1_000}, expires = ${Date.now() + 500_000} WHERE state = 'open'`)
  }
  const [open] = await json(at, ['approvals', 'list', '--json'])
  expect(open).toMatchObject({ tool: 'file_write' })
  expect((await at.run(['approvals', 'allow', open.id])).code).toBe(0)
})

test('pins, sessions and names of runs are found', async () => {
  using at = aged()
  expect((await at.run(['memory', 'pin', '--list'])).stdout + (await at.run(['compose'])).stdout).toContain('The build runs on Debian')
  expect((await at.run(['session'])).stdout).toContain('red, green, blue')
})

const many = repetitions({ fast: 2_000, deep: 100_000 })

test(`a home of ${many.toLocaleString('en')} turns opens, answers, lists, searches and resumes`, async () => {
  using at = aged()
  addTurns(at, many)
  expect((await at.run(['agent', '-m', 'hello'])).code).toBe(0)
  expect((await at.run(['agent', '--resume', nameOf('conversation', many / 10 - 1), '-m', 'hello'])).code).toBe(0)
  expect((await at.run(['memory', 'search', 'w996'])).stdout).toContain('w996')
  expect((await at.run(['run', 'list'])).code).toBe(0)
  expect((await at.run(['replay', nameOf('run', many / 2)])).code).toBe(0)
  expect((await at.run(['rebuild', '--check'], { timeoutMs: 120_000 })).code).toBe(0)
}, 180_000)

test('a home of a newer version is refused in one line that says what to do', async () => {
  using at = aged()
  {
    using db = database(at)
    db.run('PRAGMA user_version = 99')
  }
  for (const words of [
    ['agent', '-m', 'hello'],
    ['memory', 'list'],
    ['receipt', 'verify', '--deep'],
  ]) {
    const { code, stderr } = await at.run(words)
    expect(code).not.toBe(0)
    expect(stderr.trimEnd().split('\n')).toEqual([expect.stringMatching(/^error: .*written by a newer BraidClaw.*update BraidClaw$/)])
  }
})
