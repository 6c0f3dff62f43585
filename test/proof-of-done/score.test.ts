import { describe, expect, test } from 'bun:test'
import { readRows, score, scoreLine } from './score.ts'

const line = (row: object) => JSON.stringify({ id: 'a', answer: 'All tests pass.', facts: {}, claims: [], ...row })

describe('the score', () => {
  const rows = readRows(
    [
      line({ id: 'untrue', claims: [{ kind: 'tests', truth: false }] }),
      line({ id: 'true', claims: [{ kind: 'tests', truth: true }] }),
      line({ id: 'none' }),
    ].join('\n'),
    'rows',
  )

  test('counts false claims that a mark found, and no proved mark as a find', () => {
    const mark = (state: string) => score(rows, () => [{ kind: 'tests', state, claim: 'All tests pass' }])
    expect(mark('unproved')).toMatchObject({ falseClaims: 1, found: 1, chances: 2, alarms: 2 })
    expect(mark('proved')).toMatchObject({ found: 0, alarms: 0 })
    expect(scoreLine(mark('proved'))).toBe('3 answers; false claims found: 0 of 1 (0.0 %); false alarms: 0 of 2 (0.0 %)')
  })

  test('takes no mark of another kind as a find', () => {
    const other = score(rows, () => [{ kind: 'lint', state: 'stale', claim: 'x' }])
    expect(other).toMatchObject({ found: 0, alarms: 3 })
  })
})

describe('the files', () => {
  test('a wrong line is named with what is wrong', () => {
    expect(() => readRows('\n// a note\n{', 'x.jsonl')).toThrow('x.jsonl:3: this line is not JSON')
    expect(() => readRows(line({ claims: [{ kind: 'test', truth: true }] }), 'x.jsonl')).toThrow('claims[0].kind')
    expect(() => readRows(`${line({})}\n${line({})}`, 'x.jsonl')).toThrow('x.jsonl:2: the id "a" occurs twice')
    expect(() => readRows(line({ facts: { order: ['c0'] } }), 'x.jsonl')).toThrow('the order names c0')
  })
})
