/** Implements `verify`: it runs the model checker over the production threads and the user's rules. */

import { rulesInForce, rulesOfFile } from '../../../host/setup/rules/operator-rules.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import type { Command, Flags } from '../../args/command.ts'
import { jsonFlag, workspaceFlag } from '../../args/flags.ts'
import { CliExit, exitCodes } from '../../exit.ts'
import { verifyLines } from './verify-report.ts'

const flags = {
  threads: { type: 'text', about: 'Check these rules instead of the installed ones' },
  ...workspaceFlag,
  ...jsonFlag,
} as const satisfies Flags

/** Exit code 0 when every property holds, 1 when one breaks or is undecided, 2 when a rule cannot be read. */
export const verify = {
  flags: flags,
  examples: [['--threads my-rules.json', 'with rules of your own (docs/rules.md)']],
  async run(context, { threads, workspace, json = false }) {
    const setup = loadSetup(context, { workspace })
    const { ruleThread } = await import('../../../runtime/rules/rule-thread.ts')
    const { verifyProgram } = await import('../../../runtime/verify/verify-program.ts')
    const rules = threads === undefined ? rulesInForce(setup).rules : rulesOfFile(setup, threads).map(ruleThread)
    const report = verifyProgram({ rules })
    context.process.stdout.write(
      json
        ? `${JSON.stringify(report)}\n`
        : `${verifyLines(
            report,
            rules.map(({ name }) => name),
          ).join('\n')}\n`,
    )
    if (!report.ok) throw new CliExit(exitCodes.error)
  },
} as const satisfies Command<typeof flags>
