/** Judges past calls by a policy from another file: it loads the configuration with that file in place of the user's own. */

import { join } from 'node:path'
import { describeProblem } from '../../../config/config.ts'
import { loadConfig } from '../../../config/load.ts'
import { readConfigFile } from '../../../config/text/read-toml-file.ts'
import { createTrust } from '../../../config/trust.ts'
import type { Memory } from '../../../memory/memory.ts'
import type { Judge } from '../../../runtime/port.ts'
import type { Entry } from '../../../runtime/replay/external-entry.ts'
import type { RejudgeInput } from '../../../runtime/replay/rejudge.ts'
import { sight } from '../../../workspace/sight.ts'
import type { Setup } from '../../api.ts'
import { FailureError } from '../../failure.ts'
import { allowingToo, policyOf, resolveExecutable } from '../../setup/effective-policy.ts'
import { createToolRuntime } from '../../toolset/tool-executor.ts'
import { openChanges } from '../../transactions/open-changes.ts'
import { pastReview } from '../../transactions/past-review.ts'
import { changeJudge } from '../../transactions/reviewed-views.ts'
import { createRepositoryReader } from '../../transactions/transfer/repository-reader.ts'
import { pastCommands, pastTools } from './recorded-tools.ts'

/**
 * Judges the calls of a run, and what they changed, by that policy, ignoring ESTOP. It runs nothing, not even an executable to get its description.
 * @throws FailureError `usage` when the file cannot be used.
 */
export async function judgeBy(setup: Setup, file: string, memory: Memory): Promise<(run: PastEntries) => PastJudge> {
  const config = configWith(setup, file)
  const judgesOf = await pastJudges({ ...setup, config }, memory)
  return ({ runId, entries }) => {
    const { policy, judge, judgeChanges } = judgesOf(entries)
    const store = openChanges({ ...setup, config }, policy.workspace)
    return { judge, review: pastReview({ entries, runId, store, judge, judgeChanges }) }
  }
}

/** Returns the judges of the calls of past runs, and of what they changed, by the policy of this configuration, ignoring ESTOP. */
export async function pastJudges(setup: Setup, memory: Pick<Memory, 'approvals'>) {
  const { config } = setup
  const policy = policyOf(config, setup.paths, setup.context.env)
  const { createGate } = await import('../../../security/gate.ts')
  const { all: ten } = await createToolRuntime({ setup, policy, conversationId: 'replay' })
  const always = (key: string) => memory.approvals.hasRule('shell', key)
  const secrets = setup.redactor
  const common = { secrets, estop: () => undefined, resolve: resolveExecutable, conversation: 'replay', always }
  const repository = createRepositoryReader(setup, policy)
  return (entries: readonly Entry[]) => {
    const { tools, settled } = pastTools(entries, config)
    const names = tools.map(({ name }) => name)
    const commands = pastCommands(entries)
    const gate = createGate({
      ...common,
      repository,
      sight: { ...sight, real: (path) => path, linked: () => [] },
      ...(commands ? { commands } : {}),
      policy: allowingToo(policy, names),
      tools: [...ten, ...tools],
    })
    const judge: Judge = async (call) => settled.get(call.id) ?? gate.judge(call)
    return { policy, judge, judgeChanges: changeJudge({ setup, policy, gate: async () => gate }) }
  }
}

type PastEntries = { readonly runId: string; readonly entries: readonly Entry[] }
type PastJudge = Required<Pick<RejudgeInput, 'judge' | 'review'>>

function configWith({ paths, context, config }: Setup, file: string) {
  const { env, cwd, channels } = context
  const path = file.startsWith('/') ? file : join(cwd, file)
  const own = join(paths.home, 'config.toml')
  const read = readConfigFile(path)
  if (read.state === 'missing') throw new FailureError('usage', `${path} does not exist; --policy takes a config.toml`)
  const loaded = loadConfig({
    home: paths.home,
    env,
    cwd,
    channels,
    flags: { workspace: config.workspaceDir },
    trusted: (folder) => createTrust(paths.trustedFolders).isTrusted(folder),
    readFile: (wanted) => (wanted === own ? read : readConfigFile(wanted)),
  })
  if (loaded.ok) return loaded.config
  const problems = loaded.problems.map((problem) => describeProblem(problem.file === own ? { ...problem, file: path } : problem))
  throw new FailureError('usage', problems)
}
