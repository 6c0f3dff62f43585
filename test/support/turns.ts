/** Whole turns of the real executable over scripted replies, and words for what a model asks. */

import { expect } from 'bun:test'
import { type Invocation, minimumConfig, type Nest, nest, type Result } from './cli.ts'

/** The seed's minimum with every tool allowed. */
export const everyTool = minimumConfig.replace(/tools_allow = .*\n/, '')

/** A home with that configuration, and these lines added at its end. */
export function home(more = ''): Nest {
  const fresh = nest()
  fresh.config(`${everyTool}${more}`)
  return fresh
}

export function scripted(at: Nest, responses: readonly object[]): { readonly env: { readonly BRAIDCLAW_MOCK_FIXTURE: string } } {
  return { env: { BRAIDCLAW_MOCK_FIXTURE: at.fixture(responses) } }
}

/** `agent -m go` over these replies. */
export function turn(at: Nest, responses: readonly object[], args: readonly string[] = [], invocation: Invocation = {}): Promise<Result> {
  return at.run(['agent', '-m', 'go', ...args], { ...invocation, env: { ...scripted(at, responses).env, ...invocation.env } })
}

export function call(name: string, args: object): { readonly tool_calls: readonly object[] } {
  return { tool_calls: [{ name, arguments: args }] }
}

/** A session without a terminal: nobody can be asked. */
export const alone = ['setsid', '-w']

/** Looks every 10 ms, for five seconds at most; what must hold is for the test to say afterwards. */
export async function until(holds: () => boolean): Promise<void> {
  for (let tries = 0; tries < 500 && !holds(); tries++) await Bun.sleep(10)
}

/** No stack trace, no code without a word, nothing on stdout. */
export function refused({ code, stdout, stderr }: Result, expected: number, ...says: string[]): void {
  expect([code, stdout]).toEqual([expected, ''])
  for (const words of says) expect(stderr).toContain(words)
  expect(stderr).not.toContain('    at ')
  expect(stderr).not.toContain('bug in BraidClaw')
}
