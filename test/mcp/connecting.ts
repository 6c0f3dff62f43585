/** Connects to servers as the host does: over the pipes of a real process, or over HTTP on loopback. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from '../../src/mcp/client/connect.ts'
import type { McpConnection, McpPorts, McpTransport } from '../../src/mcp/contract.ts'
import type { Spawn } from '../../src/sandbox/contract.ts'
import { startLineProcess } from '../../src/sandbox/pipes/line-process.ts'
import { cleanEnvironment, spawnPlain } from '../../src/tools/process.ts'

export const never = (): AbortSignal => new AbortController().signal
export const bun = [process.execPath, '--config=/dev/null', '--no-env-file'] as const

/** Holds the folder of a test and ends every server that was started in it. */
export function stage(more: Partial<McpPorts> & { readonly spawn?: Spawn } = {}) {
  const root = mkdtempSync(join(tmpdir(), 'braidclaw-mcp-'))
  const closed = new AbortController()
  const running = new Set<Promise<void>>()
  const { spawn = spawnPlain, ...ports } = more
  const all: McpPorts = {
    start({ argv, env, cwd = root }, listener) {
      const plan = { argv, cwd, env: { ...cleanEnvironment({ home: root }), ...env }, readOnly: true }
      const child = startLineProcess({ spawn, plan, closed: closed.signal, ...listener })
      running.add(child.ended)
      void child.ended.then(() => running.delete(child.ended))
      return child
    },
    fetch,
    version: '0',
    maxBytes: 100_000,
    timeoutMs: 10_000,
    ...ports,
  }
  return {
    root,
    running,
    tryTo: (to: McpTransport, signal = never()) => connect(to, all, signal),
    /** @throws Error that says why there is no connection */
    async connect(to: McpTransport): Promise<McpConnection> {
      const connection = await connect(to, all, never())
      if ('why' in connection) throw new Error(connection.why)
      return connection
    },
    /** Returns the transport of a server whose program is given. */
    program(text: string): McpTransport {
      const file = join(root, `${crypto.randomUUID()}.ts`)
      writeFileSync(file, text)
      return { kind: 'stdio', argv: [...bun, file], env: {} }
    },
    async [Symbol.asyncDispose]() {
      closed.abort()
      await Promise.all(running)
      rmSync(root, { recursive: true, force: true })
    },
  }
}
