/** Turns that die in the middle of a command, for tests of how they go on. */

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Nest, Result } from './cli.ts'
import { alone, call, scripted } from './turns.ts'
import { until } from './until.ts'

/** Commands act at once, without a private view, so that nobody knows what a dead process did. */
export const direct = ['--autonomy', 'full', '--sandbox', 'none'] as const

/** Returns the lines that commands have appended. */
export function ledger(at: Nest): string[] {
  const path = join(at.workspace, 'ledger.txt')
  return existsSync(path) ? readFileSync(path, 'utf8').split('\n').filter(Boolean) : []
}

/** Dies by kill -9 while a command runs that has appended a line to the ledger. */
export async function dieInCommand(at: Nest): Promise<void> {
  const calls = [call('time', {}), call('shell', { command: 'echo sent >> ledger.txt; test -e again || exec sleep 20' })]
  const reply = { tool_calls: calls.flatMap((each) => each.tool_calls) }
  const running = at.start(['agent', '-m', 'send it', ...direct], scripted(at, [reply]))
  await until(() => ledger(at).length === 1)
  process.kill(running.pid, 'SIGKILL')
  await running.result
}

/** Goes on where nobody can be asked. */
export function goOn(at: Nest, responses: readonly object[], args: readonly string[] = []): Promise<Result> {
  return at.run(['agent', '--continue-turn', ...args], { ...scripted(at, responses), through: alone })
}
