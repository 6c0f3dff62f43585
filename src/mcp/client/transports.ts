/** Carries the messages of one connection: over the pipes of a confined process, or over HTTP, where it limits what a server may send. */

import { SSEClientTransport, StreamableHTTPClientTransport, type Transport } from '@modelcontextprotocol/client'
import { isObject, parseJson } from '../../kit/json.ts'
import { quote } from '../../kit/text.ts'
import type { LineProcess } from '../../sandbox/contract.ts'
import type { McpCommand, McpPorts, McpTransport } from '../contract.ts'

/** The reason of an end that nobody is to blame for. */
export const wasClosed = 'it was closed'

/** `stop` ends the server's process, or the session: `onStop` gets the first reason, whoever found it. */
export type Link = { readonly transport: Transport; expect(): void; stop(why: string): void; readonly ended: Promise<void> }
type OnStop = (why: string) => void

function openPipes(command: McpCommand, { start }: McpPorts, onStop: OnStop): Link {
  const asked = new Set<unknown>()
  let child: LineProcess | undefined
  const { promise: ended, resolve } = Promise.withResolvers<void>()

  function whyNotTaken(line: string): string | undefined {
    const message = parseJson(line)
    if (!isObject(message) || message.jsonrpc !== '2.0')
      return `it printed what is not JSON-RPC: ${quote(line.slice(0, 80))}; a server writes its log to stderr`
    if (message.method === undefined && !asked.delete(message.id)) return `it answered ${quote(message.id)}, which is not open`
    try {
      transport.onmessage?.(message as never)
    } catch {
      return `it sent a message that nobody can read: ${quote(line.slice(0, 80))}`
    }
  }

  // The library recognises pipes by these two members, and then takes silence for an older server.
  const transport: Transport & { readonly stderr: null; readonly pid: null } = {
    stderr: null,
    pid: null,
    async start() {
      child = start(command, {
        onLine(line) {
          const why = line.trim() === '' ? undefined : whyNotTaken(line)
          if (why !== undefined) child?.stop(why)
        },
        onOver(why) {
          onStop(why)
          transport.onclose?.()
        },
      })
      void child.ended.then(resolve)
    },
    async send(message) {
      if ('method' in message && 'id' in message) asked.add(message.id)
      if (!(await child?.send(JSON.stringify(message)))) throw new Error(child?.over() ?? 'it was not started')
    },
    async close() {
      child?.stop(wasClosed)
    },
  }
  const stop = (why: string) => {
    if (child !== undefined) return child.stop(why)
    onStop(why)
    resolve()
  }
  return { transport, ended, stop, expect: () => child?.expect() }
}

const mostBytes = 64 * 1024 * 1024

export function openLink(to: McpTransport, ports: McpPorts, onStop: OnStop): Link {
  if (to.kind === 'stdio') return openPipes(to, ports, onStop)
  let bytes = 0
  let isOver = false
  const { promise: ended, resolve } = Promise.withResolvers<void>()

  function stop(why: string): void {
    if (isOver) return
    isOver = true
    onStop(why)
    const isSession = transport instanceof StreamableHTTPClientTransport && transport.sessionId !== undefined
    const leave = isSession ? Promise.race([transport.terminateSession(), Bun.sleep(1_000)]) : Promise.resolve()
    void leave.catch(() => {}).then(() => transport.close().then(resolve, resolve))
  }

  const counted = async (input: string | URL, init?: RequestInit) => {
    const answer = await ports.fetch(input, init)
    if (answer.body === null) return answer
    const count = new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        bytes += chunk.length
        controller.enqueue(chunk)
        if (bytes > mostBytes) stop(`it sent more than ${mostBytes} bytes in one call`)
      },
    })
    return Object.defineProperty(new Response(answer.body.pipeThrough(count), answer), 'url', { value: answer.url })
  }
  const { auth } = ports
  const options = { fetch: counted, requestInit: { headers: to.headers }, ...(auth !== undefined && { authProvider: auth }) }
  const url = new URL(to.url)
  const transport = to.kind === 'http' ? new StreamableHTTPClientTransport(url, options) : new SSEClientTransport(url, options)
  const expect = () => {
    bytes = 0
  }
  return { transport, ended, stop, expect }
}
