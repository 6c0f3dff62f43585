/** Claims the path of hostd's socket, and serves lines there. The kernel says who connects, and limits apply before a line is read. */

import { chmodSync, chownSync, closeSync, constants, fstatSync, lstatSync, mkdirSync, openSync, unlinkSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Socket } from 'bun'
import { errorCode, explainErrno } from '../../config/text/read-toml-file.ts'
import { atEnd, hasCode } from '../../kit/errors.ts'
import { createLineSplitter, type LineSplitter } from '../../kit/lines.ts'
import type { Libc } from '../../sandbox/libc.ts'
import { unsafeFolder, whyUnsafe } from './catalogue/read-catalogue.ts'
import { longestRequest } from './hostd-wire.ts'
import type { Peer } from './may-call.ts'

type ClaimedSocket = { readonly ok: true; release(): void } | { readonly ok: false; readonly message: string }

const LOCK_EXCLUSIVE_NOW = 2 | 4
/** The kernel's limit of a socket address, with its final NUL. */
const longestPath = 107

type SocketClaim = { readonly path: string; readonly uid: number; readonly libc: Libc }

/** Claims a path for one daemon. It removes a socket that a killed daemon left, and never anything else. */
export async function claimSocket(claim: SocketClaim): Promise<ClaimedSocket> {
  const { path } = claim
  if (!path.startsWith('/') || Buffer.byteLength(path) > longestPath)
    return refused(`the socket "${path}" needs an absolute path of at most ${longestPath} bytes; name a shorter one with --socket`)
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o755 })
    const unsafe = unsafeFolder(path, claim.uid)
    if (unsafe !== undefined) return refused(`the folder of the socket is not safe: ${unsafe}`)
    return await lockPath(claim)
  } catch (error) {
    return refused(`the socket "${path}" cannot be made: ${explainErrno(errorCode(error))}`)
  }
}

/** Locks the path. The lock file stays: removing it would let two daemons lock two files of the same name. */
async function lockPath(claim: SocketClaim): Promise<ClaimedSocket> {
  const name = `${claim.path}.lock`
  const lock = openSync(name, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW | constants.O_NONBLOCK, 0o600)
  const unsafe = fstatSync(lock).isFile() ? whyUnsafe(fstatSync(lock), name, claim.uid) : `"${name}" is not a regular file`
  const isOurs = unsafe === undefined && claim.libc.flock(lock, LOCK_EXCLUSIVE_NOW) === 0
  const wrong = isOurs
    ? await clearStale(claim)
    : (unsafe ?? `another hostd serves "${claim.path}"; stop it, or name another path with --socket`)
  if (wrong === undefined) return { ok: true, release: () => closeSync(lock) }
  closeSync(lock)
  return refused(wrong)
}

/** Removes the socket that a killed hostd left. The lock is ours, so any other socket belongs to another program. */
async function clearStale({ path, uid }: SocketClaim): Promise<string | undefined> {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (!found) return undefined
  if (found.isSymbolicLink()) return `"${path}" is a symbolic link; remove it, or name another path with --socket`
  if (!found.isSocket()) return `"${path}" exists and is not a socket; remove it, or name another path with --socket`
  if (found.uid !== uid) return `the socket "${path}" belongs to user ${found.uid}, not to us (${uid}); remove it, or name another path`
  if (await isServed(path)) return `another program serves "${path}"; stop it, or name another path with --socket`
  unlinkSync(path)
}

function refused(message: string): ClaimedSocket {
  return { ok: false, message }
}

/** Tells whether a program serves the socket. Any answer but a refusal counts, so that an unclear case is not removed. */
async function isServed(path: string): Promise<boolean> {
  try {
    const connection = await Bun.connect({ unix: path, socket: { data: () => undefined } })
    connection.terminate()
    return true
  } catch (error) {
    return !(hasCode(error, 'ECONNREFUSED') || hasCode(error, 'ENOENT'))
  }
}

export type ListenOptions = {
  readonly path: string
  /** The group that may connect; absent: the group of our process. */
  readonly gid?: number
  readonly connections: number
  /** Limits how long a connection without requests stays open, in seconds. */
  readonly idleSeconds: number
  readonly peerOf: (descriptor: number) => Peer | undefined
  /** @returns the line to refuse this peer with, or undefined */
  readonly refuses: (peer: Peer | undefined) => string | undefined
  /** Never rejects. `line.ok` false: it was too long, and the connection ends after the reply. */
  readonly answer: (peer: Peer, line: { readonly ok: boolean; readonly text: string }) => Promise<string>
  /** Refuses a line because too many of this connection are being answered. */
  readonly tooMany: (text: string) => string
}

/** Limits how many requests of one connection are answered at the same time. */
const mostPending = 16
/** Limits the unread bytes of a peer; one that does not read its replies is disconnected. */
const mostUnread = 16_777_216

/** Limits how many connections above the limit still get an answer. */
const mostRefused = 16
const lingerSeconds = 2

type PeerConnection = {
  readonly lines: LineSplitter
  peer?: Peer
  pending: number
  rest: Buffer
  /** Is set when no more requests are read; the connection closes when the replies are written. */
  closing: boolean
  /** The peer has closed its side. */
  ended: boolean
}

/** Creates the socket with mode 0600 and opens it to the group afterwards, so that others can connect at no moment. @throws errno errors */
export function listen(options: ListenOptions): { readonly count: () => number; stop(): void } {
  const { path, gid, idleSeconds } = options
  const open = new Set<Socket<PeerConnection>>()
  const before = process.umask(0o177)
  using _end = atEnd(() => process.umask(before))
  const server = Bun.listen<PeerConnection>({
    unix: path,
    allowHalfOpen: true,
    socket: {
      open: (socket) => welcome(socket, open, options),
      data: (socket, bytes) => take(socket, bytes, options),
      drain: flush,
      end(socket) {
        socket.data.ended = true
        finish(socket)
      },
      timeout: (socket) => (socket.data.pending > 0 ? socket.timeout(idleSeconds) : socket.terminate()),
      close: (socket) => void open.delete(socket),
      error: (socket) => void socket.terminate(),
    },
  })
  if (gid !== undefined) chownSync(path, -1, gid)
  chmodSync(path, 0o660)
  return { count: () => open.size, stop: () => server.stop(true) }
}

function welcome(
  socket: Socket<PeerConnection>,
  open: Set<Socket<PeerConnection>>,
  { connections, idleSeconds, peerOf, refuses, tooMany }: ListenOptions,
): void {
  const peer = peerOf(descriptorOf(socket))
  socket.data = { lines: createLineSplitter(longestRequest), pending: 0, rest: Buffer.alloc(0), closing: false, ended: false, peer }
  open.add(socket)
  if (open.size > connections + mostRefused) return void socket.terminate()
  const refusal = refuses(peer) ?? (open.size > connections ? tooMany('') : undefined)
  if (refusal === undefined) return void socket.timeout(idleSeconds)
  send(socket, refusal)
  finish(socket)
}

/** Reads the descriptor, which the type of Bun's socket lacks. */
function descriptorOf(socket: object): number {
  return 'fd' in socket && typeof socket.fd === 'number' ? socket.fd : -1
}

function take(socket: Socket<PeerConnection>, bytes: Uint8Array, { answer, tooMany }: ListenOptions): void {
  const { data } = socket
  const { peer } = data
  if (!peer || data.closing) return
  for (const line of data.lines.push(bytes)) {
    if (line.ok && line.text.trim() === '') continue
    if (data.pending >= mostPending) send(socket, tooMany(line.text))
    else {
      data.pending += 1
      void answer(peer, line).then((reply) => {
        data.pending -= 1
        send(socket, reply)
        if (!line.ok || data.closing) finish(socket)
      })
    }
  }
}

function send(socket: Socket<PeerConnection>, line: string): void {
  socket.data.rest = Buffer.concat([socket.data.rest, Buffer.from(`${line}\n`)])
  if (socket.data.rest.length > mostUnread) socket.terminate()
  else flush(socket)
}

function flush(socket: Socket<PeerConnection>): void {
  const { data } = socket
  if (data.rest.length > 0) data.rest = data.rest.subarray(Math.max(0, socket.write(data.rest)))
  if (data.closing) finish(socket)
}

/**
 * Closes when every reply is written; a peer that has only closed its own side still gets them. What it has sent meanwhile is read and
 * dropped for a moment, because closing with unread bytes would take the replies away from it.
 */
function finish(socket: Socket<PeerConnection>): void {
  const { data } = socket
  data.closing = true
  if (data.pending > 0 || data.rest.length > 0) return
  if (data.ended) return void socket.end()
  socket.shutdown()
  socket.timeout(lingerSeconds)
}
