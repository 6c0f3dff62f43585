/** `verify`: the model checker over the threads that run in production, with the user's rules. */

import { createTrust } from '../../config/trust.ts'
import type { RuleThread } from '../../runtime/rules/thread.ts'
import { CliExit, exitCodes } from '../exit.ts'
import { verifyLines } from '../records/verify-report.ts'
import { loadRules, readRules } from '../setup/rules-files.ts'
import { setUp } from '../setup/setup.ts'
import type { CliContext, Setup } from '../world.ts'

export type VerifyProgramFlags = { readonly threads?: string; readonly workspace?: string; readonly json?: boolean }

/** Exit 0 when every property holds, 1 when one breaks or could not be decided, 2 when a rule cannot be read. */
export async function verify(this: CliContext, { threads, workspace, json = false }: VerifyProgramFlags): Promise<void> {
  const setup = setUp(this, { workspace })
  const { ruleThread } = await import('../../runtime/rules/thread.ts')
  const { verifyProgram } = await import('../../runtime/verify/verify.ts')
  const rules = threads === undefined ? theirs(setup) : given(setup, threads).map(ruleThread)
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

/** What a run in this workspace would obey. */
function theirs({ config, paths, context, log }: Setup): readonly RuleThread[] {
  const workspace = config.workspaceDir
  const trusted = createTrust(paths.trustedFolders).isTrusted(workspace)
  const { rules, notices, problems } = loadRules({ home: paths.home, userHome: context.env.HOME || '/', workspace, trusted })
  for (const notice of notices) log('warn', notice)
  return refuse(rules, problems)
}

function given({ config, context }: Setup, file: string) {
  const { rules, problems } = readRules(file.startsWith('/') ? file : `${context.cwd}/${file}`, {
    workspace: config.workspaceDir,
    home: context.env.HOME || '/',
  })
  return refuse(rules, problems)
}

/** @throws CliExit 2 naming every problem. */
function refuse<T>(rules: readonly T[], problems: readonly string[]): readonly T[] {
  if (problems.length > 0) throw new CliExit(exitCodes.usage, problems.map((problem) => `error: ${problem}`).join('\n'))
  return rules
}
