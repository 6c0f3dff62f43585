/** Runs an external loop of question, tool calls and results (`--tool-backend`): a script that calls back into `braidclaw tool run`. */

import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type Config, providerNamed } from '../../config/config.ts'
import type { Environment } from '../../host/api.ts'
import { FailureError } from '../../host/failure.ts'
import type { AgentProfile } from '../../host/setup/agent-profile.ts'
import { atEnd } from '../../kit/errors.ts'
import type { SandboxKind } from '../../sandbox/contract.ts'
import { isCompiled, ownProgram } from '../../service/own-program.ts'
import { toolBackends } from '../../tools/settings.ts'
import type { CliSetup } from '../terminal/context.ts'
import { onInterrupt } from '../terminal/signals.ts'
import { createLoopTalk } from './loop-trace.ts'

/** Uses the flag, else the environment or tools.backend. @throws FailureError `usage` for an unknown name. */
export function backendOf({ config }: CliSetup, flag: string = config.tools.backend): ToolBackend {
  const found = toolBackends.find((name) => name === flag)
  if (found) return found
  throw new FailureError('usage', `--tool-backend "${flag}" does not exist; there are: ${toolBackends.join(', ')}`)
}

type ToolBackend = Config['tools']['backend']

type BackendRun = {
  readonly setup: CliSetup
  /** The caller handles `native`, which is an ordinary turn with the tools of `parseToolsOption`. */
  readonly backend: Exclude<ToolBackend, 'native'>
  readonly message: string
  readonly system: string
  /** Written as in the flag --tools. */
  readonly tools: string
  /** The agent whose agent.jsonl logs the iterations and calls of the loop; the caller logs question and answer. */
  readonly agent: string
  /** The model as typed; otherwise the configured model (bash), or the program's own (llm). */
  readonly model?: string
  readonly sandbox?: SandboxKind
}

/**
 * `text` is the final answer without its last newline, empty when there is none. `code`: 0 answered, 1 error (already printed on stderr), 2
 * too many rounds. `cancelled`: a signal ended us and the script.
 */
export type BackendEnd = { readonly code: 0 | 1 | 2; readonly text: string; readonly cancelled?: true }

/** How long a script may take to end by itself after Ctrl-C, in milliseconds. */
const ownEndMs = 1000

/**
 * Forwards the loop's own messages to our stderr and writes nothing to stdout. The round limit is limits.max_tool_rounds. @throws
 * FailureError `error` when the script or bash is missing
 */
export async function runBackend(run: BackendRun): Promise<BackendEnd> {
  const { setup, backend, message, system, tools } = run
  const { config, context } = setup
  const script = scriptOf(backend)
  const bash = Bun.which('bash', { PATH: context.env.PATH ?? '' })
  if (bash === null) throw new FailureError('error', `--tool-backend ${backend}: bash is missing; install it, or use --tool-backend native`)
  const child = Bun.spawn([bash, script, '-', system, tools, String(config.limits.maxToolRounds)], {
    cwd: context.cwd,
    env: { ...context.env, ...scriptVariables(run) },
    stdin: new Blob([message]),
    stdout: 'pipe',
    stderr: 'pipe',
  })
  // The terminal sends Ctrl-C to the script too; a SIGINT to this process alone does not reach it.
  const interrupt = onInterrupt((by) => {
    if (by !== 'Ctrl-C') child.kill('SIGTERM')
    else setTimeout(() => child.kill('SIGTERM'), ownEndMs).unref()
  })
  const [text] = await Promise.all([child.stdout.text(), forward(child.stderr, context.process.stderr.write), child.exited])
  interrupt.stop()
  if (interrupt.signal.aborted) return { code: 1, text: '', cancelled: true }
  const { exitCode } = child
  return { code: exitCode === 0 || exitCode === 2 ? exitCode : 1, text: text.replace(/\n$/, '') }
}

/** Forwards the script's output as it arrives. */
async function forward(stream: ReadableStream<Uint8Array>, write: (text: string) => void): Promise<void> {
  const decoder = new TextDecoder()
  for await (const piece of stream) write(decoder.decode(piece, { stream: true }))
}

/** Returns the variables for the script and the `tool run` calls it makes: the configuration as resolved here. */
function scriptVariables({ setup, backend, agent, model, sandbox }: BackendRun): Environment {
  const { config, context, paths } = setup
  const { security, workspaceDir } = config
  return {
    BRAIDCLAW: ownProgram(),
    BRAIDCLAW_HOME: paths.home,
    BRAIDCLAW_WORKSPACE: workspaceDir,
    BRAIDCLAW_AUTONOMY: security.autonomy,
    BRAIDCLAW_SECURITY_APPROVE_ALL_MEDIUM: String(security.approveAllMedium),
    BRAIDCLAW_TOOLS_ENV: JSON.stringify(config.tools.env),
    TOOL_LOOP_AGENT: agent,
    TOOL_LOOP_QUIET: '1',
    ...(sandbox && { TOOL_LOOP_SANDBOX: sandbox }),
    ...providerVariables(setup, context.env),
    // As typed it may name one of our providers, which only we know; llm knows its own models.
    ...(model === undefined ? {} : { TOOL_LOOP_MODEL: backend === 'llm' ? model : config.defaultModel }),
  }
}

/** Returns the configured model for the bash loop, which supports two wire formats. Other providers are left to the usual variables. */
function providerVariables({ config }: CliSetup, env: Environment): Environment {
  const found = providerNamed(config, config.defaultProvider)
  if (found?.kind !== 'anthropic' && found?.kind !== 'openai-compatible') return {}
  const key = found.apiKeyEnv && env[found.apiKeyEnv]
  const [wire, vendor] = found.kind === 'anthropic' ? ['messages', 'ANTHROPIC'] : ['chat', 'OPENAI']
  return {
    TOOL_LOOP_WIRE: wire,
    TOOL_LOOP_CONFIGURED_MODEL: config.defaultModel,
    ...(found.baseUrl && { [`${vendor}_BASE_URL`]: found.baseUrl }),
    ...(key && { [`${vendor}_API_KEY`]: key }),
    ...(found.maxOutputTokens && { TOOL_LOOP_MAX_TOKENS: String(found.maxOutputTokens) }),
  }
}

/** The sources contain the script; a compiled executable looks beside itself and one folder up. */
function scriptOf(backend: string): string {
  const here = isCompiled() ? dirname(process.execPath) : join(import.meta.dir, '../../..')
  const script = backend === 'elixir' ? 'elixir/tool_loop.sh' : backend
  const places = [here, dirname(here), join(dirname(here), 'share/braidclaw')].map((root) => join(root, 'bridges/tool-loop', script))
  const found = places.find((path) => existsSync(path))
  if (found) return found
  throw new FailureError('error', `--tool-backend ${backend}: its script is not there; looked for ${places.join(', ')}`)
}

type Loop = Pick<BackendRun, 'setup' | 'system' | 'model' | 'sandbox'> & {
  /** Written as in the flag --tool-backend. */
  readonly backend?: string | undefined
  /** A flag that an external loop does not support. */
  readonly odd?: string | undefined
  readonly agentProfile: AgentProfile
  readonly prompt: string
  readonly tools?: string | undefined
}

/**
 * Runs a filter call through an external loop and writes its lines to the agent's files, from which the next turn reads them.
 * @returns the exit code; undefined when the native loop has to run. @throws FailureError `usage` for flags that do not go together
 */
export async function runExternalLoop({ setup, agentProfile, prompt, tools, odd, ...asked }: Loop): Promise<number | undefined> {
  if (tools === undefined) throw new FailureError('usage', '--tool-backend runs a loop with tools; name them with --tools')
  const backend = backendOf(setup, asked.backend)
  if (backend === 'native') return undefined
  if (odd !== undefined)
    throw new FailureError('usage', `${odd} means nothing with the tool backend "${backend}"; it is for --tool-backend native`)
  const talk = createLoopTalk(setup, agentProfile)
  talk.asked(prompt)
  using _end = atEnd(() => talk.end())
  const { code, text, cancelled } = await runBackend({ ...asked, setup, backend, message: prompt, tools, agent: agentProfile.id })
  if (cancelled) return setup.context.exitCodeOf('cancelled')
  if (code === 0) talk.answered(text.replace(/\n$/, ''))
  if (text !== '') setup.context.process.stdout.data(text.endsWith('\n') ? text : `${text}\n`)
  return code === 2 ? setup.context.exitCodeOf('limit') : code
}
