/** Training data from the journal: each format as the independent reader of it understands it. */

import { afterAll, describe, expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type DataPart, type ExportQuery, exportTrajectories } from '../../../src/host/records/trajectories/export-trajectories.ts'
import { type FormatName, formatNames } from '../../../src/host/records/trajectories/formats.ts'
import { createRedactor, type Redactor } from '../../../src/security/redaction/redact.ts'
import { readAtif, readOpenAi, readSeed, readTrlKto, readTrlPref, readTrlSft, readVerifiers } from '../../support/training-formats.ts'
import { answered, createJournalWriter, createMemoryStage, limited, runOf, said, secret, writeEveryKind } from './journal.ts'

const stage = createMemoryStage()
const redactor = writeEveryKind(stage)
afterAll(() => stage.remove())

const setupWith = (known: Redactor) =>
  ({ config: { receipts: { path: join(stage.folder, 'none.jsonl'), hmac: true } }, paths: {}, redactor: known }) as never

function exported(query: ExportQuery, { of = stage, known = redactor } = {}) {
  const lines: string[] = []
  const parts: DataPart[] = []
  const summary = exportTrajectories({ memory: of.memory, setup: setupWith(known) }, query, (line, part) => {
    lines.push(line)
    parts.push(part)
    return true
  })
  return { lines, parts, summary }
}

const readers: { readonly [name in FormatName]: (line: string) => unknown } = {
  seed: readSeed,
  atif: readAtif,
  'trl-sft': readTrlSft,
  'trl-pref': readTrlPref,
  'trl-kto': readTrlKto,
  verifiers: readVerifiers,
  openai: readOpenAi,
}

describe.each(formatNames)('%s', (format) => {
  const { lines } = exported({ format })

  test('is read by an independent reader, line by line', () => {
    expect(lines.length).toBeGreaterThan(0)
    for (const line of lines) readers[format](line)
  })

  test('is the same byte for byte when it is exported again', () => expect(exported({ format }).lines).toEqual(lines))

  test('holds no secret, and no half of a character', () => {
    expect(lines.join('\n')).not.toContain(secret)
    expect(lines.every((line) => !/\\ud800(?!\\)/i.test(line))).toBe(true)
  })

  test('is what it was, to the letter', () => {
    const golden = join(import.meta.dir, 'golden', `${format}.jsonl`)
    const now = lines.map((line) => `${line}\n`).join('')
    if (process.env.WRITE_GOLDEN === 'yes') writeFileSync(golden, now)
    expect(now).toBe(readFileSync(golden, 'utf8'))
  })
})

test('the reward comes from executed checks alone: what the model says decides nothing', () => {
  const { lines, summary } = exported({ format: 'seed' })
  const records = lines.map((line) => JSON.parse(line))
  expect(records.map(({ prompt, outcome, reward, iterations }) => [prompt, outcome, reward, iterations])).toEqual([
    ['Mend the sum', 'success', 1, 2],
    ['Mend the sum', 'failure', 0, 2],
    ['Build it', 'success', 1, 1],
  ])
  expect(summary).toMatchObject({ records: 3, tasks: 2, passed: 2, failed: 1, left: { running: 1, unchecked: 3 } })
})

test('a step says what was read, done and got back; a refusal and broken arguments are steps too', () => {
  const [line = ''] = exported({ format: 'seed' }).lines
  const { steps } = JSON.parse(line)
  expect(steps.map(({ action }: { action: string }) => action)).toEqual([
    'npm test',
    'shell {"command": rm',
    'It is done',
    'sed -i s/-/+/ sum.js',
    'file_read {"path":"keys"}',
    'Now it is',
  ])
  expect(steps[0]).toMatchObject({ state: 'Mend the sum', thinking: 'Look first\n\nI look' })
  expect(steps[1].observation).toBe('Denied by safety: outside the workspace')
  expect(steps[2]).toMatchObject({
    state: `${steps[0].observation}\n\n${steps[1].observation}`,
    observation: 'The check "npm test" failed:\n1 test failed',
  })
  expect(steps[3]).toMatchObject({ state: steps[2].observation, observation: 'Failed: it broke' })
})

test('a run that goes on with an interrupted one is one trajectory with it', () => {
  const [line = ''] = exported({ format: 'trl-sft', tasks: ['Build it'] }).lines
  const { answers, calls, results, provenance } = readTrlSft(line)
  expect([answers, calls, results]).toEqual([['', 'Built'], ['shell {"command":"make"}'], ['built']])
  expect(provenance).toMatchObject({ run_id: 'run-5', ending: 'answered' })
  expect(exported({ format: 'atif', runs: ['run-4'] }).lines).toHaveLength(1)
})

test('what has no place for a reward has no failures; what needs none has runs without checks', () => {
  for (const format of ['openai', 'trl-sft'] as const)
    expect(exported({ format }).summary).toMatchObject({ passed: 2, failed: 0, unchecked: 1, left: { unfit: 3, running: 1 } })
  const told = exported({ format: 'atif' }).lines.map(readAtif)
  expect(told.map(({ prompt, reward }) => [prompt, reward])).toEqual([
    ['Mend the sum', 1],
    ['Mend the sum', 0],
    ['Say hello', undefined],
    ['Build it', 1],
    ['Nobody answers', undefined],
    ['Half of it', undefined],
  ])
  // Calls of people and of checks have no model.
  expect(told.map(({ prompt }) => prompt)).not.toContain('check npm test')
})

test('all formats tell the same of a run', () => {
  const only = { runs: ['run-1'] }
  const one = <T>(format: FormatName, read: (line: string) => T) => read(exported({ format, ...only }).lines[0] ?? '')
  const atif = one('atif', readAtif)
  for (const told of [one('trl-sft', readTrlSft), one('trl-kto', readTrlKto), one('verifiers', readVerifiers)]) {
    expect({ prompt: told.prompt, answers: told.answers, results: told.results, reward: told.reward }).toEqual({
      ...{ prompt: atif.prompt, answers: atif.answers, results: atif.results, reward: 1 },
    })
  }
  expect(one('openai', readOpenAi)).toMatchObject({ prompt: atif.prompt, answers: atif.answers, results: atif.results })
  expect(one('seed', readSeed).results.filter((text) => atif.results.includes(text))).toEqual([...atif.results])
  expect(atif.calls.filter((call) => !call.startsWith('shell {}'))).toEqual(
    one('trl-sft', readTrlSft).calls.filter((call) => !call.startsWith('shell {}')),
  )
})

test('a record says where it comes from: checks with exit codes, digests, versions, secrets', () => {
  const [line = ''] = exported({ format: 'trl-kto' }).lines
  const { provenance, task_id } = JSON.parse(line)
  expect(task_id).toBe(new Bun.CryptoHasher('sha256').update('Mend the sum').digest('hex'))
  expect(provenance).toMatchObject({
    run_id: 'run-1',
    model: 'mock/mock-1',
    ending: 'answered',
    checks: [
      { name: 'npm test', tier: 0, digest: 'c'.repeat(64), iteration: 1, pass: false, exit: 1 },
      { name: 'npm test', tier: 0, digest: 'c'.repeat(64), iteration: 2, pass: true, exit: 0 },
    ],
    redactions: 2,
  })
  expect(provenance.journal_sha256).toBe(stage.memory.journal.stored('run-1').at(-1)?.digest)
})

describe('pairs', () => {
  function journalOf(outcomes: readonly boolean[]) {
    const own = createMemoryStage()
    const to = createJournalWriter(own)
    for (const [at, good] of outcomes.entries()) {
      const run = runOf(at)
      to.beginChecked(run, 'One task')
      to.reply(run, [said(`answer ${at}`)])
      to.checked(run, 1, good)
      to.end(run, good ? answered : limited)
    }
    return own
  }
  const pairsOf = (outcomes: readonly boolean[]) => {
    const own = journalOf(outcomes)
    const { lines, summary } = exported({ format: 'trl-pref' }, { of: own })
    own.remove()
    const pairs = lines.map(readTrlPref).map(({ provenance: { chosen, rejected } }) => [chosen.run_id, rejected.run_id])
    return { pairs, summary }
  }

  test('are of a success and a failure of one task; each run is in at least one', () => {
    const { pairs, summary } = pairsOf([false, true, false, true, false])
    expect(pairs).toEqual([
      ['run-1', 'run-0'],
      ['run-3', 'run-2'],
      ['run-1', 'run-4'],
    ])
    expect(summary).toMatchObject({ records: 3, tasks: 1, passed: 2, failed: 3 })
  })

  test('are none without a success, or without a failure', () => {
    for (const outcomes of [[true, true], [false]])
      expect(pairsOf(outcomes)).toMatchObject({ pairs: [], summary: { records: 0, tasks: 0, left: { unpaired: outcomes.length } } })
  })
})

describe('left out and said', () => {
  test('a run whose journal was altered is named, and has no record', () => {
    const own = createMemoryStage()
    const known = writeEveryKind(own)
    own.memory.store.script(`UPDATE journal SET body = replace(body, 'It is done', 'It was not') WHERE run_id = 'run-1'`)
    const { lines, summary } = exported({ format: 'seed' }, { of: own, known })
    expect(lines).toHaveLength(2)
    expect(summary.altered).toEqual([expect.stringContaining('run-1: event ')])
    own.remove()
  })

  test('a check that could not be run gives no reward', () => {
    const own = createMemoryStage()
    const to = createJournalWriter(own)
    to.beginChecked(runOf(1), 'One task')
    to.reply(runOf(1), [said('done')])
    to.external(runOf(1), { type: 'check.done', id: 'check-1', pass: false, evidence: 'no such command', notRun: true })
    to.end(runOf(1), { stop: 'error', code: 'checks_failed', message: 'a check could not be run' })
    expect(exported({ format: 'seed' }, { of: own }).summary).toMatchObject({ records: 0, left: { unchecked: 1 } })
    own.remove()
  })

  test('passed checks are no success when the run did not end well', () => {
    const own = createMemoryStage()
    const to = createJournalWriter(own)
    to.beginChecked(runOf(1), 'One task')
    to.reply(runOf(1), [said('done')])
    to.checked(runOf(1), 1, true)
    to.end(runOf(1), { stop: 'error', code: 'checks_failed', message: 'the final files do not pass' })
    expect(exported({ format: 'seed' }, { of: own }).lines.map((line) => JSON.parse(line).reward)).toEqual([0])
    own.remove()
  })
})

test('the check of a schedule is the verdict of the runs that the schedule began, if it was executed', () => {
  const own = createMemoryStage()
  const to = createJournalWriter(own)
  const verdicts = ['passed', 'exit code 3', 'timed out after 1 s', 'not run: no such folder']
  for (const [at, checked] of verdicts.entries()) {
    to.begin(runOf(at), 'Every night')
    to.reply(runOf(at), [said('done')])
    to.end(runOf(at), answered)
    const row = `'s', ${at}, 0, 'good', 0, 'nobody', 'time', 0, 'run-${at}', '${checked}'`
    own.memory.store.script(
      `INSERT INTO schedule_runs(schedule_id, due, attempt, state, fired, owner, started_by, passed_over, run_id, checked) VALUES (${row})`,
    )
  }
  const { lines, summary } = exported({ format: 'trl-kto' }, { of: own })
  const told = lines.map((line) => ({ ...readTrlKto(line), check: JSON.parse(line).provenance.checks }))
  const check = { name: 'the check of a schedule', tier: 0, iteration: 1 }
  expect(told.map(({ reward, check }) => [reward, check])).toEqual([
    [1, [{ ...check, pass: true, exit: 0 }]],
    [0, [{ ...check, pass: false, exit: 3 }]],
    [0, [{ ...check, pass: false }]],
  ])
  expect(summary.left.unchecked).toBe(1)
  own.remove()
})

test('runs are chosen by id, by task and by time', () => {
  const prompts = (query: Omit<ExportQuery, 'format'>) => exported({ format: 'atif', ...query }).lines.map((line) => readAtif(line).prompt)
  expect(prompts({ runs: ['run-3'] })).toEqual(['Say hello'])
  expect(prompts({ tasks: ['Say hello', new Bun.CryptoHasher('sha256').update('Build it').digest('hex').slice(0, 12)] })).toEqual([
    'Say hello',
    'Build it',
  ])
  const started = stage.memory.journal.run('run-7')?.started
  expect(prompts({ since: started })).toEqual(['Nobody answers', 'Half of it'])
  expect(() => exported({ format: 'atif', tasks: ['None such'] })).toThrow('no run has such a task')
  expect(() => exported({ format: 'atif', runs: ['run-77'] })).toThrow('no run "run-77"')
})

test('a task is for training or for tests, whatever is exported with it', () => {
  const own = createMemoryStage()
  const to = createJournalWriter(own)
  for (let at = 0; at < 200; at++) {
    to.beginChecked(runOf(at), `task ${at % 97}`)
    to.reply(runOf(at), [said('done')])
    to.checked(runOf(at), 1, true)
    to.end(runOf(at), answered)
  }
  const { lines, parts } = exported({ format: 'seed' }, { of: own })
  const tests = lines.flatMap((line, at) => (parts[at] === 'test' ? [JSON.parse(line).prompt] : []))
  expect(tests.length).toBeGreaterThan(4)
  expect(tests.length).toBeLessThan(40)
  expect(lines.every((line, at) => tests.includes(JSON.parse(line).prompt) === (parts[at] === 'test'))).toBe(true)
  // The runs of a task stand together.
  const prompts = lines.map((line) => JSON.parse(line).prompt)
  expect(prompts).toEqual(prompts.toSorted((a, b) => Number(a.slice(5)) - Number(b.slice(5))))
  const alone = exported({ format: 'seed', tasks: [tests[0] ?? ''] }, { of: own })
  expect(alone.parts).toEqual(['test', 'test'])
  own.remove()
})

test('a record that does not fit its schema is an error with the name of the run, and not a bad line', () => {
  const own = createMemoryStage()
  const to = createJournalWriter(own)
  to.begin(runOf(1), 'Odd')
  to.external(runOf(1), {
    ...{ type: 'model.done', parts: [said('x')], proposals: [], model: 'mock-1' },
    usage: { inputTokens: 1.5, outputTokens: 2 },
  })
  to.end(runOf(1), answered)
  expect(() => exported({ format: 'atif' }, { of: own })).toThrow('run-1 cannot be written as atif: steps.1.metrics.prompt_tokens')
  own.remove()
})

test('huge outputs are written whole', () => {
  const own = createMemoryStage()
  const to = createJournalWriter(own)
  const huge = 'ä\u0001'.repeat(1_000_000)
  to.begin(runOf(1), 'Huge')
  to.reply(runOf(1), [{ type: 'call', id: 'a', name: 'shell', input: { command: 'cat' } }])
  to.act(runOf(1), { id: 'a', name: 'shell', input: { command: 'cat' } }, huge)
  to.reply(runOf(1), [said('read')])
  to.end(runOf(1), answered)
  expect(readOpenAi(exported({ format: 'openai' }, { of: own, known: createRedactor() }).lines[0] ?? '').results).toEqual([huge])
  own.remove()
})

test('the independent reader refuses what the formats do not allow', () => {
  const wrong: readonly (readonly [FormatName, (record: { steps: { step_id: number }[] }) => unknown])[] = [
    ['seed', (record) => ({ ...record, extra: 1 })],
    ['atif', (record) => ({ ...record, provenance: {} })],
    ['atif', (record) => ({ ...record, steps: record.steps.map((step) => ({ ...step, step_id: step.step_id + 1 })) })],
    ['trl-sft', (record) => ({ ...record, completion: [] })],
    ['trl-kto', (record) => ({ ...record, label: 1 })],
    ['verifiers', (record) => ({ ...record, reward: '1' })],
    ['openai', (record) => ({ ...record, reward: 1 })],
  ]
  for (const [format, change] of wrong) {
    const [line = ''] = exported({ format }).lines
    expect(() => readers[format](JSON.stringify(change(JSON.parse(line))))).toThrow()
  }
})
