import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Arguments, Flags } from './command.ts'
import { isFlag, scan } from './scan.ts'

const flags = {
  message: { type: 'text', short: 'm', about: '' },
  continue: { type: 'boolean', short: 'c', about: '' },
  json: { type: 'boolean', about: '' },
  approveAll: { type: 'boolean', also: 'auto', about: '' },
  sandbox: { type: 'choice', values: ['auto', 'none'], about: '' },
  maxTurns: { type: 'whole', min: 1, max: 1000, unit: 'rounds', about: '' },
  limit: { type: 'whole', default: 20, about: '' },
  bridge: { type: 'text', many: true, about: '' },
} as const satisfies Flags
const args = {
  id: { type: 'whole', about: '' },
  rest: { type: 'text', many: true, optional: true, about: '' },
} as const satisfies Arguments

const faults = (...line: string[]) => scan({ flags }, line).faults
const found = (...line: string[]) => {
  const {
    flags: given,
    words,
    faults: wrong,
  } = scan({ flags, args: { words: { type: 'text', many: true, optional: true, about: '' } } }, line)
  expect(wrong).toEqual([])
  const { limit, ...others } = given
  return [limit === 20 ? others : given, ...words]
}

describe('what is wrong is told', () => {
  test.each([
    [['--nope'], 'no flag "--nope"'],
    [['-z'], 'no flag "-z"'],
    [['--mesage', 'x'], 'no flag "--mesage"; did you mean "--message"?'],
    [['--Message', 'x'], 'no flag "--Message"; did you mean "--message"?'],
    [['--autp'], 'no flag "--autp"; did you mean "--auto"?'],
    [['--auto', '--approve-all'], '--approve-all is given twice'],
    [['--no-json'], 'no flag "--no-json"; did you mean "--json"?'],
    [['--hlep'], 'no flag "--hlep"; did you mean "--help"?'],
    [['--constructor'], 'no flag "--constructor"'],
    [['--message'], '--message needs a value'],
    [['--message', '--json'], '--message needs a value'],
    [['--message', '--'], '--message needs a value'],
    [['-mc', 'x'], '--message needs a value'],
    [['-m', 'a', '-m', 'b'], '--message is given twice: "a" and "b"; pass one'],
    [['--json', '--json'], '--json is given twice'],
    [['-cc'], '--continue is given twice'],
    [['--json=maybe'], '--json takes no value, or yes or no; got "maybe"'],
    [['--sandbox', 'nonee'], '--sandbox is one of auto, none; got "nonee"; did you mean "none"?'],
    [['--max-turns', 'x'], '--max-turns: "x" is not a whole number'],
    [['--max-turns', ''], '--max-turns: "" is not a whole number'],
    [['--max-turns', '1.5'], '--max-turns: "1.5" is not a whole number'],
    [['--max-turns', '-1'], '--max-turns: -1 is out of range; must be from 1 to 1000 (rounds)'],
    [['--max-turns=0'], '--max-turns: 0 is out of range; must be from 1 to 1000 (rounds)'],
    [['--limit', '99999999999'], '--limit: 99999999999 is out of range; must be from 0 to 999999999'],
    [['hello'], 'too many arguments: none is expected, got "hello"'],
    [['-'], 'too many arguments: none is expected, got "-"'],
    [['--', '--json'], 'too many arguments: none is expected, got "--json"'],
  ])('%j', (line, says) => {
    expect<readonly string[]>(faults(...line).slice(0, 1)).toEqual([says])
  })

  test('all of it at once, and nothing twice: a word behind an unknown flag may be its value', () => {
    expect(faults('--nope', 'x', '-z', '--jsno', '--sandbox', 'bubble', '--max-turns')).toEqual([
      'no flag "--nope"',
      'no flag "-z"',
      'no flag "--jsno"; did you mean "--json"?',
      '--max-turns needs a value',
      '--sandbox is one of auto, none; got "bubble"',
    ])
    expect(faults('--mesage', 'hello')).toEqual(['no flag "--mesage"; did you mean "--message"?'])
    expect(faults('--mesage')).toEqual(['no flag "--mesage"; did you mean "--message"?'])
  })

  test('of arguments: what is missing, what is wrong, what is too much', () => {
    expect(scan({ args }, []).faults).toEqual(['<id> is missing'])
    expect(scan({ args }, ['-1']).faults).toEqual(['<id>: -1 is out of range; must be from 0 to 999999999'])
    expect(scan({ args: { id: args.id } }, ['1', '2']).faults).toEqual(['too many arguments: only <id> is expected, got "2"'])
  })
})

describe('what is right is read', () => {
  test.each([
    [['-m', 'hello'], [{ message: 'hello' }]],
    [['--message', 'hello'], [{ message: 'hello' }]],
    [['--message=hello'], [{ message: 'hello' }]],
    [['-m=a=b'], [{ message: 'a=b' }]],
    [['--message='], [{ message: '' }]],
    [['--message=one\ntwo'], [{ message: 'one\ntwo' }]],
    [['-cm', 'hello'], [{ continue: true, message: 'hello' }]],
    [['-m', '-5'], [{ message: '-5' }]],
    [['-m', '- item'], [{ message: '- item' }]],
    [['-m', '--two words'], [{ message: '--two words' }]],
    [['--json=no'], [{ json: false }]],
    [['--json=YES'], [{ json: true }]],
    [['--maxTurns', '7'], [{ maxTurns: 7 }]],
    [['--max-turns', '1000', '--limit', '0'], [{ maxTurns: 1000, limit: 0 }]],
    [['--bridge', 'a', '--bridge', 'b'], [{ bridge: ['a', 'b'] }]],
    [
      ['a', '--json', 'b', '--', '-c', '--'],
      [{ json: true }, 'a', 'b', '-c', '--'],
    ],
  ])('%j', (line, gives) => {
    expect<unknown>(found(...line)).toEqual(gives)
  })

  test('one that may be given once, and several, of the words', () => {
    expect(scan({ args }, ['3', 'b', '-4']).args).toEqual({ id: 3, rest: ['b', '-4'] })
    expect(scan({ args }, ['3']).args).toEqual({ id: 3, rest: [] })
  })

  test('whatever the values are, they arrive as they stand', () => {
    const texts = fc.string({ unit: 'grapheme' })
    const whatever = fc.property(texts, fc.array(texts), fc.boolean(), (message, words, json) => {
      const given = isFlag(message) || message === '--' ? [`--message=${message}`] : ['-m', message]
      expect(found(...(json ? ['--json'] : []), ...given, '--', ...words)).toEqual([{ ...(json ? { json } : {}), message }, ...words])
    })
    fc.assert(whatever, { numRuns: 1000 })
  })
})
