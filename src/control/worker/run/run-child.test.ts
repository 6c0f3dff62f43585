/** Tests what the output of a runner means for its task, and that no amount of it delays the worker. */

import { describe, expect, test } from 'bun:test'
import { collectOutcome } from './run-child.ts'

const ended = { code: 0, stopped: false }

describe('collectOutcome', () => {
  test('a million short texts are taken as they come, and their end is the result', () => {
    const collector = collectOutcome('command')
    for (let at = 0; at < 1_000_000; at++) collector.event({ type: 'text', text: `line ${at}` })
    const { output } = collector.outcome(ended)
    expect(output.length).toBeLessThanOrEqual(200_000)
    expect(output).toEndWith('line 999998\nline 999999')
  }, 120_000)

  test('the last result counts, and says whether the task failed', () => {
    const collector = collectOutcome('command')
    collector.event({ type: 'text', text: 'on the way' })
    collector.event({ type: 'result', ok: true, output: 'first' })
    expect(collector.outcome(ended)).toMatchObject({ ending: 'completed', output: 'first' })
    collector.event({ type: 'result', ok: false, output: 'the disk is full' })
    expect(collector.outcome(ended)).toMatchObject({ ending: 'failed', output: 'command reports that it failed: the disk is full' })
  })

  test('a program that fails without a word is known by its exit code and the end of its errors', () => {
    const collector = collectOutcome('pi')
    expect(collector.outcome({ code: 3, stopped: false }).output).toBe('pi ended with exit code 3')
    collector.noise('x'.repeat(9_000))
    collector.noise(' no such model\n')
    const { output } = collector.outcome({ code: 3, stopped: false })
    expect(output).toEndWith('x no such model')
    expect(output.length).toBeLessThan(4_100)
  })
})
