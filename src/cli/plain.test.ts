import { expect, test } from 'bun:test'
import { buildApplication, run } from '@stricli/core'
import fc from 'fast-check'
import type { CliContext } from '../channels/terminal/context.ts'
import { printTo } from '../channels/terminal/printer.ts'
import { createContext } from './context.ts'
import { plainFlags, plainQuestion } from './plain.ts'
import { agent } from './routes/everyday.ts'
import { filter } from './routes/filter.ts'
import type { AgentFlags, FilterFlags } from './routes/types.ts'

/** What the argument parser makes of the words; undefined when it refuses them. */
async function parsed(words: readonly string[]): Promise<AgentFlags | undefined> {
  const seen: AgentFlags[] = []
  const command: typeof agent = { ...agent, loader: async () => (flags) => void seen.push(flags) }
  await parse(command, words)
  return seen[0]
}

/** The same of the filter. */
async function parsedQuestion(words: readonly string[]): Promise<{ flags: FilterFlags; words: readonly string[] } | undefined> {
  const seen: { flags: FilterFlags; words: readonly string[] }[] = []
  const command: typeof filter = {
    ...filter,
    loader:
      async () =>
      (flags, ...asked) =>
        void seen.push({ flags, words: Object.values(asked).map(String) }),
  }
  await parse(command, words)
  return seen[0]
}

async function parse(command: Parameters<typeof buildApplication<CliContext>>[0], words: readonly string[]): Promise<void> {
  const app = buildApplication(command, {
    name: 'braidclaw',
    scanner: { caseStyle: 'allow-kebab-for-camel', allowArgumentEscapeSequence: true },
  })
  const context = createContext({ HOME: '/' })
  const process = { ...context.process, stderr: printTo(() => {}, false) }
  await run(app, words, { ...context, process })
}

const word = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.constantFrom('-m', '--message', '-C', '--workspace', '--model', '--resume', '--agent', '-s', '--system', '--tools'),
  },
  { weight: 2, arbitrary: fc.constantFrom('-c', '--continue', '--json', '--approve-all-medium') },
  {
    weight: 1,
    arbitrary: fc.constantFrom('--', '', '-', '-cm', '--no-json', '--message=x', '--approveAllMedium', '-m=x', '--max-turns', '5'),
  },
  { weight: 4, arbitrary: fc.constantFrom('hello', 'two words', 'a=b', 'bench/x', "it's", 'ü') },
)

test('whatever is read here is what the parser would have read', async () => {
  let read = 0
  const same = fc.asyncProperty(fc.array(word, { maxLength: 7 }), async (words) => {
    const flags = plainFlags(['agent', ...words])
    if (flags === undefined) return
    read += 1
    expect(await parsed(words)).toEqual(flags)
  })
  await fc.assert(same, { numRuns: 3000 })
  expect(read).toBeGreaterThan(100)
})

test('whatever question is read here is what the parser would have read', async () => {
  let read = 0
  const same = fc.asyncProperty(fc.array(word, { maxLength: 6 }), async (words) => {
    const question = plainQuestion(words)
    if (question === undefined) return
    read += 1
    expect<unknown>(await parsedQuestion(words)).toEqual({ flags: question.flags, words: question.words })
    expect(question.escaped).toBe(words.includes('--'))
  })
  await fc.assert(same, { numRuns: 3000 })
  expect(read).toBeGreaterThan(100)
})

test.each([[['-s']], [['-s', '-m', 'x']], [['-m', 'a', '-m', 'b']], [['-x', 'hello']], [['hello', '--max-turns', '3']], [['']]])(
  'the question %j is left to the parser',
  (words) => {
    expect(plainQuestion(words)).toBeUndefined()
  },
)

test.each([
  ['memory', 'list'],
  ['agent', '--help'],
  ['agent', '-m'],
  ['agent', '-m', '-x'],
  ['agent', 'hello'],
  ['agent', '-m', 'a', '-m', 'b'],
  [],
])('%s %s %s %s %s is left to the parser', (...words) => {
  expect(plainFlags(words)).toBeUndefined()
})

test('everyday words are read here', () => {
  expect(plainFlags(['agent', '-m', 'What is it?', '--model', 'local/mock', '-c', '--json'])).toEqual({
    message: 'What is it?',
    model: 'local/mock',
    continue: true,
    json: true,
  })
})
