/** Serves an MCP client that started this process, over lines of JSON-RPC on standard input and output. */

import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { deserializeMessage, type JSONRPCMessage, type Transport } from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { aborted, within } from '../../kit/abort.ts'
import { escapeHidden } from '../../kit/escape.ts'
import { createLineSplitter, type Line } from '../../kit/lines.ts'
import { createWaiters } from '../../kit/queue.ts'
import { createMcpServer, type McpOffer } from '../../mcp/server/mcp-server.ts'
import { stdinPieces } from '../terminal/input-stream.ts'
import { onInterrupt } from '../terminal/signals.ts'

const longestLine = 4_194_304
/** The input waits while so many requests are under way. */
const mostOpen = 4_096
/** How long the next answer may take when the input has ended: a client that dies ends it, and so does a script that has sent everything. */
const graceMs = 2_000

/** Resolves when the client has gone, a signal came, or the input has ended and every request has its answer. */
export async function serveOnStdio(offer: McpOffer): Promise<void> {
  const output = createWriteStream('', { fd: 1, autoClose: false })
  const [open, answered, closed] = [new Set<unknown>(), createWaiters(), new AbortController()]
  const { signal } = closed
  const interrupt = onInterrupt(() => closed.abort())
  output.on('error', () => closed.abort())
  signal.addEventListener('abort', () => transport.onclose?.(), { once: true })
  signal.addEventListener('abort', answered.wake, { once: true })

  const write = async (message: object) => {
    if (!output.write(`${escapeHidden(JSON.stringify(message))}\n`)) await once(output, 'drain', { signal }).catch(() => {})
  }

  async function take(line: Line): Promise<void> {
    if (line.text.trim() === '') return
    try {
      receive(deserializeMessage(line.text))
    } catch {
      const message = line.ok ? 'the line is not a message of JSON-RPC 2.0' : line.error
      await write({ jsonrpc: '2.0', id: null, error: { code: -32700, message } })
    }
    while (open.size >= mostOpen && !signal.aborted) await answered.sleep()
  }

  function receive(message: JSONRPCMessage): void {
    if ('method' in message && 'id' in message) open.add(message.id)
    // A cancelled request gets no answer.
    if ('method' in message && message.method === 'notifications/cancelled') open.delete(message.params?.requestId)
    transport.onmessage?.(message)
  }

  async function read(): Promise<void> {
    const splitter = createLineSplitter(longestLine)
    for await (const piece of stdinPieces()) for (const line of splitter.push(piece)) await take(line)
    const last = splitter.end()
    if (last) await take(last)
    const answer = () => answered.sleep().then(() => true)
    while (open.size > 0 && !signal.aborted && (await within(graceMs, answer())));
  }

  const transport: Transport = {
    start: async () => void read().finally(() => closed.abort()),
    async send(message) {
      await write(message)
      if (!('method' in message) && open.delete(message.id)) answered.wake()
    },
    close: async () => closed.abort(),
  }
  serveStdio(() => createMcpServer(offer), { transport })
  await aborted(signal)
  interrupt.stop()
  await within(graceMs, new Promise<void>((resolve) => output.end(resolve)))
}
