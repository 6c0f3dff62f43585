/** Prepares a worker from a home and its environment: what `braidclaw control worker` and `braidclaw agent --control` start. */

import { hostname } from 'node:os'
import type { Host, Setup } from '../../host/api.ts'
import { openHost } from '../../host/open/open-host.ts'
import { workspaceOf } from '../../host/setup/workspace-folder.ts'
import { pause } from '../../service/sleep.ts'
import { createControlClient } from '../client/control-client.ts'
import type { TransportOptions } from '../client/transport.ts'
import { openAgentKey } from '../manifest/agent-key.ts'
import { manifestMaker } from '../manifest/run-manifest.ts'
import { chooseRunner } from '../runners/choose-runner.ts'
import { ownRunner, ownRunnerProblem } from '../runners/own-runner.ts'
import type { ForeignRunner, RunnerName } from '../runners/runner.ts'
import { tidyParked } from './changes/parked-copies.ts'
import { openWaitingChanges } from './changes/waiting-changes.ts'
import { createCopies } from './changes/workspace-copies.ts'
import { clientPort } from './client-port.ts'
import { identify } from './identify.ts'
import { openWorker } from './open-worker.ts'
import type { Worker, WorkerRunner } from './worker-options.ts'
import { placesOf, takeOverOlder } from './worker-places.ts'
import { openWorkerSkills } from './worker-skills.ts'

export type OwnWorkerOptions = {
  /** `config.workspaceDir` is what the tasks are about; the command lets CONTROLPLANE_WORKSPACE_CWD decide it. */
  readonly setup: Setup
  /** Has to be the role that the control plane knows; absent: that one. */
  readonly role?: string | undefined
  /** Has to be the agent of the key; default: CONTROLPLANE_AGENT_ID, else that one. */
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
    ...{ apiUrl, say, fleet: createControlClient({ ...transport, attempts: 1 }).fleet, pause: Bun.sleep },
    ...{ agentId: options.agentId ?? (env.CONTROLPLANE_AGENT_ID || undefined), role: options.role },
  })
  const workspace = workspaceOf(setup)
  const places = placesOf(setup, { agentId, planeId })
  await takeOverOlder(setup, agentId, places)
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
  const waiting = openWaitingChanges(places.waiting, host)
  const key = openAgentKey(places.key)
  const hungUp = new AbortController()
  const worker = openWorker({
    ...{ agentId, role, apiUrl, runner, env, say, folders: { workspace, ...places }, skills: found.skills },
    port: clientPort({ ...transport, stop: hungUp.signal }),
    hangUp: () => hungUp.abort(),
    copyWorkspace: createCopies({ host, setup, folder: places.copies, agentId, onKept: waiting.add }),
    tidyCopies: (look) => tidyParked(places.copies, look),
    tellDecided: waiting.tellDecided,
    receipts: () => receiptsOf(host, setup),
    manifest: manifestMaker({ key, host: hostname(), version: options.version, platform: `${process.platform}-${process.arch}` }),
    facts: { version: options.version, signing_key: key.publicKey },
    clock: { now: Date.now, monotonic: () => performance.now(), random: Math.random },
    ...{ model, once, labels, leaseSeconds, network, graceMs },
    readable: [...(options.readable ?? []), ...found.readable],
  })
  const close = async () => {
    found.close()
    await host.close()
  }
  return { ok: true, agentId, role, runner: chosen.name, workspace, worker, close }
}

type Reach = { readonly ok: true; readonly apiUrl: string; readonly transport: TransportOptions }

/** Where the control plane is, and with which key. */
function reachOf(options: OwnWorkerOptions): Reach | (OpenedWorker & { readonly ok: false }) {
  const { env } = options.setup.context
  const agentId = options.agentId ?? (env.CONTROLPLANE_AGENT_ID || 'NAME')
  const apiUrl = (options.apiUrl ?? (env.CONTROLPLANE_API_URL || 'http://127.0.0.1:3100')).replace(/\/+$/, '')
  const apiKey = options.apiKey ?? env.CONTROLPLANE_API_KEY ?? ''
  if (!/^https?:\/\//.test(apiUrl)) return refused(`CONTROLPLANE_API_URL: ${JSON.stringify(apiUrl)} is no http address`)
  if (apiKey === '')
    return refused(
      `no key for the agent: set CONTROLPLANE_API_KEY, or give "control worker" a file with --key-file; to make one: braidclaw control key new ${agentId} --to ${agentId}.key`,
    )
  return { ok: true, apiUrl, transport: { url: apiUrl, token: () => apiKey, fetch: options.fetch, pause, random: Math.random } }
}

function refused(message: string) {
  return { ok: false, message } as const
}

function receiptsOf(host: Host, { config }: Setup): Record<string, unknown> {
  return { enabled: config.receipts.enabled, ...(host.receipts() ?? { count: 0 }) }
}

const longestMs = 10_000

/** Empty when the program says nothing usable. A command of the operator is not asked: it may do anything with `--version`. */
async function programVersion(name: ForeignRunner['name'], path: string): Promise<{ readonly version?: string }> {
  if (name === 'command') return {}
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
    const version = /\d+\.\d+[\w.+-]*/.exec(text.slice(0, 1_000))?.[0]
    return version === undefined ? {} : { version }
  } catch {
    return {}
  }
}
