/** Opens the pipes between us and a sandbox (for its report, its output, its command and its arguments), and writes the command as a script. */

import { ptr } from 'bun:ffi'
import { closeSync, constants, openSync, writeSync } from 'node:fs'
import { atEnd, hasCode } from '../../kit/errors.ts'
import type { SpawnPlan } from '../contract.ts'
import type { Libc } from '../libc.ts'

const { O_RDONLY, O_RDWR, O_WRONLY, O_NONBLOCK } = constants
// node:fs does not name it; the value is that of x86-64, arm64 and riscv64.
const O_CLOEXEC = 0o2000000

const memfdCreate = process.arch === 'arm64' ? 279n : 319n
const MFD_CLOEXEC = 1n

/** One end stays with us, the other goes to the child: close our copy of that one as soon as the child has it. */
export type Pipe = { readonly ours: number; readonly theirs: number }

/**
 * bubblewrap forks, then reports, then lets its child continue. If our process were killed before the report, a pipe without a reader would
 * end bubblewrap there, and its child would wait forever. So the descriptor for writing can also read: the pipe always has a reader.
 * @throws Error when too many files are open
 */
export function openReport(libc: Libc): Pipe {
  const [ours, theirs] = openPipe(libc, O_RDONLY | O_NONBLOCK, O_RDWR)
  return { ours, theirs }
}

/**
 * Opens a pipe for the output of a command. The runtime would use a pair of sockets, which a command cannot open again as /dev/stdout.
 * @throws Error when too many files are open
 */
export function openOutput(libc: Libc): Pipe {
  const [ours, theirs] = openPipe(libc, O_RDONLY | O_NONBLOCK, O_WRONLY)
  return { ours, theirs }
}

/**
 * Opens a pipe for a command that a shell in the sandbox reads, through its name in /proc: the end for writing stays with us.
 * @throws Error when too many files are open
 */
export function openInput(libc: Libc): Pipe {
  const [theirs, ours] = openPipe(libc, O_RDONLY, O_WRONLY | O_NONBLOCK)
  return { ours, theirs }
}

/**
 * Puts the arguments into a file in memory, from which bubblewrap reads them: arguments of a command line can be read inside the sandbox
 * (/proc/1/cmdline) and would tell where our own files are.
 * @throws Error when no such file can be made
 */
export function argumentFile(libc: Libc, words: readonly string[]): number {
  const name = Buffer.from('arguments\0')
  const descriptor = Number(libc.syscall(memfdCreate, BigInt(ptr(name)), MFD_CLOEXEC, 0n, 0n, 0n))
  if (descriptor < 0) throw new Error('no file in memory could be made for the arguments')
  // A position keeps the offset at the start, where bubblewrap begins to read.
  const bytes = Buffer.from(words.map((word) => `${word}\0`).join(''))
  for (let sent = 0; sent < bytes.length; ) sent += writeSync(descriptor, bytes, sent, bytes.length - sent, sent)
  return descriptor
}

/** Returns the ends for reading and for writing. */
function openPipe(libc: Libc, toRead: number, toWrite: number): readonly [number, number] {
  const ends = new Int32Array(2)
  if (libc.pipe2(ends, O_CLOEXEC) !== 0) throw new Error('no pipe could be made: too many files are open')
  const [reading = -1, writing = -1] = ends
  const reopen = (end: number, flags: number) => openSync(`/proc/self/fd/${end}`, flags | O_CLOEXEC)
  using _end = atEnd(() => [reading, writing].forEach(closeSync))
  const read = reopen(reading, toRead)
  try {
    return [read, reopen(writing, toWrite)]
  } catch (error) {
    closeSync(read)
    throw error
  }
}

/**
 * Writes in parts, because a long text fills the pipe. @returns false when the reader has ended, or the signal aborted before it read
 * everything
 */
export async function writeWhole(descriptor: number, text: string, signal?: AbortSignal): Promise<boolean> {
  const bytes = Buffer.from(text)
  for (let sent = 0; sent < bytes.length; ) {
    try {
      sent += writeSync(descriptor, bytes, sent)
    } catch (error) {
      if (!hasCode(error, 'EAGAIN')) return false
      await Bun.sleep(1)
    }
    if (signal?.aborted) return false
  }
  return true
}

export const failureCode = 126

/**
 * Precedes our own failure messages on the error stream, together with that exit code. Each command has a different mark and never learns
 * it.
 */
export function failureMark(): string {
  return `braidclaw-sandbox ${crypto.randomUUID()}: `
}

/**
 * Runs what comes from the descriptor as a script. A shell takes a script in large pieces; what it reads by itself, it reads byte by byte,
 * and a program that reads for it takes a millisecond to start.
 */
export function receiver(descriptor: string): string[] {
  return ['/bin/sh', '-c', `. /proc/self/fd/${descriptor}`, 'sh']
}

export type SandboxCommand = Pick<SpawnPlan, 'argv' | 'cwd' | 'env' | 'stdin'>
type MarkedCommand = SandboxCommand & { readonly mark: string; readonly descriptor: string }

/**
 * Quotes every word, so that the shell interprets nothing in it. The braces keep the shell from running the first half of a script whose
 * second half never arrives. It closes the descriptor before the command starts.
 */
export function commandLines({ argv, cwd, env, stdin, mark, descriptor }: MarkedCommand): string {
  const names = Object.keys(env)
  const plain = names.filter((name) => /^[A-Za-z_]\w*$/.test(name))
  const odd = names.filter((name) => !plain.includes(name)).map((name) => `${name}=${env[name]}`)
  const words = odd.length === 0 ? argv : ['/usr/bin/env', ...odd, ...argv]
  const program = quoted(argv[0] ?? '')
  const end = crypto.randomUUID()
  return [
    '{',
    `exec ${descriptor}<&-`,
    ...plain.map((name) => `export ${name}=${quoted(env[name] ?? '')}`),
    `cd -- ${quoted(cwd)} 2>/dev/null || { echo '${mark}its folder cannot be seen in the sandbox' >&2; exit ${failureCode}; }`,
    'unset OLDPWD',
    `command -v -- ${program} >/dev/null 2>&1 || { echo '${mark}the program does not exist in the sandbox' >&2; exit ${failureCode}; }`,
    `exec ${words.map(quoted).join(' ')}${typeof stdin !== 'string' ? '' : ` <<'${end}'\n${stdin}\n${end}`}`,
    '}\n',
  ].join('\n')
}

function quoted(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`
}
