/** Implements `verify`: it runs the model checker over the production threads and the user's rules. */

import { rulesInForce, rulesOfFile } from '../../../host/setup/operator-rules.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { count, visible } from '../../../kit/text.ts'
import { verify as check, type ProgramReport } from '../../../library/behavioral.ts'
import { ruleThread } from '../../../runtime/rules/rule-thread.ts'
import { sentence } from '../../../runtime/verify/describe-trace.ts'
import { happenings, type VerifyReport, verifyProgram } from '../../../runtime/verify/verify-program.ts'
import { command, type Flags } from '../../args/command.ts'
import { CliExit, exitCodes } from '../../exit.ts'
import { inSandbox, loaded, programFlags, stepLine } from './program.ts'

const flags = {
  threads: { type: 'text', about: 'Check these rules instead of the installed ones' },
  ...programFlags,
  maxStates: { type: 'whole', min: 1, about: 'With a program: end the search after so many states (default: 100,000)' },
} as const satisfies Flags

/** Exit code 0 when every property holds, 1 when one breaks or is undecided, 2 when a rule or a program cannot be read. */
export const verify = command({
  flags: flags,
  examples: [
    ['--threads my-rules.json', 'with rules of your own (docs/rules.md)'],
    ['--program loop.ts', 'a behavioral program of your own (docs/library.md)'],
  ],
  async run(context, { threads, program, ...more }) {
    if (program !== undefined && more.sandbox !== 'none') return inSandbox(context, 'verify', { program, ...more })
    if (program !== undefined) {
      const report = loaded(context, program, (found) => check(found, more))
      context.process.stdout.write(more.json ? `${JSON.stringify(report)}\n` : `${programLines(report).join('\n')}\n`)
      if (!report.ok) throw new CliExit(exitCodes.error)
      return
    }
    const { workspace, json = false } = more
    const setup = loadSetup(context, { workspace })
    const rules = threads === undefined ? rulesInForce(setup).rules : rulesOfFile(setup, threads).map(ruleThread)
    const report = verifyProgram({ rules })
    const names = rules.map(({ name }) => name)
    context.process.stdout.write(json ? `${JSON.stringify(report)}\n` : `${verifyLines(report, names).join('\n')}\n`)
    if (!report.ok) throw new CliExit(exitCodes.error)
  },
})

/** Formats the result of `verify` for a person. */
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
  const words: { readonly [what in keyof typeof reached]: string } = {
    answer: 'does the model answer',
    call: 'does a tool run',
    callAfterYes: 'does a tool run after a yes',
    denial: 'is a call refused',
    changes: 'are changes applied',
    changesAfterYes: 'are changes applied after a yes',
    drop: 'are changes dropped',
    checks: 'does a check pass',
    retry: 'does a check fail',
  }
  return happenings.filter((what) => !reached[what]).map((what) => words[what])
}

function counterexample({ counterexample }: VerifyReport): string[] {
  if (!counterexample) return []
  const { property, steps, heldBack } = counterexample
  const left = heldBack.length > 0 ? [`  and then: held back: ${heldBack.join('; ')}`] : []
  return ['', `${property} breaks; the shortest way there:`, ...steps.map((step) => `  ${sentence(step)}`), ...left]
}

function programLines({ states, findings }: ProgramReport): string[] {
  return [
    ...findings.map(({ property, holds }) => visible(`${holds === null ? '·' : holds ? '✓' : '✗'} ${property}`)),
    '',
    `${count(states, 'state')} explored`,
    ...(findings.some(({ holds }) => holds === null)
      ? ['not decided (·): the search ended early; raise --max-states, or mend what breaks']
      : []),
    ...findings.flatMap(({ property, steps }) =>
      steps ? ['', visible(`${property} breaks; a shortest run:`), ...steps.map(stepLine)] : [],
    ),
  ]
}
