/** Prepares a worker from a home and its environment: what `braidclaw control worker` and `braidclaw agent --control` start. */

import { homedir, hostname } from 'node:os'
import { isAbsolute, join } from 'node:path'
import type { Host, Setup } from '../../host/api.ts'
import { openHost } from '../../host/open/open-host.ts'
import { workspaceOf } from '../../host/setup/workspace-folder.ts'
import { pause } from '../../service/sleep.ts'
import { openAgentKey } from '../manifest/agent-key.ts'
import { manifestMaker } from '../manifest/manifest-of-run.ts'
import { chooseRunner } from '../runners/choose-runner.ts'
import { ownRunner, ownRunnerProblem } from '../runners/own-runner.ts'
import { openWaitingChanges } from './changes/waiting-changes.ts'
import { createCopies } from './changes/workspace-copies.ts'
import { clientPort } from './client-port.ts'
import { openWorker } from './open-worker.ts'
import { programVersion } from './program-version.ts'
import type { Worker, WorkerRunner } from './worker-options.ts'
import { openWorkerSkills } from './worker-skills.ts'

export type OwnWorkerOptions = {
  /** `config.workspaceDir` is what the tasks are about; the command lets CONTROLPLANE_WORKSPACE_CWD decide it. */
  readonly setup: Setup
  readonly role: string
  /** Default: CONTROLPLANE_AGENT_ID, else the role. */
  readonly agentId?: string | undefined
  /** `--runner`; default: CONTROLPLANE_RUNNER, else pi if it is found, else own. */
  readonly runner?: string | undefined
  /** For the runner "command". */
  readonly command?: readonly string[] | undefined
  readonly model?: string | undefined
  readonly once?: boolean | undefined
  readonly labels?: readonly string[] | undefined
  readonly leaseSeconds?: number | undefined
  readonly network?: 'control' | 'host' | undefined
  readonly readable?: readonly string[] | undefined
  readonly graceMs?: number | undefined
  /** The guarded fetch. */
  readonly fetch: typeof fetch
  /** Default: CONTROLPLANE_API_URL, else http://127.0.0.1:3100. */
  readonly apiUrl?: string | undefined
  /** Default: CONTROLPLANE_API_KEY. */
  readonly apiKey?: string | undefined
  readonly version: string
  readonly say: (line: string) => void
}

export type OpenedWorker =
  | { readonly ok: true; readonly worker: Worker; close(): Promise<void> }
  | { readonly ok: false; readonly message: string }

/** @throws FailureError when the home or its workspace cannot be used */
export async function openOwnWorker(options: OwnWorkerOptions): Promise<OpenedWorker> {
  const { setup, role, say } = options
  const { env } = setup.context
  const agentId = options.agentId ?? (env.CONTROLPLANE_AGENT_ID || role)
  const apiUrl = (options.apiUrl ?? (env.CONTROLPLANE_API_URL || 'http://127.0.0.1:3100')).replace(/\/+$/, '')
  const apiKey = options.apiKey ?? env.CONTROLPLANE_API_KEY ?? ''
  if (!/^https?:\/\//.test(apiUrl)) return refused(`CONTROLPLANE_API_URL: ${JSON.stringify(apiUrl)} is no http address`)
  if (apiKey === '')
    return refused(
      `no key for the agent: CONTROLPLANE_API_KEY is not set, and no --key-file names one; to make one: braidclaw control key new ${agentId} --to ${agentId}.key`,
    )
  const workspace = workspaceOf(setup)
  const places = placesOf(setup, agentId)
  const library = openWorkerSkills({ setup, workspace, state: places.state, owner: { id: agentId, role } })
  if (!library.ok) return library
  const { found } = library
  const chosen = chooseRunner({
    ...{ named: options.runner ?? env.CONTROLPLANE_RUNNER, command: options.command, env, support: found.support },
    find: (program) => Bun.which(program, { PATH: env.PATH ?? '' }) ?? undefined,
  })
  if (!chosen.ok) return chosen
  if (chosen.said) say(chosen.said)
  const problem = chosen.name === 'own' ? ownRunnerProblem(setup) : undefined
  if (problem) return refused(problem)
  const host = openHost(setup, { ahead: chosen.name === 'own' })
  const runner: WorkerRunner =
    chosen.name === 'own'
      ? { name: 'own', run: ownRunner({ host, setup, agentId, ...(found.tools ? { tools: found.tools } : {}) }) }
      : { name: chosen.name, runner: chosen.runner, path: chosen.path, ...(await programVersion(chosen.name, chosen.path)) }
  const waiting = openWaitingChanges(join(places.state, 'waiting-changes.json'), host)
  const key = openAgentKey(places.key)
  const hungUp = new AbortController()
  const worker = openWorker({
    ...{ agentId, role, apiUrl, runner, env, say, folders: { workspace, ...places }, skills: found.skills },
    port: clientPort({ url: apiUrl, token: () => apiKey, fetch: options.fetch, pause, random: Math.random, stop: hungUp.signal }),
    hangUp: () => hungUp.abort(),
    copyWorkspace: createCopies({ host, setup, folder: join(places.state, 'copies'), agentId, onKept: waiting.add }),
    tellDecided: waiting.tellDecided,
    receipts: () => receiptsOf(host, setup),
    manifest: manifestMaker({ key, host: hostname(), version: options.version, platform: `${process.platform}-${process.arch}` }),
    facts: { version: options.version, signing_key: key.publicKey },
    clock: { now: Date.now, monotonic: () => performance.now(), random: Math.random },
    ...given(options),
    readable: [...(options.readable ?? []), ...found.readable],
  })
  const close = async () => {
    found.close()
    await host.close()
  }
  return { ok: true, worker, close }
}

function refused(message: string): OpenedWorker {
  return { ok: false, message }
}

/** Leaves out what was not given. */
function given({ model, once, labels, leaseSeconds, network, graceMs }: OwnWorkerOptions) {
  return {
    ...(model === undefined ? {} : { model }),
    ...(once === undefined ? {} : { once }),
    ...(labels === undefined ? {} : { labels }),
    ...(leaseSeconds === undefined ? {} : { leaseSeconds }),
    ...(network === undefined ? {} : { network }),
    ...(graceMs === undefined ? {} : { graceMs }),
  }
}

/** Our home is closed to tools, so what children see lies elsewhere. */
function placesOf({ context: { env, home, cwd } }: Setup, agentId: string) {
  const cache = env.XDG_CACHE_HOME || join(env.HOME ?? homedir(), '.cache')
  const absolute = (path: string) => (isAbsolute(path) ? path : join(cwd, path))
  return {
    state: join(cache, 'braidclaw', 'worker', agentId),
    key: join(home, 'control', 'agents', agentId),
    sessions: absolute(env.CONTROLPLANE_SESSION_CWD || join(home, 'control', 'sessions')),
    logs: absolute(env.CONTROLPLANE_AIDER_LOG_DIR || join(home, 'control', 'logs')),
  }
}

function receiptsOf(host: Host, { config }: Setup): Record<string, unknown> {
  return { enabled: config.receipts.enabled, ...(host.receipts() ?? { count: 0 }) }
}
