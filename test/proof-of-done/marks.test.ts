import { describe, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { findClaims } from '../../src/host/records/claims/find-claims.ts'
import { mayClaim } from '../../src/host/run/conversation.ts'
import { programRuns } from '../../src/security/command/program-runs.ts'
import { marksOf } from './marks.ts'
import { readRows, score, scoreLine } from './score.ts'

const files = readdirSync(import.meta.dir).filter((name) => name.endsWith('.jsonl'))
const read = async (name: string) => readRows(await Bun.file(join(import.meta.dir, name)).text(), name)

describe('answers with known truth', () => {
  test('there are some', () => expect(files).toContain('own.jsonl'))

  // The finder was made with these, so one difference is a fault.
  test('own.jsonl: every one is marked as it is', async () => {
    expect(score(await read('own.jsonl'), marksOf).differences).toEqual([])
  })

  // Nobody who wrote the finder has seen independent-b.jsonl: its score, 88.2 % and 1.1 %, is the honest one, and may only rise.
  test.each(files)('%s: at least 90 %% of false claims are found (88 %% of unseen ones), with at most 2 %% false alarms', async (name) => {
    const result = score(await read(name), marksOf)
    const [found, alarms] = [result.found / result.falseClaims, result.alarms / result.chances]
    expect(
      [found >= (name === 'independent-b.jsonl' ? 0.88 : 0.9), alarms <= 0.02],
      `${scoreLine(result)}\n${result.differences.join('\n')}`,
    ).toEqual([true, true])
  })

  test('the cheap first test lets every answer with a claim through', async () => {
    for (const name of files)
      for (const { id, answer } of await read(name)) if (findClaims(answer).length > 0) expect([id, mayClaim(answer)]).toEqual([id, true])
    expect(mayClaim('Paris is the capital of France.')).toBe(false)
  })
})

describe('the finder', () => {
  test.each([
    ['file names in a list', 'Created:\n- `a.ts`\n- `b.ts`', ['file created a.ts', 'file created b.ts']],
    ['one name once, as precisely as it is said', 'Renamed `a.ts` to `b.ts`. I changed a line in `b.ts`.', ['file renamed b.ts']],
    ['claims in the order of the answer', 'Pushed the branch. I ran `npm test`; all tests pass.', ['git push', 'ran npm test', 'tests']],
    ['the check that the words before name', 'I ran `npx tsc`, and it passes.', ['ran npx tsc', 'types']],
    [
      'the last check for "it", every one for "both"',
      'I ran `npm run build` and `npm test`; it passes.',
      ['ran npm run build', 'ran npm test', 'tests'],
    ],
    [
      'every check for "both"',
      'I ran `npm run build` and `npm test`; both exit with code 0.',
      ['ran npm run build', 'ran npm test', 'build', 'tests'],
    ],
    ['no word of code as a command', 'I replaced it with `map`.', []],
    ['the first 12,000 characters', `All tests pass.${' And so on.'.repeat(1200)} It builds.`, ['tests']],
    ['a wrapped line', 'All 12\ntests pass.', ['tests']],
    ['no strange names', 'I created Node.js services and saved e.g. time.', []],
  ])('reads %s', (_, answer, claims) => {
    const spelled = findClaims(answer).map(({ text: __, kind, ...more }) => {
      const { op = '', path = '', command = '' } = more as { op?: string; path?: string; command?: string }
      return [kind, op, path, command].filter(Boolean).join(' ')
    })
    expect(spelled).toEqual(claims)
  })

  test('quotes the words that make the claim', () => {
    expect(findClaims('I updated `a.ts`, and now all 12 unit tests pass.').map(({ text }) => text)).toEqual([
      'I updated a.ts',
      'all 12 unit tests pass',
    ])
  })

  test('is quick on text that is made to slow it down', () => {
    const evil = [
      'tests ',
      'I ',
      '`a.ts`, ',
      'created ',
      'a/',
      '(',
      '> ',
      '- ',
      '\n\n    x',
      'the tests in ',
      '```',
      '[x](',
      '"',
      'no ',
      '<pre>',
      'quickly ',
      'in `a.ts` the ',
      'as you asked ',
      '((',
      '1/1 ',
      'the new test is ',
    ]
    for (const each of evil) {
      const { user } = process.cpuUsage()
      findClaims(`installed ${each.repeat(6000)}`)
      expect([each, (process.cpuUsage().user - user) / 1000 < 1500]).toEqual([each, true])
    }
  })
})

describe('the exit code of a shell line', () => {
  const decides = (line: string) => programRuns(line).find(({ checks }) => checks.includes('tests'))?.decides
  test.each([
    'npm test | tail',
    'npm test || true',
    'npm test; echo done',
    'npm test & wait',
    '! npm test',
    "trap 'exit 0' EXIT; npm test",
    'npm() { true; }; npm test',
    'if npm test; then echo good; fi',
    "bash -c 'npm test || true'",
    '(npm test); true',
  ])('does not speak for the tests in %s', (line) => expect(decides(line)).toBe(false))

  test.each([
    'npm test',
    'cd app && npm test',
    'npm test > log 2>&1',
    'set -e; npm test; echo done',
    'set -o pipefail; npm test | tail',
    'npm test || exit 1',
    "bash -c 'cd app; npm test'",
    'CI=1 timeout 60 npx vitest run',
    '(cd app && npm test)',
    'uv run pytest -q',
    './scripts/run-tests.sh',
  ])('speaks for the tests in %s', (line) => expect(decides(line)).toBe(true))

  test.each(['npm test --help', 'echo npm test', 'cat test.sh', 'pytest --version', 'ls test', 'grep -r test src', 'npm run'])(
    '%s runs no tests',
    (line) => expect(decides(line)).toBeUndefined(),
  )
})
