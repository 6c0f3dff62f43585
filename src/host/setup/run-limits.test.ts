import { expect, test } from 'bun:test'
import { configOf, minimum } from '../../config/load.fixture.ts'
import { cpuSecondsOf } from '../toolset/sandbox/command-sandbox.ts'
import { historyTokens, runLimits, shellTimesOf } from './run-limits.ts'

const knowing = (window: number, scale = 1) => ({ tokens: () => window, scale: () => scale })
const limitsOf = (text: string) => configOf({ user: `[limits]\n${text}` }).limits

test('earlier turns get two fifths of the window, 128,000 tokens at most, and no more than the file says', () => {
  const config = configOf({ user: minimum })
  expect([1_000_000, 200_000, 128_000, 32_768, 4096].map((window) => historyTokens(config, knowing(window)))).toEqual([
    128_000, 80_000, 51_200, 13_107, 1638,
  ])
  const set = configOf({ user: '[limits]\ncontext_tokens = 500000' })
  expect(historyTokens(set, knowing(32_768))).toBe(13_107)
  expect(historyTokens(set, knowing(2_000_000))).toBe(500_000)
  expect(historyTokens(configOf({ user: '[limits]\ncontext_tokens = 0' }), knowing(32_768))).toBe(0)
})

test('dense tokens leave room for less text', () => {
  expect(historyTokens(configOf({ user: minimum }), knowing(100_000, 2))).toBe(20_000)
})

test('a run has the same limits, the rule against circles too, with a file that is silent and without a file', () => {
  for (const from of [{ user: minimum }, {}])
    expect(runLimits(configOf(from))).toEqual({ maxToolRounds: 100, maxSameResults: 5, maxParallel: 4 })
})

test('a command may always have the usual time, also above the maximum', () => {
  expect(shellTimesOf(limitsOf(''))).toEqual({ usualS: 120, longestS: 600 })
  expect(shellTimesOf(limitsOf('shell_timeout_s = 900'))).toEqual({ usualS: 900, longestS: 900 })
  expect(shellTimesOf(limitsOf('shell_timeout_s = 0.5\nshell_timeout_max_s = 0.7'))).toEqual({ usualS: 0.5, longestS: 1 })
})

test('processor time never runs out before the clock does, with all processors busy', () => {
  expect(cpuSecondsOf(limitsOf(''), 8)).toBe(4_800)
  expect(cpuSecondsOf(limitsOf('shell_timeout_max_s = 7200'), 4)).toBe(28_800)
  expect(cpuSecondsOf(limitsOf('tool_timeout_s = 1000'), 1)).toBe(1_000)
})
