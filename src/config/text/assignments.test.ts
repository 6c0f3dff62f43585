import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { readAssignments } from './assignments.ts'

const valuesOf = (text: string) => readAssignments(text).assignments.map(({ name, value }) => [name, value])
const oddOf = (text: string) => readAssignments(text).odd

test('what a shell would run is odd, named by its line, and never shown', () => {
  const text = [
    'source ~/.profile',
    'A=1; rm -rf secret',
    'B=two words',
    'C="never closed',
    'unset X',
    'D=x&',
    'E+=more',
    'F=(a b)',
    'export G',
    'set -a',
    'H=secret)',
    'I=a\\',
  ].join('\n')
  const { assignments, odd } = readAssignments(text)
  expect(assignments).toEqual([])
  expect(odd.map(({ line }) => line)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])
  expect(JSON.stringify(odd)).not.toMatch(/secret|profile/)
  expect(oddOf('B=two words')).toEqual([{ line: 1, why: 'has more words after the value; put a value with spaces into quotes' }])
})

test('substitutions stay text', () => {
  expect(valuesOf('A=$(touch /tmp/x)\nB=`id`\nC="$(id) $HOME"\nD=$HOME/${X}')).toEqual([
    ['A', '$(touch /tmp/x)'],
    ['B', '`id`'],
    ['C', '$(id) $HOME'],
    ['D', '$HOME/${X}'],
  ])
})

test('quotes, export, comments, white space, CRLF and a byte order mark', () => {
  const text = '\ufeff# head\r\n\r\n  export A=1  # one\nB=\nC=\'it "is"\'\nD="say \\"hi\\" \\n"\nE=a"b c"\'d\'\\ e\nF=a#b\nA=2'
  expect(readAssignments(text)).toEqual({
    assignments: [
      { name: 'A', value: '1', line: 3 },
      { name: 'B', value: '', line: 4 },
      { name: 'C', value: 'it "is"', line: 5 },
      { name: 'D', value: 'say "hi" \\n', line: 6 },
      { name: 'E', value: 'ab cd e', line: 7 },
      { name: 'F', value: 'a#b', line: 8 },
      { name: 'A', value: '2', line: 9 },
    ],
    odd: [],
  })
})

test('a shell reads the same values wherever nothing is substituted', async () => {
  const safe = fc.stringMatching(/^[ -~]{0,12}$/).filter((text) => !/[$`]/.test(text))
  const lines = fc.array(fc.tuple(fc.constantFrom('', 'export '), safe, fc.constantFrom('', ' ', ' # x')), { maxLength: 20 })
  await fc.assert(
    fc.asyncProperty(lines, async (given) => {
      const text = given.map(([before, value, after]) => `${before}V=${value}${after}`)
      for (const line of text) {
        const { assignments, odd } = readAssignments(line)
        if (odd.length > 0 || assignments[0]?.value.includes('~')) continue
        const shell = Bun.spawnSync(['sh', '-c', `${line}\nprintf %s "$V"`], { env: { PATH: '/usr/bin:/bin' } })
        expect([line, shell.stdout.toString(), shell.exitCode]).toEqual([line, assignments[0]?.value ?? '', 0])
      }
    }),
    { numRuns: 25 },
  )
})

test('anything at all is read without a throw, and every line is accounted for', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (text) => {
      const { assignments, odd } = readAssignments(text)
      const told = [...assignments, ...odd].map(({ line }) => line)
      const lines = text.replace(/^\ufeff/, '').split('\n')
      const silent = lines.filter((line, index) => !told.includes(index + 1) && !/^\s*(#.*)?\r?$/s.test(line))
      expect(silent).toEqual([])
      expect(new Set(told).size).toBe(told.length)
    }),
  )
})
