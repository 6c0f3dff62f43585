/** Prepares a worker from a home and its environment: what `braidclaw control worker` and `braidclaw agent --control` start; chooses its runner. */

import { mkdirSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { dirname, join } from 'node:path'
import type { Setup } from '../../host/api.ts'
import { runCheck } from '../../host/checks/check.ts'
import { openHost } from '../../host/open/open-host.ts'
import { workspaceOf } from '../../host/setup/workspace-folder.ts'
import type { SourcedTool, ToolSelection, ToolSource } from '../../host/toolset/contract.ts'
import { standingExecutables } from '../../host/toolset/executable-tools.ts'
import { builtInTools, hasStandingTools } from '../../host/toolset/tool-selection.ts'
import { sleep } from '../../kit/abort.ts'
import { sha256 } from '../../kit/sha256.ts'
import { isCompiled, ownProgram } from '../../service/own-program.ts'
import { createControlClient } from '../client/control-client.ts'
import type { TransportOptions } from '../client/transport.ts'
import { openAgentKey } from '../manifest/agent-key.ts'
import { manifestMaker } from '../manifest/run-manifest.ts'
import { aiderRunner, claudeRunner, codexRunner, commandRunner, piRunner } from '../runners/foreign-runners.ts'
import { ownRunner, ownRunnerProblem } from '../runners/own-runner.ts'
import { type ForeignRunner, type RunnerName, type RunnerSupport, runnerNames } from '../runners/runner.ts'
import { type AgentSkills, openLibrary } from '../skills/open-library.ts'
import { skillsSearchTool } from '../skills/skill-search.ts'
import { openWaitingChanges } from './changes/waiting-changes.ts'
import { createCopies, tidyParked } from './changes/workspace-copies.ts'
import { identify } from './identify.ts'
import { openWorker } from './open-worker.ts'
import { noSkills, type Skills, type Worker, type WorkerOptions, type WorkerRunner } from './worker-options.ts'
import { placesOf, takeOverOlder } from './worker-places.ts'
import { clientPort } from './worker-port.ts'

export type OwnWorkerOptions = Partial<
  Pick<WorkerOptions, 'model' | 'once' | 'labels' | 'leaseSeconds' | 'network' | 'readable' | 'graceMs'>
> & {
  /** The tasks are about `config.workspaceDir`; the command takes it from CONTROLPLANE_WORKSPACE_CWD. */
  readonly setup: Setup
  /** Must equal the role that the control plane knows, which is the default. */
  readonly role?: string | undefined
  /** Must be the agent of the key; default: CONTROLPLANE_AGENT_ID, else the agent of the key. */
  readonly agentId?: string | undefined
  /** `--runner`; default: CONTROLPLANE_RUNNER, else pi if it is found, else own. */
  readonly runner?: string | undefined
  /** Holds the program and its arguments for the runner "command". */
  readonly command?: readonly string[] | undefined
  /** The guarded fetch. */
  readonly fetch: typeof fetch
  /** Default: CONTROLPLANE_API_URL, else http://127.0.0.1:3100. */
  readonly apiUrl?: string | undefined
  /** Default: CONTROLPLANE_API_KEY. */
  readonly apiKey?: string | undefined
  readonly version: string
  readonly say: (line: string) => void
}

type OpenedWorker =
  | {
      readonly ok: true
      readonly agentId: string
      readonly role: string
      readonly runner: RunnerName
      readonly workspace: string
      readonly worker: Worker
      close(): Promise<void>
    }
  | { readonly ok: false; readonly message: string }

/** Waits until the control plane answers. @throws PlaneRefusal about the key. @throws FailureError when the home or its workspace cannot be used */
export async function openOwnWorker(options: OwnWorkerOptions): Promise<OpenedWorker> {
  const { setup, say, model, once, labels, leaseSeconds, network, graceMs } = options
  const { env } = setup.context
  const reached = reachOf(options)
  if (!reached.ok) return reached
  const { apiUrl, transport } = reached
  const { agentId, role, planeId } = await identify({
    ...{ apiUrl, say, fleet: createControlClient({ ...transport, attempts: 1 }).fleet, sleep: Bun.sleep },
    ...{ agentId: options.agentId ?? (env.CONTROLPLANE_AGENT_ID || undefined), role: options.role },
  })
  const workspace = workspaceOf(setup)
  const places = placesOf(setup, { agentId, planeId })
  await takeOverOlder(setup, agentId, places)
  const openedSkills = openWorkerSkills({ setup, workspace, state: places.state, owner: { id: agentId, role } })
  if (!openedSkills.ok) return openedSkills
  const { library } = openedSkills
  const chosen = chooseRunner({
    ...{ named: options.runner ?? env.CONTROLPLANE_RUNNER, command: options.command, env, support: library.support },
    find: (program) => Bun.which(program, { PATH: env.PATH ?? '' }) ?? undefined,
  })
  if (!chosen.ok) return chosen
  if (chosen.note) say(chosen.note)
  const problem = chosen.name === 'own' ? ownRunnerProblem(setup) : undefined
  if (problem) return refused(problem)
  const host = await openHost(setup, { ahead: chosen.name === 'own' })
  const runner: WorkerRunner =
    chosen.name === 'own'
      ? { name: 'own', run: ownRunner({ host, setup, agentId, tools: library.tools }) }
      : { name: chosen.name, runner: chosen.runner, path: chosen.path, version: await programVersion(chosen.name, chosen.path) }
  const waiting = openWaitingChanges(places.waiting, host)
  const key = openAgentKey(places.key)
  const hungUp = new AbortController()
  const worker = openWorker({
    ...{ agentId, role, apiUrl, runner, env, say, folders: { workspace, ...places }, skills: library.skills },
    port: clientPort({ ...transport, stop: hungUp.signal }),
    hangUp: () => hungUp.abort(),
    copyWorkspace: createCopies({ host, setup, folder: places.copies, agentId, onKept: waiting.add }),
    tidyCopies: (readTask) => tidyParked(places.copies, readTask),
    reportDecided: waiting.reportDecided,
    receipts: () => ({ enabled: setup.config.receipts.enabled, ...(host.receipts() ?? { count: 0 }) }),
    check: async (command, workspaceDir, signal) => {
      const within = { ...setup, config: { ...setup.config, workspaceDir } }
      const checked = await runCheck({ name: 'of the task', tier: 0, command }, { host, setup: within, channel: 'control', signal })
      return checked.pass ? undefined : checked.evidence
    },
    manifest: manifestMaker({ key, host: hostname(), version: options.version, platform: `${process.platform}-${process.arch}` }),
    facts: { version: options.version, signing_key: key.publicKey },
    clock: { now: Date.now, monotonic: () => performance.now(), random: Math.random },
    ...{ model, once, labels, leaseSeconds, network, graceMs },
    readable: [...(options.readable ?? []), ...library.readable],
  })
  return { ok: true, agentId, role, runner: chosen.name, workspace, worker, close: host.close }
}

type PlaneReach = { readonly ok: true; readonly apiUrl: string; readonly transport: TransportOptions }

/** Returns the address of the control plane and how to reach it with the agent's key. */
function reachOf(options: OwnWorkerOptions): PlaneReach | (OpenedWorker & { readonly ok: false }) {
  const { env } = options.setup.context
  const agentId = options.agentId ?? (env.CONTROLPLANE_AGENT_ID || 'NAME')
  const apiUrl = (options.apiUrl ?? (env.CONTROLPLANE_API_URL || 'http://127.0.0.1:3100')).replace(/\/+$/, '')
  const apiKey = options.apiKey ?? env.CONTROLPLANE_API_KEY ?? ''
  if (!/^https?:\/\//.test(apiUrl)) return refused(`CONTROLPLANE_API_URL: ${JSON.stringify(apiUrl)} is not an http address`)
  if (apiKey === '')
    return refused(
      `no key for the agent: set CONTROLPLANE_API_KEY, or give "control worker" a file with --key-file; to make one: braidclaw control key new ${agentId} --to ${agentId}.key`,
    )
  return { ok: true, apiUrl, transport: { url: apiUrl, token: () => apiKey, fetch: options.fetch, sleep, random: Math.random } }
}

function refused(message: string) {
  return { ok: false, message } as const
}

const longestMs = 10_000

/** @returns undefined when the program prints nothing usable, and for a command of the operator, which may do anything with `--version` */
async function programVersion(name: ForeignRunner['name'], path: string): Promise<string | undefined> {
  if (name === 'command') return undefined
  try {
    const env = { PATH: process.env.PATH ?? '' }
    const child = Bun.spawn([path, '--version'], {
      env,
      cwd: '/',
      stdio: ['ignore', 'pipe', 'ignore'],
      timeout: longestMs,
      killSignal: 'SIGKILL',
    })
    const text = await child.stdout.text()
    return /\d+\.\d+[\w.+-]*/.exec(text.slice(0, 1_000))?.[0]
  } catch {
    return undefined
  }
}

type WorkerSkills = {
  readonly skills: Skills
  readonly support: RunnerSupport
  /** Lists the files that children must be able to read for it. */
  readonly readable: readonly string[]
  /** The own runner uses these; absent: the tools of the configuration. */
  readonly tools?: ToolSelection
}

type OpenedSkills = { readonly ok: true; readonly library: WorkerSkills } | { readonly ok: false; readonly message: string }

type SkillsOptions = {
  readonly setup: Setup
  readonly workspace: string
  /** The folder of the worker, which children may read in parts. */
  readonly state: string
  readonly owner: { readonly id: string; readonly role: string }
}

const libraryFile = 'agent/library.yaml'

/**
 * Opens the skills library of a workspace in the forms that each kind of runner needs. A workspace without a library is not a problem; a
 * library with mistakes is one. @throws the system's error when the state cannot be written
 */
function openWorkerSkills({ setup, workspace, state, owner }: SkillsOptions): OpenedSkills {
  const opened = openLibrary(join(workspace, libraryFile))
  if (!opened.ok) return opened.isMissing ? { ok: true, library: none } : { ok: false, message: opened.message }
  const agent = opened.forAgent(owner)
  const snapshot = join(state, 'library.json')
  mkdirSync(state, { recursive: true, mode: 0o700 })
  writeFileSync(snapshot, agent.snapshot(), { mode: 0o600 })
  const extension = agent.piExtension()
  const args = ['control', 'skills-server', '--library', snapshot, '--agent', owner.id, '--role', owner.role]
  const library: WorkerSkills = {
    skills: skillsOf(agent),
    support: { piExtension: extension, mcpServer: { command: ownProgram(), args } },
    readable: [snapshot, ...ownFiles()],
    tools: { ...builtInTools, more: toolSource(setup, agent.openSearch()) },
  }
  return { ok: true, library }
}

const none: WorkerSkills = { skills: noSkills, support: {}, readable: [] }

function skillsOf(agent: AgentSkills): Skills {
  return {
    exists: true,
    index: agent.index,
    match(task) {
      const skill = agent.match(task)
      if (!skill) return undefined
      const { name, summary, content, command } = skill
      return { name, summary, content: content || undefined, command }
    },
  }
}

/** Lists the files of our program, which runs as the MCP server inside the confinement of claude and codex. */
function ownFiles(): readonly string[] {
  const program = ownProgram()
  if (isCompiled()) return [program]
  const root = dirname(dirname(program))
  const at = root.indexOf('/node_modules/')
  return at < 0 ? [root] : [root.slice(0, at + '/node_modules'.length)]
}

/** Returns the same array each time, so that the model's list of tools does not change. */
function toolSource(setup: Setup, search: Parameters<typeof skillsSearchTool>[0]): ToolSource {
  const tool = skillsSearchTool(search)
  const sourced: SourcedTool = { ...tool, source: libraryFile, sha256: sha256(tool.description), changed: () => undefined }
  if (!hasStandingTools(setup)) {
    const tools = [sourced]
    return async () => tools
  }
  const standing = standingExecutables(setup)
  return async (deps) => [...(await standing(deps)), sourced]
}

export type RunnerChoice = {
  /** Holds `--runner`, else CONTROLPLANE_RUNNER; absent when neither is set. */
  readonly named?: string | undefined
  /** The program and its arguments for the runner "command". */
  readonly command?: readonly string[] | undefined
  readonly env: Readonly<Partial<Record<string, string>>>
  readonly support: RunnerSupport
  /** Finds a program by name or path; returns undefined when none can be run. */
  readonly find: (program: string) => string | undefined
}

/** `path` is the path of the program; `note` tells a person about an implicit choice. */
export type ChosenRunner =
  | { readonly ok: true; readonly name: 'own'; readonly note?: string }
  | {
      readonly ok: true
      readonly name: ForeignRunner['name']
      readonly runner: ForeignRunner
      readonly path: string
      readonly note?: string
    }
  | { readonly ok: false; readonly message: string }

export function chooseRunner(choice: RunnerChoice): ChosenRunner {
  const name = choice.named?.trim() ?? ''
  if (name === '') return impliedRunner(choice)
  const known = runnerNames.find((each) => each === name)
  if (known === undefined)
    return { ok: false, message: `unknown runner ${JSON.stringify(name)}; the runners are ${runnerNames.join(', ')}` }
  return known === 'own' ? { ok: true, name: 'own' } : foundRunner(known, choice)
}

function impliedRunner(choice: RunnerChoice): ChosenRunner {
  const pi = foundRunner('pi', choice)
  if (pi.ok && pi.name !== 'own') return { ...pi, note: `CONTROLPLANE_RUNNER is not set: pi runs the tasks (${pi.path})` }
  return {
    ok: true,
    name: 'own',
    note: 'CONTROLPLANE_RUNNER is not set and the program "pi" was not found: the own runner carries out the tasks, as with --runner own',
  }
}

function foundRunner(name: Exclude<RunnerName, 'own'>, choice: RunnerChoice): ChosenRunner {
  if (name === 'command' && (choice.command?.length ?? 0) === 0)
    return { ok: false, message: 'the runner "command" needs a program after "--": --runner command -- PROGRAM [ARGUMENT…]' }
  const runner = foreignRunner(name, choice)
  const path = choice.find(runner.program)
  if (path !== undefined) return { ok: true, name, runner, path }
  return {
    ok: false,
    message: `the runner "${name}" needs the program ${JSON.stringify(runner.program)}, which was not found; ${runner.install}`,
  }
}

function foreignRunner(name: Exclude<RunnerName, 'own'>, { env, support, command = [] }: RunnerChoice): ForeignRunner {
  const makers: Readonly<Record<typeof name, () => ForeignRunner>> = {
    pi: () => piRunner({ support }),
    claude: () => claudeRunner({ support }),
    codex: () => codexRunner({ support }),
    aider: () => aiderRunner({ program: env.CONTROLPLANE_AIDER_BIN || undefined, flags: env.CONTROLPLANE_AIDER_FLAGS }),
    command: () => commandRunner(command),
  }
  return makers[name]()
}
