import { expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { atEnd } from '../../../kit/errors.ts'
import type { ContextUse } from '../../../runtime/event.ts'
import { addUsage } from '../../../runtime/usage.ts'
import { statusText } from '../status-line.ts'
import { footerOf, usageLine, workFacts } from './usage-line.ts'

test.each([
  [{ inputTokens: 1234, outputTokens: 56 }, '1,234 tokens in, 56 out'],
  [{ inputTokens: 1234, outputTokens: 56, costMicros: 2100 }, '1,234 tokens in, 56 out, $0.0021'],
  [{ inputTokens: 2006, outputTokens: 56, cachedInputTokens: 1920 }, '2,006 tokens in (96% cached), 56 out'],
  [{ inputTokens: 1, outputTokens: 0, costMicros: 12 }, '1 token in, 0 out, less than $0.0001'],
  [{ inputTokens: 1, outputTokens: 0, costMicros: 0 }, '1 token in, 0 out, $0.0000'],
  [{ inputTokens: 9_000_000, outputTokens: 5, costMicros: 12_345_678 }, '9,000,000 tokens in, 5 out, $12.35'],
  [{ inputTokens: 0, outputTokens: 0 }, undefined],
  [undefined, undefined],
])('%j is %s', (usage, words) => expect(usageLine(usage)).toBe(words))

test('calls are added up, and the money as long as it is known of each', () => {
  const one = { inputTokens: 3, outputTokens: 2, cachedInputTokens: 1, cacheWriteTokens: 2, costMicros: 10 }
  expect(addUsage(undefined, one)).toEqual(one)
  const two = { inputTokens: 6, outputTokens: 4, cachedInputTokens: 2, cacheWriteTokens: 4, costMicros: 20 }
  expect(addUsage(addUsage(undefined, one), one)).toEqual(two)
  const unknown = { inputTokens: 1, outputTokens: 1 }
  const cache = { cachedInputTokens: 1, cacheWriteTokens: 2 }
  expect(addUsage(addUsage(undefined, one), unknown)).toEqual({ inputTokens: 4, outputTokens: 3, ...cache })
  expect(addUsage(addUsage(undefined, unknown), one)).toEqual({ inputTokens: 4, outputTokens: 3, ...cache })
})

test('the footer names model, folder, branch, context and cost, as far as they are known', () => {
  const home = mkdtempSync(join(tmpdir(), 'braidclaw-footer-'))
  using _end = atEnd(() => rmSync(home, { recursive: true }))
  const workspace = join(home, 'project', 'deep')
  mkdirSync(join(home, 'project/.git/worktrees/x'), { recursive: true })
  mkdirSync(workspace)
  const footer = (window?: number) =>
    footerOf({ model: 'local/mock', workspace, home, context: () => ({ window, used: 340, trimmed: 0 }) as ContextUse, used: undefined })
  expect(footer()).toBe('local/mock · ~/project/deep')
  writeFileSync(join(home, 'project/.git/HEAD'), 'ref: refs/heads/fix/a\u001b[2Jb\n')
  expect(footer(1000)).toBe('local/mock · ~/project/deep · fix/a\\u{1b}[2Jb · 34% of context')
  writeFileSync(join(home, 'project/.git/HEAD'), `${'a1b2c3d4'.repeat(5)}\n`)
  expect(footer()).toEndWith(' · a1b2c3d4')
  writeFileSync(join(workspace, '.git'), 'gitdir: ../.git/worktrees/x\n')
  writeFileSync(join(home, 'project/.git/worktrees/x/HEAD'), 'ref: refs/heads/side\n')
  expect(footer()).toEndWith(' · side')
  const used = { inputTokens: 1, outputTokens: 1, costMicros: 2100 }
  expect(footerOf({ model: 'm', workspace: '/', context: () => undefined as never, used })).toBe('m · / · $0.0021')
})

test('beside the work stand the tokens so far, their cost where it is known, and the key that stops it', () => {
  expect(workFacts(undefined)).toEqual(['Esc interrupts'])
  expect(workFacts({ inputTokens: 1200, outputTokens: 34, costMicros: 2100 })).toEqual(['1,234 tokens', '$0.0021', 'Esc interrupts'])
  expect(statusText('thinking', 7, 40, ['1,234 tokens', '$0.0021', 'Esc interrupts'])).toBe('thinking 7 s · 1,234 tokens · $0.0021')
})
