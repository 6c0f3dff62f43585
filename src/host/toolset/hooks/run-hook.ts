/** Runs the program of one hook: JSON on stdin, in the sandbox unless the person says otherwise, within its time, and never inside itself. */

import { errorText } from '../../../kit/errors.ts'
import { cut, flat, visible, visibleLines } from '../../../kit/text.ts'
import type { ChildEnvironment, PrivateView } from '../../../sandbox/contract.ts'
import { createCollector } from '../../../tools/output-limit.ts'
import { cleanEnvironment, type Spawn, type SpawnResult, spawnPlain } from '../../../tools/process.ts'
import type { Setup } from '../../api.ts'
import type { Hook, HookAnswer, HookBase, HookEnd, Occasion } from './hook.ts'

export type HookRun = {
  readonly setup: Pick<Setup, 'context' | 'redactor'>
  readonly base: HookBase
  /** Starts a program in the sandbox. */
  readonly spawn: Spawn
  readonly signal: AbortSignal
}

/** `view` has what the hook changed; its receiver applies or drops it. */
export type HookResult = { readonly answer: HookAnswer; readonly view?: PrivateView | undefined }

/** A hook that prints more is stopped: an answer is short. */
const mostOutput = 1024 * 1024
const keptOutput = 64 * 1024
/** Names the hooks that led to this process, so that no hook starts itself without end. */
const chainVariable = 'BRAIDCLAW_HOOKS'
/** A hook outside the sandbox may show things to the person: it finds their programs and their screen, and none of our keys. */
const session = [
  'PATH',
  'LANG',
  'TZ',
  'USER',
  'DISPLAY',
  'WAYLAND_DISPLAY',
  'XDG_RUNTIME_DIR',
  'DBUS_SESSION_BUS_ADDRESS',
  'BRAIDCLAW_HOME',
]

/** Never rejects. */
export async function runHook(hook: Hook, occasion: Occasion, run: HookRun): Promise<HookResult> {
  const chain = (run.setup.context.env[chainVariable] ?? '').split(':').filter(Boolean)
  if (chain.includes(hook.name)) return { answer: { failed: 'it started this run itself, and does not run inside itself' } }
  const stdin = JSON.stringify(run.setup.redactor.json(hook.input(occasion, run.base)))
  const links = [...chain, hook.name].join(':')
  const { end, view } = await start(hook, run, stdin, { [chainVariable]: links }).catch((error: unknown) => ({
    end: { failed: errorText(error) },
    view: undefined,
  }))
  const answer = 'failed' in end ? end : hook.answer(end)
  if (!('failed' in answer)) return { answer: shortened(answer), view }
  view?.drop()
  return { answer: { failed: onOneLine(answer.failed) } }
}

const onOneLine = (text: string) => cut(visible(flat(text)), 1_000)

function shortened({ verdict, reason, context, message }: Exclude<HookAnswer, { failed: string }>): HookAnswer {
  return {
    verdict,
    reason: onOneLine(reason?.trim() || 'it gave no reason'),
    context: cut(visibleLines(context?.trim() ?? ''), 10_000),
    message: onOneLine(message ?? ''),
  }
}

type Ended = { readonly end: HookEnd; readonly view: PrivateView | undefined }

async function start(hook: Hook, { setup, base, spawn, signal }: HookRun, stdin: string, more: ChildEnvironment): Promise<Ended> {
  const { env } = setup.context
  const printed = { stdout: createCollector(keptOutput), stderr: createCollector(keptOutput) }
  const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() }
  const [timer, flood] = [AbortSignal.timeout(hook.timeoutS * 1000), new AbortController()]
  const rights = hook.sandbox ? {} : Object.fromEntries(session.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])))
  let bytes = 0
  const ended = await (hook.sandbox ? spawn : spawnPlain)({
    argv: ['/bin/sh', '-c', hook.run],
    cwd: base.workspace,
    env: { ...cleanEnvironment({ home: env.HOME || '/' }), ...rights, ...hook.env, ...more },
    readablePaths: hook.env.BRAIDCLAW_HOOK_DIR ? [{ path: hook.env.BRAIDCLAW_HOOK_DIR }] : [],
    ...(hook.write ? { view: 'private' } : { readOnly: true }),
    stdin,
    signal: AbortSignal.any([signal, timer, flood.signal]),
    onOutput(chunk, from) {
      bytes += chunk.length
      if (bytes > mostOutput) flood.abort()
      else printed[from].push(decoders[from].decode(chunk, { stream: true }))
    },
  })
  const failed = flood.signal.aborted
    ? `it printed more than ${mostOutput} bytes and was stopped`
    : timer.aborted
      ? `it took longer than ${hook.timeoutS} s and was stopped`
      : problemOf(ended)
  const view = ended.ok ? ended.view : undefined
  if (failed !== undefined || !ended.ok) return { end: { failed: failed ?? '' }, view }
  return { end: { code: ended.code ?? 0, stdout: printed.stdout.text(), stderr: printed.stderr.text() }, view }
}

function problemOf(ended: SpawnResult): string | undefined {
  if (!ended.ok) return ended.message
  return ended.stopped ?? (ended.code === null ? `it ended by ${ended.signal}` : undefined)
}
