/** `verify`: the model checker over the threads that run in production, with the user's rules. */

import type { CliContext } from '../../../channels/terminal/context.ts'
import { rulesInForce, rulesOfFile } from '../../../host/setup/operator-rules.ts'
import { setUp } from '../../../host/setup/setup.ts'
import { CliExit, exitCodes } from '../../exit.ts'
import { verifyLines } from './verify-report.ts'

export type VerifyProgramFlags = { readonly threads?: string; readonly workspace?: string; readonly json?: boolean }

/** Exit 0 when every property holds, 1 when one breaks or could not be decided, 2 when a rule cannot be read. */
export async function verify(this: CliContext, { threads, workspace, json = false }: VerifyProgramFlags): Promise<void> {
  const setup = setUp(this, { workspace })
  const { ruleThread } = await import('../../../runtime/rules/rule-thread.ts')
  const { verifyProgram } = await import('../../../runtime/verify/verify-program.ts')
  const rules = threads === undefined ? rulesInForce(setup).rules : rulesOfFile(setup, threads).map(ruleThread)
  const report = verifyProgram({ rules })
  this.process.stdout.write(
    json
      ? `${JSON.stringify(report)}\n`
      : `${verifyLines(
          report,
          rules.map(({ name }) => name),
        ).join('\n')}\n`,
  )
  if (!report.ok) throw new CliExit(exitCodes.error)
}
