/** Calls hostd over its Unix socket, with one connection a call and a time limit; a failure is a reply with `ok: false`. */

import { lstatSync } from 'node:fs'
import { z } from 'zod'
import { within } from '../../kit/abort.ts'
import { atAsyncEnd, errorText } from '../../kit/errors.ts'
import { parseJson } from '../../kit/json.ts'
import { createLineSplitter } from '../../kit/lines.ts'
import {
  type HostdError,
  type HostdReply,
  type HostdRequest,
  hostdReply,
  listOperation,
  longestReply,
  type OperationRow,
  operationRow,
} from './hostd-wire.ts'

export type HostdCall = Pick<HostdRequest, 'op'> & Partial<Pick<HostdRequest, 'params' | 'token' | 'approval' | 'caller' | 'check'>>

/** An operation may take as long as the catalogue says; `timeoutMs` bounds only how long we wait for its reply. */
export async function callHostd(socket: string, call: HostdCall, timeoutMs = 60_000): Promise<HostdReply> {
  const foreign = whyForeign(socket)
  if (foreign !== undefined) return refused('unavailable', foreign)
  const waiting = Promise.withResolvers<HostdReply>()
  const connection = connect(socket, `${JSON.stringify({ id: 'call', ...call })}\n`, waiting.resolve)
  await using _end = atAsyncEnd(() => connection.then((open) => open?.end()))
  const reply = await within(timeoutMs, waiting.promise)
  return reply ?? refused('timeout', `hostd at "${socket}" did not answer within ${timeoutMs} ms`)
}

export type ListedOperations =
  | { readonly ok: true; readonly operations: readonly OperationRow[] }
  | { readonly ok: false; readonly error: HostdError }

export async function listOps(socket: string, timeoutMs = 10_000): Promise<ListedOperations> {
  const { ok, output, error } = await callHostd(socket, { op: listOperation }, timeoutMs)
  const rows = ok ? z.array(operationRow).safeParse(parseJson(output)) : undefined
  if (rows?.success) return { ok: true, operations: rows.data }
  return { ok: false, error: error ?? { code: 'failed', message: `hostd at "${socket}" answered with something else than its operations` } }
}

/** Refuses the socket of another user, who would receive tokens and could answer anything. @returns why it is not used */
function whyForeign(socket: string): string | undefined {
  const found = lstatSync(socket, { throwIfNoEntry: false })
  if (!found) return `the socket "${socket}" does not exist; start hostd with "braidclaw hostd --socket ${socket}"`
  if (!found.isSocket()) return `"${socket}" is not a socket; name the socket of hostd itself, not a link to it`
  if (found.uid !== 0 && found.uid !== process.getuid?.())
    return `the socket "${socket}" belongs to user ${found.uid}, neither to root nor to us`
}

function connect(socket: string, line: string, resolve: (reply: HostdReply) => void) {
  const lines = createLineSplitter(longestReply)
  const sending = { rest: Buffer.from(line) }
  const send = (to: { write(bytes: Uint8Array): number }) => {
    sending.rest = sending.rest.subarray(Math.max(0, to.write(sending.rest)))
  }
  const disconnect = () => resolve(refused('unavailable', `hostd at "${socket}" closed the connection without an answer`))
  return Bun.connect({
    unix: socket,
    socket: {
      open: send,
      drain: send,
      data: (_, chunk) => {
        const [first] = lines.push(chunk)
        if (first) resolve(first.ok ? replyIn(first.text) : refused('failed', `the reply of hostd is longer than ${longestReply} bytes`))
      },
      close: disconnect,
      end: disconnect,
      error: disconnect,
    },
  }).catch((error: unknown) => {
    resolve(refused('unavailable', `hostd at "${socket}" cannot be reached: ${errorText(error)}`))
    return undefined
  })
}

function replyIn(text: string): HostdReply {
  const reply = hostdReply.safeParse(parseJson(text))
  return reply.success ? reply.data : refused('failed', 'the reply of hostd does not follow its protocol')
}

function refused(code: HostdError['code'], message: string): HostdReply {
  return { id: 'call', ok: false, output: '', exitCode: null, error: { code, message } }
}
