/** Who runs the loop of question, tool calls and results: ourselves, or a script that calls back into `braidclaw tool run`. */

import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type Config, providerNamed } from '../../config/config.ts'
import type { Environment } from '../../host/api.ts'
import { FailureError } from '../../host/failure.ts'
import type { SandboxKind } from '../../sandbox/confinement.ts'
import { toolBackends } from '../../tools/settings.ts'
import type { CliSetup } from '../terminal/context.ts'
import { onInterrupt } from '../terminal/signals.ts'

/** The flag, else the environment or tools.backend. @throws FailureError usage for a name that is none. */
export function backendOf({ config }: CliSetup, flag?: string): ToolBackend {
  const wanted = flag ?? config.tools.backend
  const found = toolBackends.find((name) => name === wanted)
  if (found) return found
  throw new FailureError('usage', `--tool-backend "${wanted}" is none; there are: ${toolBackends.join(', ')}`)
}

type ToolBackend = Config['tools']['backend']

export type BackendRun = {
  readonly setup: CliSetup
  /** `native` is the caller's own affair: it is an ordinary turn with `toolWishOf` as its tools. */
  readonly backend: Exclude<ToolBackend, 'native'>
  readonly message: string
  readonly system: string
  /** As --tools names them. */
  readonly tools: string
  /** In whose agent.jsonl the loop's iterations and calls are logged; the question and the answer are the caller's to log. */
  readonly agent: string
  /** As typed; else the configured one (bash), or the program's own (llm). */
  readonly model?: string
  readonly sandbox?: SandboxKind
}

/**
 * `text` is the final answer without its last newline, empty when there is none. 0 answered, 1 error (said on stderr already), 2 too many
 * rounds. `cancelled`: somebody ended us meanwhile, and the script with us.
 */
export type BackendEnd = { readonly code: 0 | 1 | 2; readonly text: string; readonly cancelled?: true }

/** What a script may take to end by itself after Ctrl-C, in milliseconds. */
const ownEndMs = 1000

/** The loop's own messages go to our stderr. Rounds: limits.max_tool_rounds. Nothing is written to stdout. @throws FailureError error without the script, or bash */
export async function runBackend(run: BackendRun): Promise<BackendEnd> {
  const { setup, backend, message, system, tools } = run
  const { config, context } = setup
  const script = scriptOf(backend)
  const child = Bun.spawn([bashFor(run), script, '-', system, tools, String(config.limits.maxToolRounds)], {
    cwd: context.cwd,
    env: { ...defined(context.env), ...circumstances(run) },
    stdin: new Blob([message]),
    stdout: 'pipe',
    stderr: 'pipe',
  })
  // Ctrl-C reaches the script by itself; a SIGINT that was sent to us alone does not.
  const interrupt = onInterrupt((by) => {
    if (by !== 'Ctrl-C') child.kill('SIGTERM')
    else setTimeout(() => child.kill('SIGTERM'), ownEndMs).unref()
  })
  const [text] = await Promise.all([child.stdout.text(), passOn(child.stderr, context.process.stderr.write), child.exited])
  interrupt.stop()
  if (interrupt.signal.aborted) return { code: 1, text: '', cancelled: true }
  const { exitCode } = child
  return { code: exitCode === 0 || exitCode === 2 ? exitCode : 1, text: text.replace(/\n$/, '') }
}

/** What the script says, as it comes. */
async function passOn(stream: ReadableStream<Uint8Array>, write: (text: string) => void): Promise<void> {
  const decoder = new TextDecoder()
  for await (const piece of stream) write(decoder.decode(piece, { stream: true }))
}

function bashFor({ setup: { context }, backend }: BackendRun): string {
  const bash = Bun.which('bash', { PATH: context.env.PATH ?? '' })
  if (bash !== null) return bash
  throw new FailureError('error', `--tool-backend ${backend}: bash is missing; install it, or use --tool-backend native`)
}

/** What the script and the `tool run` it calls go by: the configuration as it was resolved here. */
function circumstances({ setup, backend, agent, model, sandbox }: BackendRun): { readonly [name: string]: string } {
  const { config, context, paths } = setup
  const { security, workspaceDir } = config
  return {
    BRAIDCLAW: ourselves(),
    BRAIDCLAW_HOME: paths.home,
    BRAIDCLAW_WORKSPACE: workspaceDir,
    BRAIDCLAW_AUTONOMY: security.autonomy,
    BRAIDCLAW_SECURITY_APPROVE_ALL_MEDIUM: String(security.approveAllMedium),
    TOOL_LOOP_AGENT: agent,
    TOOL_LOOP_QUIET: '1',
    ...(sandbox ? { TOOL_LOOP_SANDBOX: sandbox } : {}),
    ...vendor(setup, context.env),
    // As typed it may name one of our providers, which only we know; llm knows its own.
    ...(model === undefined ? {} : { TOOL_LOOP_MODEL: backend === 'bash' ? config.defaultModel : model }),
  }
}

/** The configured model for the bash loop, which speaks two wires. What is not one of them is left to the usual variables. */
function vendor({ config }: CliSetup, env: Environment): { readonly [name: string]: string } {
  const found = providerNamed(config, config.defaultProvider)
  if (found?.kind !== 'anthropic' && found?.kind !== 'openai-compatible') return {}
  const key = found.apiKeyEnv ? env[found.apiKeyEnv] : undefined
  const names =
    found.kind === 'anthropic'
      ? { wire: 'messages', url: 'ANTHROPIC_BASE_URL', key: 'ANTHROPIC_API_KEY' }
      : { wire: 'chat', url: 'OPENAI_BASE_URL', key: 'OPENAI_API_KEY' }
  return {
    TOOL_LOOP_WIRE: names.wire,
    TOOL_LOOP_CONFIGURED_MODEL: config.defaultModel,
    ...(found.baseUrl ? { [names.url]: found.baseUrl } : {}),
    ...(key ? { [names.key]: key } : {}),
    ...(found.maxOutputTokens ? { TOOL_LOOP_MAX_TOKENS: String(found.maxOutputTokens) } : {}),
  }
}

/** In the sources beside them; a compiled executable finds them beside itself or one folder up. */
function scriptOf(backend: string): string {
  const here = isCompiled() ? dirname(process.execPath) : join(import.meta.dir, '../../..')
  const places = [here, dirname(here), join(dirname(here), 'share/braidclaw')].map((root) => join(root, 'bridges/tool-loop', backend))
  const found = places.find((path) => existsSync(path))
  if (found) return found
  throw new FailureError('error', `--tool-backend ${backend}: its script is not there; looked for ${places.join(', ')}`)
}

function ourselves(): string {
  return isCompiled() ? process.execPath : join(import.meta.dir, '../../../bin/braidclaw')
}

function isCompiled(): boolean {
  return import.meta.path.startsWith('/$bunfs/')
}

function defined(env: Environment): { [name: string]: string } {
  return Object.fromEntries(Object.entries(env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])))
}
