/**
 * Starts the commands of one conversation: on a private view where there are private views, with the user's name in git, and what git sends
 * and fetches outside.
 */

import { relative } from 'node:path'
import type { JsonObject } from '../../kit/json.ts'
import { lazy } from '../../kit/lazy.ts'
import { quote } from '../../kit/text.ts'
import type { ToolOutcome } from '../../runtime/event.ts'
import { notApplied } from '../../runtime/outcome.ts'
import type { ChangePorts, Tool, Touch } from '../../runtime/port.ts'
import type { Ahead, Loopback } from '../../sandbox/contract.ts'
import type { ReadRepository } from '../../security/command/transfer.ts'
import type { Policy } from '../../security/policy.ts'
import { isUnder } from '../../security/targets/path.ts'
import type { Spawn, SpawnPlan } from '../../tools/process.ts'
import type { Setup } from '../api.ts'
import type { Sweep } from './direct-sweep.ts'

type Spawning = {
  readonly setup: Pick<Setup, 'context' | 'paths'>
  readonly policy: Policy
  readonly conversationId: string
  readonly confinement: {
    readonly spawn: Spawn
    warm(plan: Ahead): void
    mode(): Promise<{ readonly confined: boolean; readonly transaction: boolean }>
    openLoopback(): Promise<Loopback | string>
  }
  readonly sweep: Sweep
}

type CommandSpawn = {
  readonly spawn: Spawn
  /** Starts the sandbox of a command that will follow. */
  warm(plan: Pick<Ahead, 'readOnly' | 'view'>): Promise<void>
  /**
   * From now on the commands without hosts share one network, so that they reach what a command in the background listens on.
   * @returns why they cannot, as the end of a sentence
   */
  shareNetwork(): Promise<string | undefined>
  close(): void
}

/** Reads the user's git settings when the first command starts. */
export function createCommandSpawn({ setup, policy, conversationId, confinement, sweep }: Spawning): CommandSpawn {
  const git = lazy(async () => {
    const { bringIndexBack, gitForCommands } = await gitAround()
    const forCommands = gitForCommands(
      { workspace: policy.workspace, home: policy.home, env: setup.context.env },
      { policy, paths: setup.paths },
    )
    /** Call it with each view that a command leaves, before its changes are read. */
    const settled = <V extends { readonly folder: string }>(view: V, { outside }: Pick<SpawnPlan, 'outside'>): V => {
      if (outside) bringIndexBack(view.folder, outside, policy.workspace)
      return view
    }
    return { ...forCommands, settled }
  })

  /** The level and the hosts are what a command could use to write its caches. */
  const cachesOf = (network: readonly string[] = []) => ({
    conversation: conversationId,
    terms: JSON.stringify([policy.autonomy, policy.approveAllMedium, network.toSorted()]),
  })

  const state: { opening?: Promise<Loopback | string>; loopback?: Loopback } = {}
  const shared = (network: readonly string[] = []) => (state.loopback?.isOpen() && network.length === 0 ? { loopback: state.loopback } : {})

  const confined: Spawn = async (plan) => {
    const [{ env, around, settled }, mode] = await Promise.all([git.get(), confinement.mode()])
    const { readablePaths, outside } = around()
    const { onView } = plan
    const own: SpawnPlan = {
      ...plan,
      env: { ...env, ...plan.env },
      caches: cachesOf(plan.network),
      ...shared(plan.network),
      readablePaths: [...(plan.readablePaths ?? []), ...readablePaths],
      outside,
      ...(onView && { onView: (view) => onView({ ...view, copy: async () => settled(await view.copy(), { outside }) }) }),
      ...(plan.view === undefined && !plan.readOnly && mode.transaction ? { view: 'private' } : {}),
    }
    const writes = mode.confined && !own.readOnly && own.view !== 'private'
    const ended = await (writes ? sweep(own, confinement.spawn) : confinement.spawn(own))
    if (ended.ok && ended.view) settled(ended.view, { outside })
    return ended
  }

  return {
    async spawn({ transfer, ...plan }) {
      if (transfer === undefined) return confined(plan)
      const { runTransfer } = await import('./run-transfer.ts')
      return runTransfer({ plan, transfer, policy, stateHome: setup.paths.home, env: setup.context.env, spawn: confined })
    },
    async warm(plan) {
      confinement.warm({ ...plan, caches: cachesOf(), ...shared(), ...(await git.get()).around() })
    },
    async shareNetwork() {
      // A network whose holder has ended takes no further commands.
      if (state.loopback?.isOpen() === false) state.opening = undefined
      state.opening ??= confinement.openLoopback()
      const opened = await state.opening
      if (typeof opened === 'string') return opened
      state.loopback = opened
    },
    close: () => state.loopback?.close(),
  }
}

/** `hasViews` tells whether private views work here, or why not. */
type Confining = { readonly spawn: Spawn; readonly hasViews: () => Promise<{ readonly transaction: boolean; readonly why?: string }> }

/** Keeps a dry run from changing anything: commands run on private views only, which are never applied. */
export function dryRunSpawn({ spawn, hasViews }: Confining): Spawn {
  return async (plan) => {
    if (plan.transfer) return { ok: false, message: `a dry run reaches no git server, so git ${plan.transfer.operation} was not run` }
    if (plan.readOnly) return spawn(plan)
    const { transaction, why } = await hasViews()
    if (transaction && plan.view !== 'direct') return spawn({ ...plan, view: 'private' })
    const reason = transaction ? 'the call asks for the workspace itself' : `there are no private views here${why ? ` (${why})` : ''}`
    return { ok: false, message: `a dry run needs a private view of the workspace, and ${reason}; nothing was run` }
  }
}

/** Refuses the tools that write. @param isCommand whether the tool starts a confined child */
export function refusedInDryRun(tool: Tool | undefined, input: JsonObject, isCommand: boolean): ToolOutcome | undefined {
  if (isCommand || (tool?.risk === 'low' && !tool.touches(input).some(hasEffect))) return undefined
  return { status: 'denied', output: '', error: `dry_run: ${tool?.name ?? 'this tool'} would have an effect; nothing was done` }
}

function hasEffect(touch: Touch): boolean {
  if (touch.kind === 'url') return !['GET', 'HEAD', 'OPTIONS'].includes(touch.method.toUpperCase())
  return touch.kind === 'path' && touch.access === 'write'
}

/** A yes changes nothing either. */
export function neverApplied(changes: ChangePorts): ChangePorts {
  return {
    drop: changes.drop,
    apply(event, _signal, outcome) {
      const reason = 'this is a dry run'
      changes.drop({ ...event, type: 'drop', outcome, by: 'dry_run', reason })
      return Promise.resolve(notApplied(outcome, 'denied', reason))
    },
  }
}

/**
 * Explains to the model why git failed, when the reason is what the sandbox does and git cannot know it. @param workspace an absolute path
 * without symbolic links. @param outcome what this tool returned */
export async function withGitFailure<Outcome extends ToolOutcome>(workspace: string, tool: string, outcome: Outcome): Promise<Outcome> {
  const why = tool === 'shell' && /^fatal: /m.test(outcome.output) ? await reason(workspace, outcome.output) : undefined
  return why === undefined ? outcome : { ...outcome, output: `${outcome.output}\n[${why}]` }
}

async function reason(workspace: string, output: string): Promise<string | undefined> {
  if (/^fatal: hardlink different from source at /m.test(output))
    return 'a private view cannot make a hard link to a file that was there before; for git clone, add --no-hardlinks'
  const { repositoriesAround } = await import('../../workspace/git/read-settings.ts')
  const [around] = repositoriesAround(workspace)
  if (around && !isUnder(around.git, workspace) && /Read-only file system/.test(output))
    return /^error: unable to (?:create|unlink)/m.test(output)
      ? `the workspace is a folder of the git repository in ${quote(around.root)}, and commands write nothing beside the workspace; git can do this when the user starts in that folder`
      : `the repository of the workspace lies outside it, in ${quote(around.common)}: commands can read it (status, log, diff), and the user adds and commits`
  const objects = /^error: (?:object directory|unable to normalize alternate object path:) (.+?)(?: does not exist; check .*)?$/m.exec(
    output,
  )?.[1]
  if (objects !== undefined)
    return `this repository uses the objects in ${quote(objects)}, outside the workspace; commands can read them when the user trusts the folder: braidclaw trust ${quote(workspace)}`
  if (!/^fatal: not a git repository/m.test(output)) return
  if (around !== undefined && !isUnder(around.root, workspace))
    return `the workspace is a folder of the git repository in ${relative(workspace, around.root)}, and commands see nothing outside the workspace; git works when the user starts with that folder as the workspace`
}

const gitAround = () => import('./git-around.ts')

/** Creates the gate's reader of repositories, which the first git fetch, pull or push loads. */
export function createRepositoryReader({ context, paths }: Pick<Setup, 'context' | 'paths'>, policy: Policy): ReadRepository {
  return async (cwd, folders) => {
    const { readRepository } = await gitAround()
    return readRepository({ policy, paths }, context.env, cwd, folders)
  }
}
