/**
 * Judges past calls, and the change sets they left, by another policy: that of another file, or that of today when a person decides late
 * (`approvals allow`, `changes apply`, `undo`, `redo`).
 */

import { join } from 'node:path'
import { type Config, describeProblem } from '../../../config/config.ts'
import { loadConfig } from '../../../config/load.ts'
import { readConfigFile } from '../../../config/text/read-toml-file.ts'
import { createTrust } from '../../../config/trust.ts'
import { isObject } from '../../../kit/json.ts'
import type { Memory } from '../../../memory/memory.ts'
import { broughtBy } from '../../../runtime/behaviours/start-events.ts'
import type { ChangeReview } from '../../../runtime/changes.ts'
import type { Proposal } from '../../../runtime/event.ts'
import { changesOf } from '../../../runtime/outcome.ts'
import type { Judge, Tool } from '../../../runtime/port.ts'
import { consequenceIn, externalOf, type ReplayEntry } from '../../../runtime/replay/external-entry.ts'
import type { RejudgeInput, ToolChanged } from '../../../runtime/replay/rejudge.ts'
import type { CommandMode } from '../../../security/autonomy.ts'
import type { Admit, Entering } from '../../../workspace/changes/contract.ts'
import type { ChangeStore } from '../../../workspace/changes/store.ts'
import { disk } from '../../../workspace/disk.ts'
import type { Setup } from '../../api.ts'
import { pastLook } from '../../changes/kept-changes.ts'
import { FailureError } from '../../failure.ts'
import { allowingToo, policyOf, resolveExecutable } from '../../setup/effective-policy.ts'
import { configFor } from '../../setup/setup.ts'
import { createToolRuntime } from '../../toolset/tool-executor.ts'
import { builtInNames } from '../../toolset/tool-selection.ts'
import { admitBy, type ChangeJudge } from '../../transactions/admit-changes.ts'
import { createRepositoryReader } from '../../transactions/command-spawn.ts'
import { openChanges } from '../../transactions/open-changes.ts'
import { changeJudge } from '../../transactions/reviewed-views.ts'

/**
 * Judges the calls of a run, and what they changed, by the policy of the configuration with that file in place of the user's own, ignoring
 * ESTOP. It runs nothing, not even an executable to get its description.
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
  return (entries: readonly ReplayEntry[]) => {
    const { tools, settled } = pastTools(entries, config)
    const names = tools.map(({ name }) => name)
    const commands: CommandMode | undefined = entries.some(wasOnView) ? { confined: true, transaction: true } : undefined
    const gate = createGate({
      ...common,
      repository,
      disk: { ...disk, real: (path) => path, linked: () => [] },
      commands,
      policy: allowingToo(policy, names),
      tools: [...ten, ...tools],
    })
    const judge: Judge = async (call) => settled.get(call.id) ?? gate.judge(call)
    return { policy, judge, judgeChanges: changeJudge({ setup, policy, gate: async () => gate }) }
  }
}

type PastEntries = { readonly runId: string; readonly entries: readonly ReplayEntry[] }
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
    readFile: (path) => (path === own ? read : readConfigFile(path)),
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
function pastTools(entries: readonly ReplayEntry[], { security }: Config) {
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

/** Tells whether the entry shows that the run executed commands on a private view. */
function wasOnView(entry: ReplayEntry): boolean {
  const event = externalOf(entry)
  if (event?.type === 'tool.changed') return true
  if (event?.type === 'tool.done') return event.outcome.metadata?.changes !== 'direct' && changesOf(event.outcome.metadata) !== undefined
  return proposalsOf(entry).some(({ judgement }) => judgement.rule === 'autonomy.transaction' || judgement.rule === 'autonomy.dropped')
}

function proposalsOf(entry: ReplayEntry): readonly Proposal[] {
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

/**
 * Judges a change set again when a person decides about it after its turn, by the policy of this process and by that of the files as they
 * are now, both for the workspace of the set.
 */
export function admitLate(setup: Setup, memory: Memory): Admit {
  return admitBy(setup, (set) => judgesFor(setup, memory, set))
}

async function judgesFor(setup: Setup, memory: Memory, set: Entering): Promise<readonly ChangeJudge[]> {
  const own = { ...setup.config, workspaceDir: set.workspace }
  const now = configFor(setup, set.workspace)
  const isSame = JSON.stringify(own.security) === JSON.stringify(now.security)
  return Promise.all((isSame ? [now] : [own, now]).map((config) => judgeFor({ ...setup, config }, memory, set)))
}

/**
 * The call is judged again too, because the policy may forbid it today. A person was asked, or asks, so that the level only counts when it
 * lets nothing be changed.
 */
async function judgeFor(setup: Setup, memory: Memory, { about: { run, call } }: Entering): Promise<ChangeJudge> {
  const entries = memory.journal.events(run)
  const { judge, judgeChanges } = (await pastJudges(setup, memory))(entries)
  const past = entries.flatMap((entry) => consequenceIn(entry) ?? []).find((event) => event.type === 'act' && event.id === call)
  const act = past?.type === 'act' ? { ...past, judgement: await judge(past.call) } : undefined
  const by = judgeChanges(act)
  const refused = act?.judgement.verdict === 'deny' ? act.judgement : undefined
  return {
    async review(set) {
      const review = await by.review(set)
      return refused ? { ...review, verdict: 'deny', rule: refused.rule, reason: refused.reason } : review
    },
    context: by.context,
  }
}

export type PastReviewOptions = {
  readonly entries: readonly ReplayEntry[]
  readonly runId: string
  readonly store: ChangeStore
  readonly judge: Judge
  readonly judgeChanges: ReturnType<typeof changeJudge>
}

/** Reviews what a call of a past run changed. @returns undefined for changes that are no longer kept */
export function pastReview({ entries, runId, store, judge, judgeChanges }: PastReviewOptions) {
  return async ({ id, call, review: { digest } }: ToolChanged): Promise<ChangeReview | undefined> => {
    const stored = store.list().find(({ about, review }) => about.run === runId && about.call === id && review?.digest === digest)
    const shown = stored && store.show(stored.id)
    if (shown === undefined) return undefined
    using look = pastLook(shown)
    const approval = approvalIn(entries, id)
    const act = { type: 'act', id, call, judgement: await judge(call), approval } as const
    return await judgeChanges(act).review({ changes: shown.changes, look, upper: shown.workspace })
  }
}

/** Returns who approved the call before it ran. */
function approvalIn(entries: readonly ReplayEntry[], id: string): string | undefined {
  const act = entries.find(({ kind, type, body }) => kind === 'intent' && type === 'act' && isObject(body) && body.id === id)
  const by = isObject(act?.body) ? act.body.approval : undefined
  return typeof by === 'string' ? by : undefined
}
