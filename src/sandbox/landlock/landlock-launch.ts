/** Runs the hidden command that confines itself with Landlock and becomes the given command; no hook runs before a child's start. */

import { ptr } from 'bun:ffi'
import { closeSync, existsSync, openSync, statSync } from 'node:fs'
import { errorText } from '../../kit/errors.ts'
import type { Limits } from '../contract.ts'
import { type Libc, openLibc } from '../libc.ts'
import { limitProcess } from '../process-limits.ts'
import { filterProgram } from '../seccomp.ts'

/** The launcher's instructions, as JSON in its first argument; the command follows. */
export type Orders = {
  readonly cwd: string
  readonly env: { readonly [name: string]: string }
  readonly grants: readonly { readonly path: string; readonly grant: Grant }[]
  readonly limits: Limits
  /** Printed before our own failures to distinguish them from the command's output. The command never learns the mark. */
  readonly mark: string
}

export const failureCode = 126

const [createRuleset, addRule, restrictSelf] = [444n, 445n, 446n]
const VERSION = 1n
const [PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, FILTER_MODE] = [22, 38, 2n]
/** The runtime ignores these signals, and a child would inherit that. */
const [SIGPIPE, SIGXFSZ] = [13, 25]
/**
 * O_PATH opens nothing for reading: a named pipe does not block, and an unreadable path is not an obstacle. Both values are equal on x86-64 and
 * arm64.
 */
const [O_PATH, O_CLOEXEC] = [0o10000000, 0o2000000]
const PR_CAPBSET_DROP = 24
const LAST_CAPABILITY = 63
const capset = process.arch === 'arm64' ? 91n : 126n
const CAPABILITY_VERSION = 0x20080522

/** @returns 0 when the kernel has no Landlock */
export function landlockVersion(libc: Libc): number {
  return Math.max(0, Number(libc.syscall(createRuleset, 0n, 0n, VERSION, 0n, 0n)))
}

/**
 * Never returns: the process becomes the command, or ends with 126 and a line that starts with the mark.
 * @throws when the orders cannot be parsed, because then there is no mark
 */
export function runLandlocked([text = '', ...argv]: readonly string[]): never {
  const orders = parse(text)
  try {
    confine(orders, argv)
  } catch (error) {
    console.error(`${orders.mark}${errorText(error)}`)
  }
  process.exit(failureCode)
}

function confine(orders: Orders, argv: readonly string[]): void {
  const libc = openLibc()
  const abi = landlockVersion(libc)
  const program = Bun.which(argv[0] ?? '', { PATH: orders.env.PATH ?? '', cwd: orders.cwd })
  if (program === null) throw new Error(`cannot start ${JSON.stringify(argv[0] ?? '')}: the program does not exist`)
  process.chdir(orders.cwd)
  for (const name of [SIGPIPE, SIGXFSZ]) libc.signal(name, 0n)
  must('no_new_privs', libc.prctl(PR_SET_NO_NEW_PRIVS, 1n, 0n, 0n, 0n) === 0)
  restrict({ libc, abi, grants: orders.grants })
  dropCapabilities(libc)
  filter(libc)
  // The limits come last, because this runtime itself uses more data than a command may.
  must('limits', limitProcess({ libc, pid: 0, limits: orders.limits }) === undefined)
  become({ libc, program, argv, env: orders.env })
}

/** Our own process wrote the orders, but they cross a process boundary, so we check them. */
function parse(text: string): Orders {
  const { cwd, env, grants, limits, mark }: Partial<Orders> = JSON.parse(text)
  if (cwd === undefined || env === undefined || grants === undefined || limits === undefined || mark === undefined)
    throw new Error('the orders are incomplete')
  return { cwd, env, grants, limits, mark }
}

function must(what: string, held: boolean): void {
  if (!held) throw new Error(`${what} could not be set, so the command was not started`)
}

function restrict({ libc, abi, grants }: { readonly libc: Libc; readonly abi: number; readonly grants: Orders['grants'] }): void {
  const attributes = rulesetBytes(abi)
  const ruleset = libc.syscall(createRuleset, address(attributes), BigInt(attributes.length), 0n, 0n, 0n)
  must('the Landlock rules', abi > 0 && ruleset >= 0n)
  for (const { path, grant } of grants.filter(({ path }) => existsSync(path))) {
    const descriptor = openSync(path, O_PATH | O_CLOEXEC)
    const rule = ruleBytes(grantedAccess({ grant, abi, folder: statSync(path).isDirectory() }), descriptor)
    must(`the rule for ${path}`, libc.syscall(addRule, ruleset, 1n, address(rule), 0n, 0n) === 0n)
    closeSync(descriptor)
  }
  must('Landlock', libc.syscall(restrictSelf, ruleset, 0n, 0n, 0n, 0n) === 0n)
  closeSync(Number(ruleset))
}

/**
 * Drops root's powers beyond file permissions, such as reading the environment of any process. An ordinary user has none and may drop none.
 */
function dropCapabilities(libc: Libc): void {
  for (let capability = 0; capability <= LAST_CAPABILITY; capability++) libc.prctl(PR_CAPBSET_DROP, BigInt(capability), 0n, 0n, 0n)
  const header = new Int32Array([CAPABILITY_VERSION, 0])
  const none = new Uint32Array(6)
  must('no capabilities', libc.syscall(capset, address(header), address(none), 0n, 0n, 0n) === 0n)
}

/** Refuses all sockets except pairs: without a network namespace, older kernels offer no other protection. */
function filter(libc: Libc): void {
  const program = filterProgram({ arch: process.arch === 'arm64' ? 'arm64' : 'x64', inet: false, unix: false })
  const header = new BigUint64Array([BigInt(program.length / 8), address(program)])
  must('the system-call filter', libc.prctl(PR_SET_SECCOMP, FILTER_MODE, address(header), 0n, 0n) === 0)
}

type Become = { readonly libc: Libc; readonly program: string; readonly argv: readonly string[]; readonly env: Orders['env'] }

function become({ libc, program, argv, env }: Become): never {
  const words = argv.map(terminated)
  const settings = Object.entries(env).map(([name, value]) => terminated(`${name}=${value}`))
  libc.execve(terminated(program), table(words), table(settings))
  throw new Error(`cannot start ${JSON.stringify(argv[0])}: it is not a program that this system can run, or it is not allowed`)
}

function terminated(text: string): Uint8Array {
  return Buffer.from(`${text}\0`)
}

function table(strings: readonly Uint8Array[]): BigUint64Array {
  return new BigUint64Array([...strings.map(address), 0n])
}

function address(bytes: NodeJS.TypedArray): bigint {
  return BigInt(ptr(bytes))
}

/** Bits for reading, writing, creating and removing; a ruleset may not contain a bit that the version does not know. */
const EXECUTE = 1 << 0
const WRITE_FILE = 1 << 1
const READ_FILE = 1 << 2
const READ_DIR = 1 << 3
const TRUNCATE = 1 << 14
const IOCTL_DEVICE = 1 << 15

const fileBits = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEVICE

/** `list` grants the names in a folder and in all folders below it. */
export type Grant = 'read' | 'device' | 'write' | 'list'

/** @returns the accesses that version `abi` handles: 13 at first, then moving between folders (2), truncation (3), device commands (5) */
export function handledAccess(abi: number): number {
  const bits = abi >= 5 ? 16 : abi >= 3 ? 15 : abi >= 2 ? 14 : 13
  return (1 << bits) - 1
}

/** A rule on a file may only contain accesses that apply to files. */
export function grantedAccess({ grant, abi, folder }: { readonly grant: Grant; readonly abi: number; readonly folder: boolean }): number {
  const bits = {
    read: EXECUTE | READ_FILE | READ_DIR,
    list: READ_DIR,
    device: READ_FILE | WRITE_FILE | TRUNCATE,
    write: handledAccess(abi) & ~IOCTL_DEVICE,
  }[grant]
  return bits & handledAccess(abi) & (folder ? -1 : fileBits)
}

/** Layout: file accesses; TCP bind and connect from version 4; abstract sockets and signals to the outside from version 6. */
export function rulesetBytes(abi: number): Uint8Array {
  const words = [handledAccess(abi), ...(abi >= 4 ? [0b11] : []), ...(abi >= 6 ? [0b11] : [])]
  return new Uint8Array(BigUint64Array.from(words.map(BigInt)).buffer)
}

/** Packed layout: eight bytes of accesses, then four bytes of descriptor. */
export function ruleBytes(access: number, descriptor: number): Uint8Array {
  const view = new DataView(new ArrayBuffer(12))
  view.setBigUint64(0, BigInt(access), true)
  view.setInt32(8, descriptor, true)
  return new Uint8Array(view.buffer)
}
