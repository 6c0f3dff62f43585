/** Formats the result of `verify` for a person. */

import { count } from '../../../kit/count.ts'
import { sentence } from '../../../runtime/verify/describe-trace.ts'
import type { VerifyReport } from '../../../runtime/verify/verify-program.ts'

export function verifyLines(report: VerifyReport, rules: readonly string[]): string[] {
  const { properties, states, transitions, idleRules } = report
  return [
    ...properties.map(
      ({ id, says, holds, note }) => `${holds === null ? '·' : holds ? '✓' : '✗'} ${id.padEnd(4)}${says}${note ? ` (${note})` : ''}`,
    ),
    '',
    `${count(states, 'state')} and ${count(transitions, 'transition')} explored${rules.length > 0 ? `, with ${rules.join(', ')}` : ''}`,
    ...unreached(report).map((what) => `warning: in no run ${what}; what "never happens" then says little`),
    ...idleRules.map((name) => `warning: ${name} blocked nothing in any explored run; nothing was learned about it`),
    ...counterexample(report),
  ]
}

function unreached({ reached, counterexample }: VerifyReport): string[] {
  if (counterexample) return []
  const words = {
    answer: 'does the model answer',
    call: 'does a tool run',
    callAfterYes: 'does a tool run after a yes',
    denial: 'is a call refused',
    changes: 'are changes applied',
    changesAfterYes: 'are changes applied after a yes',
    drop: 'are changes dropped',
  } as const
  const all = ['answer', 'call', 'callAfterYes', 'denial', 'changes', 'changesAfterYes', 'drop'] as const
  return all.filter((what) => !reached[what]).map((what) => words[what])
}

function counterexample({ counterexample }: VerifyReport): string[] {
  if (!counterexample) return []
  const { property, steps, heldBack } = counterexample
  const left = heldBack.length > 0 ? [`  and then: held back: ${heldBack.join('; ')}`] : []
  return ['', `${property} breaks; the shortest way there:`, ...steps.map((step) => `  ${sentence(step)}`), ...left]
}
