/** Starts the executable as a child that speaks lines of JSON, and ends it by its process number. It runs on Node too. */

import { spawn } from 'node:child_process'
import { parseJson } from '../../kit/json.ts'
import { createLineSplitter } from '../../kit/lines.ts'
import { createWaiters } from '../../kit/queue.ts'
import type { AgentOptions } from '../agent/agent-api.ts'
import { findExecutable } from '../executable.ts'
import { isServerLine, type ServerLine } from '../stdio/server-line.ts'

export type RemoteOptions = AgentOptions & {
  /** The path of the braidclaw program; default: see findExecutable. */
  readonly executable?: string
}

type ChildEvents = {
  onLine(line: ServerLine): void
  /** Called once, when the child has ended and its last line was read; `why` is a sentence. */
  onEnd(why: string): void
}

/** A model request holds a whole conversation. In bytes. */
const longestLine = 256 * 1024 * 1024

export type LineChild = ReturnType<typeof startChild>

/** @throws Error when there is no program */
export function startChild(options: RemoteOptions, resumed: string | undefined, { onLine, onEnd }: ChildEvents) {
  const { cwd = process.cwd(), env = process.env, home, log: tell } = options
  const child = spawn(findExecutable(options), argvOf({ ...options, cwd, conversation: resumed ?? options.conversation }), {
    cwd,
    env: { PATH: process.env.PATH, ...env, ...(home === undefined ? {} : { BRAIDCLAW_HOME: home }) },
  })
  const { stdin, stdout, stderr } = child
  const state = { said: '', ended: false, held: true }
  const ended = new Promise<void>((resolve) => {
    const end = (how: string) => {
      if (state.ended) return
      state.ended = true
      onEnd(`the braidclaw process ${how}${state.said === '' ? '' : `: ${state.said}`}`)
      resolve()
    }
    child.on('error', (error) => end(`could not be started (${error.message})`))
    child.on('close', (code, signal) => end(signal === null ? `ended with exit code ${code}` : `was ended by ${signal}`))
  })
  const [lines, log] = [createLineSplitter(longestLine), createLineSplitter(65_536)]
  stdout.on('data', (piece: Uint8Array) => {
    for (const value of lines.push(piece).map(({ text }) => parseJson(text))) if (isServerLine(value)) onLine(value)
  })
  stderr.on('data', (piece: Uint8Array) => {
    for (const { text } of log.push(piece)) {
      state.said = text
      tell?.(`${text}\n`)
    }
  })
  // A child that has ended is reported by `close`.
  stdin.on('error', () => {})

  const room = createWaiters()
  stdin.on('drain', room.wake)
  void ended.then(room.wake)

  /** @returns a promise to wait for while the child reads slowly */
  function send(line: object): Promise<void> | undefined {
    return state.ended || !stdin.writable || stdin.write(`${JSON.stringify(line)}\n`) ? undefined : room.sleep()
  }

  /** While it is held, the child keeps this process alive. In Bun a second ref needs a second unref. */
  function hold(isHeld: boolean): void {
    if (state.held === isHeld) return
    state.held = isHeld
    for (const handle of [child, stdin, stdout, stderr]) {
      // Pipes of a child are sockets, whose types do not say that they can be held.
      const method: unknown = Reflect.get(handle, isHeld ? 'ref' : 'unref')
      if (typeof method === 'function') Reflect.apply(method, handle, [])
    }
  }

  return {
    send,
    hold,
    /** Asks the child to end, and kills it after `graceMs`. Resolves when it has ended. */
    async end(graceMs: number): Promise<void> {
      hold(true)
      void send({ close: true })
      stdin.end()
      const late = setTimeout(() => child.kill('SIGKILL'), graceMs)
      await ended
      clearTimeout(late)
    },
    kill: () => void child.kill('SIGKILL'),
  }
}

function argvOf({ cwd, model, permissionMode, maxTurns, conversation = 'new' }: RemoteOptions): string[] {
  const flags = { workspace: cwd, model, autonomy: permissionMode, 'max-turns': maxTurns }
  const given = Object.entries(flags).flatMap(([name, value]) => (value === undefined ? [] : [`--${name}`, String(value)]))
  const resume = conversation === 'new' ? [] : conversation === 'latest' ? ['--continue'] : ['--resume', conversation]
  return ['stdio', '--quiet', ...given, ...resume]
}
