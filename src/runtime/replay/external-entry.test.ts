import { describe, expect, test } from 'bun:test'
import { consequenceIn, externalOf } from './external-entry.ts'

const external = (type: string, body: object) => externalOf({ seq: 1, kind: 'external', type, body: { type, ...body } })
const start = { prompt: 'go', mode: 'wiggum', at: 1, model: 'm' }
const wiggum = { checks: [{ name: 'npm test', tier: 0, digest: 'd' }], maxIterations: 3, maxSame: 2 }
const continued = { limits: wiggum, iteration: 2, stage: 'checking', evidence: '', same: { key: '', times: 0 }, passed: 0, tree: null }
const continues = { run: 'run_0', asked: 'go', proposals: [] }

describe('the entries of a wiggum run', () => {
  test.each([
    ['run.start', { ...start, wiggum }],
    ['run.start', { ...start, wiggum: { ...wiggum, until: 5 }, continues: { ...continues, wiggum: continued } }],
    ['check.done', { id: 'check-1', pass: false, evidence: 'no', tree: 't', ms: 3, exit: 1 }],
    ['check.done', { id: 'check-1', pass: false, evidence: 'no', notRun: true }],
    ['mode.set', { mode: 'wiggum', maxIterations: 3 }],
  ])('%s is read', (type, body) => {
    expect(external(type, body)).toEqual({ type, ...body } as never)
  })

  test.each([
    ['run.start', { ...start, wiggum: {} }],
    ['run.start', { ...start, wiggum: { ...wiggum, checks: [{ name: 'npm test' }] } }],
    ['run.start', { ...start, wiggum, continues: { ...continues, wiggum: { ...continued, stage: 'passed' } } }],
    ['check.done', { id: 'check-1', pass: 'yes', evidence: 'no' }],
    ['check.done', { id: 'check-1', pass: true, evidence: '', tree: 7 }],
    ['mode.set', { mode: 'wiggum', maxIterations: 'many' }],
  ])('%s of another shape is refused', (type, body) => {
    expect(external(type, body)).toBeUndefined()
  })

  test('a start and a check of an older journal are still read', () => {
    expect(external('run.start', { ...start, mode: 'structured' })).toBeDefined()
    expect(external('check.done', { id: 'c', pass: true, evidence: '' })).toBeDefined()
  })

  test('what the model read of a failed check is a consequence', () => {
    const retry = { type: 'retry', evidence: 'no' }
    expect(consequenceIn({ seq: 1, kind: 'note', type: 'retry', body: retry })).toEqual(retry as never)
    expect(consequenceIn({ seq: 1, kind: 'note', type: 'retry', body: { type: 'retry' } })).toBeUndefined()
  })
})
