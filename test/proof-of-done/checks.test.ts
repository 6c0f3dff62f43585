import { expect, test } from 'bun:test'
import { marksOfRun } from '../../src/host/records/claims/proof-of-run.ts'
import type { JsonObject } from '../../src/kit/json.ts'
import type { CheckFinding } from '../../src/runtime/event.ts'

const passed = { pass: true, evidence: '', tree: 't1', exit: 0 }
const failed = { pass: false, evidence: 'no', tree: 't1', exit: 2 }

/** Returns the marks of a wiggum run whose only answers are this one, each followed by some findings of its checks. */
async function marks(answer: string, checks: readonly string[], findings: readonly (readonly CheckFinding[])[]) {
  const list = checks.map((name) => ({ name, tier: name === 'npx playwright test' ? 2 : 0, digest: 'd' }))
  const start = { prompt: 'go', mode: 'wiggum', at: 1, model: 'm', wiggum: { checks: list, maxIterations: 9, maxSame: 9 } }
  const reply = { parts: [{ type: 'text', text: answer }], proposals: [], usage: { inputTokens: 1, outputTokens: 1 }, model: 'm' }
  const bodies = findings.flatMap((round) => [
    { type: 'model.done', ...reply },
    ...round.map((finding, at) => ({ type: 'check.done', id: `check-${at + 1}`, ...finding })),
    { type: 'retry', evidence: 'again' },
  ]) as (JsonObject & { type: string })[]
  const events = [{ type: 'run.start', ...start } as JsonObject & { type: string }, ...bodies.slice(0, -1)].map((body, seq) => ({
    ...{ seq, kind: body.type === 'retry' ? ('note' as const) : ('external' as const) },
    ...{ type: body.type, at: seq, body },
  }))
  const config = { workspaceDir: import.meta.dir }
  const setup = { config, paths: {}, log() {} } as never
  const found = await marksOfRun({ setup, journal: { events: () => events, runs: () => [] }, runId: 'run_1', conversationId: 'c' })
  return found.map(({ kind, state, why }) => `${kind} ${state}: ${why}`)
}

const claim = 'All tests pass, and lint is clean.'

test('a passed check of a wiggum run proves what its program proves, and nothing else', async () => {
  expect(await marks(claim, ['npm test', 'npm run lint'], [[passed, passed]])).toEqual([
    'tests proved: `npm test` exited 0 and nothing changed since',
    'lint proved: `npm run lint` exited 0 and nothing changed since',
  ])
  expect(await marks(claim, ['npm run lint'], [[passed]])).toEqual([
    'tests unproved: nothing in this turn ran the tests',
    'lint proved: `npm run lint` exited 0 and nothing changed since',
  ])
})

test('a failed check contradicts, also one that failed with exit code 0; a check that could not run says nothing', async () => {
  expect((await marks('All tests pass.', ['npm test'], [[failed]]))[0]).toStartWith(
    'tests contradicted: the last run of `npm test` exited 2',
  )
  expect((await marks('All tests pass.', ['npm test'], [[{ ...failed, exit: 0 }]]))[0]).toStartWith('tests contradicted')
  expect((await marks('All tests pass.', ['npm test'], [[{ ...failed, notRun: true }]]))[0]).toStartWith('tests unproved')
})

test('each check is known by its turn, in every iteration', async () => {
  const found = await marks(
    claim,
    ['npm run lint', 'npm test'],
    [
      [passed, failed],
      [passed, passed],
    ],
  )
  expect(found.map((line) => line.split(':')[0])).toEqual(['tests proved', 'lint proved'])
})

test('a check that saw other files than a later one is stale, and the exit code of a pipe proves nothing', async () => {
  const other = { ...passed, tree: 't2' }
  expect(await marks('Lint is clean.', ['npm run lint', 'npm test'], [[passed, other]])).toEqual([
    'lint stale: `npm test` saw other files after `npm run lint` ran',
  ])
  expect((await marks('All tests pass.', ['npm test | tail'], [[passed]]))[0]).toStartWith('tests unproved')
  expect((await marks('All tests pass.', ['npx playwright test'], [[passed]]))[0]).toStartWith('tests unproved')
})
