/** Runs whole turns of the real executable over scripted replies, and builds the calls of a model. */

import { expect } from 'bun:test'
import { join } from 'node:path'
import { shareEtc } from '../../src/sandbox/filesystem/shared-etc.fixture.ts'
import { type Invocation, minimumConfig, type Nest, nest, type Result } from './cli.ts'

/** The seed's minimum with every tool allowed. */
export const everyTool = minimumConfig.replace(/tools_allow = .*\n/, '')

/** The gate of seed 001 as lines of [security]: a command asks before it runs, and is blocked when it is not allow-listed. */
export const asksFirst = 'ask = "before"\nunlisted_commands = "block"\n'

/** Returns a home with that configuration, these lines at its end, and these in its [security]. */
export function home(more = '', security = ''): Nest {
  const fresh = nest()
  fresh.config(`${everyTool.replace('[security]\n', `[security]\n${security}`)}${more}`)
  if (Bun.which('bwrap') !== null) shareEtc(join(fresh.home, '.braidclaw'))
  return fresh
}

export function scripted(at: Nest, responses: readonly object[]): { readonly env: { readonly BRAIDCLAW_MOCK_FIXTURE: string } } {
  return { env: { BRAIDCLAW_MOCK_FIXTURE: at.fixture(responses) } }
}

/** Runs `agent -m go` over these replies. */
export function turn(at: Nest, responses: readonly object[], args: readonly string[] = [], invocation: Invocation = {}): Promise<Result> {
  return at.run(['agent', '-m', 'go', ...args], { ...invocation, env: { ...scripted(at, responses).env, ...invocation.env } })
}

export function call(name: string, args: object): { readonly tool_calls: readonly object[] } {
  return { tool_calls: [{ name, arguments: args }] }
}

/** A session without a terminal, so that nobody can be asked. */
export const alone = ['setsid', '-w']

/** Requires no stack trace, an explanation with the code, and nothing on stdout. */
export function refused({ code, stdout, stderr }: Result, expected: number, ...says: string[]): void {
  expect([code, stdout]).toEqual([expected, ''])
  for (const words of says) expect(stderr).toContain(words)
  expect(stderr).not.toContain('    at ')
  expect(stderr).not.toContain('bug in BraidClaw')
}
