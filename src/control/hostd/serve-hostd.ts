/** Runs hostd until its signal aborts: claims the socket, records the calls that a killed hostd left, answers peers, and ends its children. */

import { aborted, within } from '../../kit/abort.ts'
import { atEnd } from '../../kit/errors.ts'
import type { Log } from '../../runtime/port.ts'
import { openLibc } from '../../sandbox/libc.ts'
import { openOutput, type Pipe } from '../../sandbox/pipes/command-pipes.ts'
import { spawnPlain } from '../../tools/process.ts'
import { createAnswer, createRequestRate, deniedRecord, type Rate, type RecordCall, type RequestOptions } from './answer-request.ts'
import { resolvePath } from './catalogue/bind.ts'
import type { Catalogue } from './catalogue/operation.ts'
import { rowOf } from './catalogue/read-catalogue.ts'
import { createIntents, endMarked, execute, type Intents } from './execute.ts'
import type { HostdError } from './hostd-wire.ts'
import { createApprovalCheck, mayConnect, type Peer, peerOf } from './may-call.ts'
import { claimSocket, type ListenOptions, listen } from './serve-socket.ts'

type HostdOptions = {
  readonly socket: string
  /** Holds the notes of calls that are running. */
  readonly folder: string
  readonly catalogue: Catalogue
  readonly gid?: number
  readonly record: RecordCall
  /** Throws when no receipt can be written; called before each operation. */
  readonly prove: () => void
  readonly log: Log
  readonly ready: (operations: { readonly available: number; readonly all: number }) => void
  readonly signal: AbortSignal
  readonly now: () => number
}

type ServeResult = { readonly ok: true } | { readonly ok: false; readonly message: string }

const idleSeconds = 240
/** Limits the receipts a minute of one user who may not connect. */
const foreignPerMinute = 10
/** Limits how long hostd waits at its end until running operations are killed and recorded. */
const patienceMs = 3_000

export async function serveHostd(options: HostdOptions): Promise<ServeResult> {
  const { socket, signal } = options
  if (process.platform !== 'linux')
    return {
      ok: false,
      message: `hostd needs Linux, whose kernel reports which user is at the other end of a socket; this is ${process.platform}`,
    }
  const libc = openLibc()
  const uid = process.getuid?.() ?? -1
  const claimed = await claimSocket({ path: socket, uid, libc })
  if (!claimed.ok) return claimed
  using _end = atEnd(() => {
    if (!signal.aborted) options.log('warn', 'hostd ends without a signal')
    claimed.release()
  })
  return await serve(options, { uid, peerOf: (descriptor) => peerOf(libc, descriptor), openOutput: () => openOutput(libc) })
}

type Kernel = { readonly uid: number; readonly peerOf: (descriptor: number) => Peer | undefined; readonly openOutput: () => Pipe }

async function serve(options: HostdOptions, kernel: Kernel): Promise<ServeResult> {
  const { catalogue, signal, now, log, socket, gid } = options
  const { server } = catalogue
  const { uid, peerOf } = kernel
  const intents = createIntents(options.folder)
  recordInterrupted(intents, options)
  const work = createWork(createAnswer(requestOptions(options, intents, kernel)))
  const refuses = createRefusals(options, uid, createRequestRate(foreignPerMinute, now))
  const listening = listen({
    path: socket,
    connections: server.connections,
    idleSeconds,
    peerOf,
    refuses,
    answer: work.answer,
    tooMany: () =>
      refusalLine({ code: 'too_many', message: `more than ${server.connections} connections, or too many requests of one; try again` }),
    gid,
  })
  const rows = catalogue.operations.map((operation) => rowOf(operation, { platform: process.platform, uid }))
  options.ready({ available: rows.filter(({ available }) => available).length, all: rows.length })
  await aborted(signal)
  log('info', 'hostd stops', { running: work.count() })
  await within(patienceMs, work.ended())
  listening.stop()
  return { ok: true }
}

function requestOptions(
  { catalogue, record, prove, log, now, signal }: HostdOptions,
  intents: Intents,
  { uid, openOutput }: Kernel,
): RequestOptions {
  return {
    catalogue,
    record,
    prove,
    intents,
    now,
    resolvePath,
    machine: { platform: process.platform, uid },
    checkApproval: createApprovalCheck(now),
    rateOf: createRequestRate(catalogue.server.perMinute, now),
    execute: (what) => execute({ ...what, stopped: signal, spawn: spawnPlain, openOutput }),
    newCall: () => crypto.randomUUID(),
    warn: (message) => log('warn', message),
  }
}

/** Counts the answers that are not ready yet. */
function createWork(answer: ListenOptions['answer']) {
  const running = new Set<Promise<string>>()
  return {
    count: () => running.size,
    ended: () => Promise.all(running),
    answer: (...question: Parameters<typeof answer>) => {
      const reply = answer(...question)
      running.add(reply)
      return reply.finally(() => running.delete(reply))
    },
  }
}

/** @returns the line for a peer that may not connect; undefined for one that may */
function createRefusals({ catalogue, record, log }: HostdOptions, own: number, rateOf: (uid: number) => Rate) {
  return (peer: Peer | undefined): string | undefined => {
    if (peer && mayConnect(peer, catalogue.server, own)) return undefined
    const error: HostdError = {
      code: 'forbidden',
      message: `user ${peer?.uid ?? 'unknown'} may not use this hostd; see uids and gids in the catalogue`,
    }
    if (rateOf(peer?.uid ?? -1) !== 'within') return refusalLine(error)
    log('warn', 'connection refused', { uid: peer?.uid, pid: peer?.pid })
    const asked = { op: 'connect', ...(peer ? { peer: { uid: peer.uid, gid: peer.gid, pid: peer.pid } } : {}) }
    try {
      record(deniedRecord(asked, 'low', error))
    } catch (failure) {
      log('warn', 'no receipt could be written', { why: String(failure) })
    }
    return refusalLine(error)
  }
}

/** Returns the refusal for a connection of which no request was read. */
function refusalLine(error: HostdError): string {
  return JSON.stringify({ id: '', ok: false, output: '', exitCode: null, error })
}

/** @throws when a receipt cannot be written: then hostd must not start */
function recordInterrupted(intents: Intents, { record, log }: { readonly record: RecordCall; readonly log: Log }): void {
  for (const { call, op, details } of intents.left()) {
    const processes = endMarked(call)
    const error = 'stopped: hostd was killed before it recorded how the operation ended'
    record({ op, risk: 'high', outcome: 'failed', error, details: { ...details, outcome: 'failed', code: 'stopped', call, processes } })
    intents.end(call)
    log('warn', 'an operation was running when hostd was killed', { op, call, processes })
  }
}
