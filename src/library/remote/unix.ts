/** Offers the library for Unix programs on Node: each call runs the program once, which does what the library does in Bun. */

import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import type { FailureCode } from '../../host/failure.ts'
import type { HostOptions } from '../../host/open/library.ts'
import { isObject, type JsonObject, parseJson } from '../../kit/json.ts'
import { findExecutable } from '../executable.ts'
import type { Answer, LlmOptions, ToolInfo, ToolOptions, ToolRun } from './unix-api.ts'

export { composeSystem, session } from './unix-api.ts'

/** As in Bun, but `onText` receives the answer in one piece. */
export async function llmCall(message: string, options: LlmOptions = {}): Promise<Answer> {
  const { system, model, agent, tools: named, onText, signal, ...around } = options
  if (message.trim() === '') return { ok: false, code: 'usage', message: 'there is nothing to answer: the message is empty', text: '' }
  // With a newline it is a text, whatever it looks like.
  const soul = system === undefined || system.includes('\n') ? system : `${system}\n`
  const flags = [...flag('--system', soul), ...flag('--model', model), ...flag('--agent', agent), ...flag('--tools', named)]
  const words = ['filter', '--json', ...flags, ...(options.continue ? ['--continue'] : [])]
  const ended = await run(words, { ...around, stdin: message, signal })
  const reply = parseJson(ended.stdout)
  if (!isObject(reply)) return { ok: false, ...failureOf(ended), text: '' }
  const textOf = (member: unknown) => (typeof member === 'string' ? member : '')
  const answer = textOf(reply.result)
  if (answer) onText?.(answer)
  if (ended.code === 0) return { ok: true, text: answer, runId: textOf(reply.runId), conversationId: textOf(reply.conversationId) }
  return { ok: false, code: failureOf(ended).code, message: textOf(reply.message), text: answer }
}

export const tools = {
  /** @throws Error when the configuration or the named tools cannot be used */
  async list({ tools: named, ...around }: ToolOptions = {}): Promise<readonly ToolInfo[]> {
    const ended = await run(['tool', 'list', '--json', ...flag('--tools', named)], around)
    const rows = parseJson(ended.stdout)
    if (!Array.isArray(rows)) throw new Error(failureOf(ended).message)
    const allowed = rows.filter(({ why }) => why !== 'not in channels.cli.tools_allow')
    return allowed.map(({ name, description, parameters, risk }) => ({ name, description, parameters, risk }))
  },
  /** Runs one call through the same gate as the model's calls, with a receipt. It asks nobody. It throws only for bugs. */
  async run(name: string, input: JsonObject, { tools: named, ...around }: ToolOptions = {}): Promise<ToolRun> {
    const words = ['tool', 'run', name, '--json', '-', '--channel', 'tool-loop', ...flag('--tools', named)]
    const ended = await run(words, { ...around, stdin: JSON.stringify(input) })
    if (ended.code === 0) return { ok: true, output: ended.stdout }
    const { code, message } = failureOf(ended)
    return { ok: false, code, message: ended.stdout || message }
  },
}

type Given = HostOptions & { readonly stdin?: string; readonly signal?: AbortSignal | undefined }
type Ended = { readonly code: number | null; readonly stdout: string; readonly stderr: string }

function flag(name: string, value: string | undefined): readonly string[] {
  return value === undefined ? [] : [`${name}=${value}`]
}

/** Runs the program in a session of its own, so that it finds no terminal to ask at. @throws Error when it cannot be started */
async function run(words: readonly string[], { home, workspace, env = process.env, log, stdin = '', signal }: Given): Promise<Ended> {
  const child = spawn(findExecutable({ env }), [...words, ...flag('--workspace', workspace)], {
    env: { ...env, ...(home === undefined ? {} : { BRAIDCLAW_HOME: home }) },
    ...{ detached: true, signal },
  })
  const ended = new Promise<number | null>((resolve, reject) => {
    child.on('error', (error) => signal?.aborted || reject(error))
    child.on('close', resolve)
  })
  // It may end before it has read all.
  child.stdin.on('error', () => {}).end(stdin)
  const [code, stdout, stderr] = await Promise.all([ended, text(child.stdout), text(child.stderr)])
  for (const line of stderr.split('\n')) if (line !== '') log?.(line)
  return { code, stdout, stderr }
}

/** The exit codes of the program (README). */
const codes: Readonly<Partial<Record<number, FailureCode>>> = {
  ...{ 2: 'usage', 3: 'denied', 4: 'approval_needed', 5: 'limit', 6: 'budget', 7: 'timeout', 8: 'provider', 9: 'integrity' },
  ...{ 10: 'estop', 11: 'checks_failed', 130: 'cancelled' },
}

function failureOf({ code, stderr }: Ended): { readonly code: FailureCode; readonly message: string } {
  const errors = stderr.match(/^error: .*$/gm)?.map((line) => line.slice('error: '.length))
  return { code: codes[code ?? 130] ?? 'error', message: errors?.join('\n') ?? `the program ended with ${code}` }
}
