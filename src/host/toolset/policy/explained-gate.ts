/** Prepares the gate for commands that only ask it: the operator's policy and rules, the tools, and how commands run on this machine. */

import type { Proposal } from '../../../runtime/event.ts'
import { explainRules } from '../../../runtime/rules/explain.ts'
import type { CommandMode } from '../../../security/autonomy.ts'
import type { ExplainOptions } from '../../../security/explain.ts'
import { readStop } from '../../../service/stop-file.ts'
import { sight } from '../../../workspace/sight.ts'
import type { Setup } from '../../api.ts'
import { policyOf, resolveExecutable } from '../../setup/effective-policy.ts'
import { rulesInForce, rulesOfFile } from '../../setup/rules/operator-rules.ts'
import { createRepositoryReader } from '../../transactions/transfer/repository-reader.ts'
import { createConfinement } from '../sandbox/command-sandbox.ts'
import { createToolRuntime } from '../tool-executor.ts'
import type { ToolSelection } from '../tool-selection.ts'

/** How commands run here, tried now. */
export async function commandModeOf(setup: Setup): Promise<CommandMode> {
  const confinement = createConfinement('auto', { setup, policy: policyOf(setup.config, setup.paths, setup.context.env) })
  try {
    return await confinement.mode()
  } finally {
    confinement.close()
  }
}

type Asked = { readonly tools: ToolSelection; readonly threads?: string | undefined; readonly commands?: CommandMode }

export async function explainedGate(setup: Setup, { tools: wished, threads, commands }: Asked): Promise<ExplainOptions> {
  const { config, paths, context } = setup
  const policy = policyOf(config, paths, context.env, setup.access)
  const toolRuntime = await createToolRuntime({ setup, policy, conversationId: 'explain', tools: wished })
  await toolRuntime.close()
  const rules = threads === undefined ? rulesInForce(setup).written : rulesOfFile(setup, threads)
  return {
    policy: toolRuntime.policy,
    tools: toolRuntime.all,
    estop: () => readStop(paths.estop),
    resolve: resolveExecutable,
    sight,
    commands: commands ?? (await commandModeOf(setup)),
    repository: createRepositoryReader(setup, policy),
    conversation: 'explain',
    secrets: setup.redactor,
    rulesFor: (proposal: Proposal) => explainRules(rules, proposal),
  }
}
