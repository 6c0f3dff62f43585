/**
 * Runs a whole agent in a sandbox: its process and everything that it starts see the workspace and a home of their own. The configured model and
 * the tools of the program are called in this process, which alone has the keys.
 */

import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { tomlValue } from '../../config/text/toml.ts'
import type { Setup } from '../../host/api.ts'
import { FailureError } from '../../host/failure.ts'
import { openHost } from '../../host/open/open-host.ts'
import { policyOf } from '../../host/setup/effective-policy.ts'
import { createConfinement } from '../../host/toolset/sandbox/command-sandbox.ts'
import { errorText } from '../../kit/errors.ts'
import { lazy } from '../../kit/lazy.ts'
import { sha256 } from '../../kit/sha256.ts'
import type { ModelCall } from '../../providers/model-call.ts'
import { missingForNetwork } from '../../sandbox/bubblewrap/command-network.ts'
import type { SpawnResult } from '../../sandbox/contract.ts'
import { ownFolder } from '../../sandbox/private-folder.ts'
import { isWithin } from '../../sandbox/protect/places.ts'
import { isCompiled, ownProgram } from '../../service/own-program.ts'
import { watchStop } from '../../service/stop-file.ts'
import { cleanEnvironment } from '../../tools/process.ts'
import { realPlace } from '../../workspace/real-place.ts'
import type { AgentOptions, BraidClaw, ProgramParts } from '../agent/agent-api.ts'
import { argumentsOf, type RunningProgram } from './link.ts'
import { remoteAgent } from './remote-agent.ts'

/** Limits a confined agent, which also sees the system's programs. */
export type AgentBounds = {
  /** Paths in the workspace, relative to it or absolute; the rest of it is read-only. Absent: the whole workspace is writable. */
  readonly allowWrite?: readonly string[] | undefined
  /** Names and paths that nothing inside can read. */
  readonly denyRead?: readonly string[] | undefined
  /** Hosts that commands inside reach over HTTP and HTTPS. */
  readonly allowedDomains?: readonly string[] | undefined
  readonly timeoutMs?: number | undefined
  /** Memory of all processes inside together. */
  readonly memoryBytes?: number | undefined
}

export type ConfinedOptions = {
  readonly setup: Setup
  readonly bounds: AgentBounds
  readonly parts: ProgramParts
  /** Configures the agent inside. */
  readonly options: Pick<AgentOptions, 'model' | 'permissionMode' | 'maxTurns' | 'conversation' | 'log'>
}

/** Is the place of the agent's own home, as it sees it. */
const homeInside = '/run/braidclaw'

/** Creates the agent; its process starts with the first run. @throws FailureError `usage` when it cannot be confined as asked */
export function confinedAgent({ setup, bounds, parts, options }: ConfinedOptions): BraidClaw {
  const model = lazy(() => openModel(setup))
  const confined = confine(setup, bounds)
  const { tools, rules: threads, modelCall = callOf(async () => (await model.get()).provider, setup) } = parts
  const given = { ...options, cwd: confined.workspace, tools, threads, modelCall }
  const agent = remoteAgent(given, (resumed) => confined.start(argumentsOf({ ...given, conversation: resumed ?? options.conversation })))
  return {
    ...agent,
    async close() {
      await agent.close()
      confined.close()
      await (await model.settled())?.close()
    },
  }
}

/** Opens the configured model in the home of this process, where its cost is recorded and budgets hold. */
async function openModel(setup: Setup) {
  const host = await openHost(setup)
  const conversation = await host.conversation({ kind: 'called', name: 'confined' }, { channel: 'confined', tools: { builtIn: [] } })
  return { provider: await conversation.sideModel(), close: host.close }
}

function callOf(provider: () => Promise<Awaited<ReturnType<typeof openModel>>['provider']>, { config }: Setup): ModelCall {
  return async function* (messages, tools, signal, { system }) {
    const request = { systemPrompt: system, messages, tools, model: config.defaultModel }
    for await (const chunk of (await provider()).chat(request, signal)) {
      if (chunk.type === 'text' || chunk.type === 'thinking') yield { type: chunk.type, content: chunk.text }
      if (chunk.type !== 'done') continue
      for (const part of chunk.response.parts)
        if (part.type === 'call') yield { type: 'tool_use', name: part.name, input: part.input, id: part.id }
    }
  }
}

type Confined = { readonly workspace: string; start(words: readonly string[]): RunningProgram; close(): void }

/** @throws FailureError */
function confine(given: Setup, { allowWrite, denyRead = [], allowedDomains = [], timeoutMs, memoryBytes }: AgentBounds): Confined {
  const setup = withUnread(given, denyRead)
  const { paths, context, log } = setup
  const policy = policyOf(setup.config, paths, context.env)
  const writablePaths = allowWrite && writableIn(policy.workspace, allowWrite)
  const missing = allowedDomains.length > 0 ? missingForNetwork() : []
  if (missing.length > 0) throw usage(`allowed domains need ${missing.join(' and ')}; install that, or name no domain`)
  const seconds = timeoutMs === undefined ? {} : { cpuSeconds: Math.ceil(timeoutMs / 1_000) * navigator.hardwareConcurrency }
  const limits = { ...seconds, ...(memoryBytes ? { totalMemoryBytes: memoryBytes } : {}) }
  const confinement = createConfinement('bubblewrap', { setup, policy, limits })
  const folder = ownFolder(paths.home, log)
  if (!folder.ok) throw usage(folder.missing)
  const { path: ownPath, remove: removeFolder } = folder
  const config = join(ownPath, 'config.toml')
  writeFileSync(config, configInside(setup), { mode: 0o600 })
  const home = join(paths.home, 'confined', sha256(policy.workspace).slice(0, 16))
  mkdirSync(home, { recursive: true, mode: 0o700 })
  const own = ownProgram()
  const program = isCompiled() ? own : dirname(dirname(own))
  const files = [
    { path: homeInside, from: home, writable: true as const },
    { path: join(homeInside, 'config.toml'), from: config },
    ...[paths.trustedFolders].filter(existsSync).map((from) => ({ path: join(homeInside, from.slice(paths.home.length)), from })),
    ...(isWithin(program, policy.workspace) ? [] : [{ path: program }]),
  ]

  function start(words: readonly string[]): RunningProgram {
    const stop = new AbortController()
    const ends = [stop.signal, ...(timeoutMs === undefined ? [] : [AbortSignal.timeout(timeoutMs)])]
    const fifo = `input-${crypto.randomUUID()}`
    const feed = feedOf(join(home, fifo))
    const unwatch = watchStop(paths.estop, () => stop.abort())
    const listening: { on?: Parameters<RunningProgram['listen']>[0] } = {}
    // The descriptor that the agent inherits is its only way to our lines: the name goes with the first output.
    const hideInput = () => rmSync(join(home, fifo), { force: true })
    const ended = confinement.spawn({
      argv: ['/bin/sh', '-c', 'exec <"$0" && exec "$@"', join(homeInside, fifo), own, ...words, '--sandbox', 'none'],
      cwd: policy.workspace,
      env: { ...cleanEnvironment({ home: policy.workspace }), BRAIDCLAW_HOME: homeInside },
      signal: AbortSignal.any(ends),
      network: allowedDomains,
      writablePaths,
      readablePaths: files,
      onOutput(piece, from) {
        hideInput()
        listening.on?.output(piece.slice(), from)
      },
    })
    const failed = (error: unknown): SpawnResult => ({ ok: false, message: errorText(error) })
    void ended.catch(failed).then((how) => {
      hideInput()
      unwatch()
      feed.kill('SIGKILL')
      listening.on?.end(howEnded(how, !stop.signal.aborted && timeoutMs))
    })
    return {
      stdin: feed.stdin,
      listen: (on) => void Object.assign(listening, { on }),
      kill: () => stop.abort(),
      handles: [feed, feed.stdin],
    }
  }

  function close(): void {
    confinement.close()
    removeFolder()
  }
  return { workspace: policy.workspace, start, close }
}

/** Adds names and paths that nothing may read. @throws FailureError for one that would allow something */
function withUnread(setup: Setup, names: readonly string[]): Setup {
  const exception = names.find((name) => name.startsWith('!') || name === '')
  if (exception !== undefined) throw usage(`denyRead ${JSON.stringify(exception)} is not a name or a path`)
  const isPlace = (name: string) => /^[/~$]/.test(name)
  const { security } = setup.config
  const forbiddenPaths = [...security.forbiddenPaths, ...names.filter(isPlace)]
  const forbiddenReads = [...security.forbiddenReads, ...names.filter((name) => !isPlace(name)).map((name) => name.replace(/^\.\//, ''))]
  return { ...setup, config: { ...setup.config, security: { ...security, forbiddenPaths, forbiddenReads } } }
}

/** Feeds a FIFO: an inherited stdin would be open in the first process of the sandbox too, to commands. @throws Error */
function feedOf(fifo: string) {
  const made = Bun.spawnSync(['mkfifo', '-m', '600', fifo])
  if (!made.success) throw new Error(`mkfifo: ${made.stderr}`)
  return spawn('/bin/sh', ['-c', 'exec cat >"$0"', fifo], { stdio: ['pipe', 'ignore', 'ignore'] })
}

/** Completes "the braidclaw process …". `timeoutMs` is false when somebody else stopped it. */
function howEnded(ended: SpawnResult, timeoutMs: number | false | undefined): string {
  if (!ended.ok) return `could not be started (${ended.message})`
  if (ended.stopped !== undefined) return `was ended by its sandbox: ${ended.stopped}`
  if (ended.code !== null) return `ended with exit code ${ended.code}`
  return timeoutMs ? `was ended after ${timeoutMs / 1_000} s (limits.timeout)` : 'was stopped'
}

/** @returns real paths. @throws FailureError that names the first path that cannot be written in the sandbox */
function writableIn(workspace: string, given: readonly string[]): readonly string[] {
  return given.map((path) => {
    const real = realPlace(resolve(workspace, path))
    if (!isWithin(real, workspace)) throw usage(`allowWrite ${JSON.stringify(path)} lies outside of the workspace ${workspace}`)
    if (!existsSync(real)) throw usage(`allowWrite ${JSON.stringify(path)} does not exist in ${workspace}; create it first`)
    return real
  })
}

/** The settings of the operator that an agent without keys and channels needs. */
function configInside({ config: { security } }: Setup): string {
  const { forbiddenPaths, forbiddenReads, forbiddenCommands, allowCommands, approveAllMedium, ask } = security
  const rows = { forbidden_paths: forbiddenPaths, forbidden_reads: forbiddenReads, forbidden_commands: forbiddenCommands }
  const all = Object.entries({ ...rows, allow_commands: allowCommands, approve_all_medium: approveAllMedium, ask })
  return ['[security]', ...all.map(([key, value]) => `${key} = ${tomlValue(value)}`), ''].join('\n')
}

function usage(why: string): FailureError {
  return new FailureError('usage', `the agent cannot be confined: ${why}`)
}
