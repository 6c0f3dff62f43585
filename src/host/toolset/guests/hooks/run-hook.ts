/** Runs the program of one hook: JSON on stdin, in the sandbox unless the person says otherwise, within its time, and never inside itself. */

import { createCollector } from '../../../../kit/content/output-limit.ts'
import { errorText } from '../../../../kit/errors.ts'
import { cut, flat, visible, visibleLines } from '../../../../kit/text.ts'
import type { ChildEnvironment, PrivateView } from '../../../../sandbox/contract.ts'
import { cleanEnvironment, type Spawn, spawnPlain } from '../../../../tools/process.ts'
import type { Setup } from '../../../api.ts'
import type { Hook, HookAnswer, HookBase, HookEnd, Occasion } from './hook.ts'

/** `spawn` starts a program in the sandbox. */
type HookRun = {
  readonly setup: Pick<Setup, 'context' | 'redactor'>
  readonly base: HookBase
  readonly spawn: Spawn
  readonly signal: AbortSignal
}

/** `view` has what the hook changed; its receiver applies or drops it. */
export type HookResult = { readonly answer: HookAnswer; readonly view?: PrivateView | undefined }

/** A hook that prints more is stopped: an answer is short. */
const mostOutput = 1024 * 1024
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

const onOneLine = (text: string) => cut(visible(flat(text)), 1_000)

/** Never rejects. */
export async function runHook(hook: Hook, occasion: Occasion, run: HookRun): Promise<HookResult> {
  const { env } = run.setup.context
  const chain = (env[chainVariable] ?? '').split(':').filter(Boolean)
  if (chain.includes(hook.name)) return { answer: { failed: 'it started this run itself, and does not run inside itself' } }
  const rights = hook.sandbox ? {} : Object.fromEntries(session.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])))
  const own = { ...rights, ...hook.env, [chainVariable]: [...chain, hook.name].join(':') }
  const { end, view } = await start(hook, occasion, run, { ...cleanEnvironment({ home: env.HOME || '/' }), ...own })
  const answer = 'failed' in end ? end : hook.answer(end)
  if ('failed' in answer) {
    view?.drop()
    return { answer: { failed: onOneLine(answer.failed) } }
  }
  const { verdict, reason, context, message } = answer
  const said = { reason: onOneLine(reason?.trim() || 'it gave no reason'), context: cut(visibleLines(context?.trim() ?? ''), 10_000) }
  return { answer: { verdict, ...said, message: onOneLine(message ?? '') }, view }
}

type Ended = { readonly end: HookEnd; readonly view?: PrivateView | undefined }

async function start(hook: Hook, occasion: Occasion, { setup, base, spawn, signal }: HookRun, env: ChildEnvironment): Promise<Ended> {
  const printed = { stdout: createCollector(65_536), stderr: createCollector(65_536) }
  const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() }
  const [timer, flood] = [AbortSignal.timeout(hook.timeoutS * 1000), new AbortController()]
  let bytes = 0
  const ended = await (hook.sandbox ? spawn : spawnPlain)({
    argv: ['/bin/sh', '-c', hook.run],
    cwd: base.workspace,
    env,
    readablePaths: hook.env.BRAIDCLAW_HOOK_DIR ? [{ path: hook.env.BRAIDCLAW_HOOK_DIR }] : [],
    ...(hook.write ? { view: 'private' } : { readOnly: true }),
    stdin: JSON.stringify(setup.redactor.json(hook.input(occasion, base))),
    signal: AbortSignal.any([signal, timer, flood.signal]),
    onOutput(chunk, from) {
      bytes += chunk.length
      if (bytes > mostOutput) flood.abort()
      else printed[from].push(decoders[from].decode(chunk, { stream: true }))
    },
  }).catch((error: unknown) => ({ ok: false as const, message: errorText(error) }))
  if (!ended.ok) return { end: { failed: ended.message } }
  const { code, view, stopped } = ended
  if (flood.signal.aborted) return { end: { failed: `it printed more than ${mostOutput} bytes and was stopped` }, view }
  if (timer.aborted) return { end: { failed: `it took longer than ${hook.timeoutS} s and was stopped` }, view }
  if (code === null) return { end: { failed: stopped ?? `it ended by ${ended.signal}` }, view }
  return { end: { code, stdout: printed.stdout.text(), stderr: printed.stderr.text() }, view }
}
