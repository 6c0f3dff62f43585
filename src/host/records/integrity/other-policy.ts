/** Judges past calls by a policy from another file: it loads the configuration with that file in place of the user's own. */

import { join } from 'node:path'
import { type Config, describeProblem } from '../../../config/config.ts'
import { loadConfig } from '../../../config/load.ts'
import { readConfigFile } from '../../../config/text/read-toml-file.ts'
import { createTrust } from '../../../config/trust.ts'
import type { Memory } from '../../../memory/memory.ts'
import { broughtBy } from '../../../runtime/behaviours/start-events.ts'
import type { Proposal } from '../../../runtime/event.ts'
import { changesOf } from '../../../runtime/outcome.ts'
import type { Judge, Tool } from '../../../runtime/port.ts'
import { type Entry, externalOf } from '../../../runtime/replay/external-entry.ts'
import type { RejudgeInput } from '../../../runtime/replay/rejudge.ts'
import type { CommandMode } from '../../../security/autonomy.ts'
import { sight } from '../../../workspace/sight.ts'
import type { Setup } from '../../api.ts'
import { FailureError } from '../../failure.ts'
import { allowingToo, policyOf, resolveExecutable } from '../../setup/effective-policy.ts'
import { createToolRuntime } from '../../toolset/tool-executor.ts'
import { builtInNames } from '../../toolset/tool-selection.ts'
import { openChanges } from '../../transactions/open-changes.ts'
import { pastReview } from '../../transactions/past-review.ts'
import { changeJudge } from '../../transactions/reviewed-views.ts'
import { createRepositoryReader } from '../../transactions/transfer/repository-reader.ts'

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

/** The tool did not exist, had changed, or was called with invalid arguments. */
const beyondPolicy = ['tool.unknown', 'tool.changed', 'schema.invalid']

/**
 * Reconstructs the external tools of a past run as far as a gate knows them, so that its calls can be judged again without running
 * anything.
 */
function pastTools(entries: readonly Entry[], { security }: Config) {
  const past = entries.flatMap(proposalsOf)
  const own = past.filter(({ call, judgement }) => !builtInNames.includes(call.name) && judgement.rule !== 'tool.unknown')
  const names = [...new Set(own.map(({ call }) => call.name))]
  const settled = past.filter(({ judgement }) => beyondPolicy.includes(judgement.rule))
  return {
    /** One tool for each name of the run that is not built in. */
    tools: names.map((name) => standIn(name, security.allowTools.includes(name) ? 'low' : 'medium')),
    /** Judgements that do not depend on a policy, by call id: they hold under every policy. */
    settled: new Map(settled.map(({ call, judgement }) => [call.id, judgement])),
  }
}

/** Returns how the run executed commands; undefined when none of its entries tells that a private view was used. */
function pastCommands(entries: readonly Entry[]): CommandMode | undefined {
  return entries.some(wasOnView) ? { confined: true, transaction: true } : undefined
}

function wasOnView(entry: Entry): boolean {
  const event = externalOf(entry)
  if (event?.type === 'tool.changed') return true
  if (event?.type === 'tool.done') return event.outcome.metadata?.changes !== 'direct' && changesOf(event.outcome.metadata) !== undefined
  return proposalsOf(entry).some(({ judgement }) => judgement.rule === 'autonomy.transaction' || judgement.rule === 'autonomy.dropped')
}

function proposalsOf(entry: Entry): readonly Proposal[] {
  const event = externalOf(entry)
  return (event && broughtBy(event)) ?? []
}

/**
 * For executables and tools of a claw the gate knows only the operator's risk setting; the arguments were checked when the run took place.
 */
function standIn(name: string, risk: Tool['risk']): Tool {
  return {
    name,
    description: '',
    parameters: { type: 'object' },
    risk,
    timeoutMs: 0,
    idempotent: false,
    touches: () => [],
    invoke: () => Promise.reject(new Error(`${name} stands in for a tool of the past, and is only judged`)),
  }
}
