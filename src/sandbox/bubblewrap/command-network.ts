/**
 * Connects a sandbox to the allowed hosts (our proxy listens on a socket, and socat inside the sandbox forwards to it), or to a loopback
 * interface that the commands of one conversation share.
 */

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Loopback, SandboxSettings } from '../contract.ts'
import { fixedPath } from '../trial-key.ts'
import { insideUser } from './namespaces.ts'
import { createProxy } from './proxy.ts'

export type SandboxNetwork =
  | {
      readonly ok: true
      readonly mounts: readonly string[]
      /** Arguments that precede the command's own arguments. */
      readonly prologue: readonly string[]
      readonly env: { readonly [name: string]: string }
      stop(): void
    }
  | { readonly ok: false; readonly missing: string }

const PORT = 3128
const INSIDE = '/run/proxy.sock'
const FILTER = '/run/filter'

/** Programs that must be installed when a domain is allowed. */
export const networkPrograms = ['socat', 'perl'] as const

/** @returns those of `networkPrograms` that are not installed */
export function missingForNetwork(): readonly string[] {
  return networkPrograms.filter((program) => Bun.which(program, { PATH: fixedPath }) === null)
}

/** Waits until socat listens (0C38 is 3128 in the kernel's table), so that the command's first connection does not fail. */
const prologue = `socat TCP-LISTEN:${PORT},bind=127.0.0.1,fork,reuseaddr UNIX-CONNECT:${INSIDE} >/dev/null 2>&1 &
until grep -q ':0C38 .* 0A ' /proc/net/tcp; do kill -0 $! 2>/dev/null || { echo 'the proxy inside did not start' >&2; exit 126; }; sleep 0.01; done
exec "$@"`

/** Gives up local sockets, which only socat needs, through a second system-call filter (PR_SET_SECCOMP, filter mode) for every later program. */
const giveUp = `open F, "<", shift or die "filter: $!\n"; binmode F; local $/; my $code = <F>; close F;
my $program = pack "S x6 P", length($code) / 8, $code;
syscall(shift() + 0, 22, 2, $program) == 0 or die "filter: $!\n"; exec { $ARGV[0] } @ARGV; die "exec: $!\n"`

type Joining = {
  readonly settings: SandboxSettings
  readonly folder: string
  /** The system-call filter for every program except socat; absent in tests of the probe. */
  filter(): Uint8Array | undefined
}

export function joinNetwork({ settings, folder, filter: filterOf }: Joining): SandboxNetwork {
  const { allowedDomains, allowedPorts, network, log } = settings
  if (allowedDomains.length === 0) return { ok: true, mounts: [], prologue: [], env: {}, stop() {} }
  if (network === undefined) return { ok: false, missing: 'allowed_domains is set, but this program was built without a way to reach them' }
  const missing = missingForNetwork()
  if (missing.length > 0)
    return {
      ok: false,
      missing: `allowed_domains needs ${missing.join(' and ')} inside the sandbox; install that, or empty allowed_domains`,
    }
  const socket = join(folder, 'proxy.sock')
  const { stop } = network.listen(socket, createProxy({ allowedDomains, allowedPorts, dial: network.dial, log }))
  const filter = filterOf()
  const path = join(folder, 'filter.late')
  if (filter) writeFileSync(path, filter, { mode: 0o600 })
  const prctl = String(process.arch === 'arm64' ? 167 : 157)
  const url = `http://127.0.0.1:${PORT}`
  const names = ['http_proxy', 'https_proxy', 'HTTP_PROXY', 'HTTPS_PROXY', 'all_proxy', 'ALL_PROXY']
  const none = { no_proxy: 'localhost,127.0.0.1', NO_PROXY: 'localhost,127.0.0.1' }
  return {
    ok: true,
    mounts: ['--ro-bind', socket, INSIDE, ...(filter ? ['--ro-bind', path, FILTER] : [])],
    prologue: ['/bin/sh', '-c', prologue, 'sh', ...(filter ? ['perl', '-e', giveUp, FILTER, prctl] : [])],
    env: { ...Object.fromEntries(names.map((name) => [name, url])), ...none },
    stop,
  }
}

type Holding = {
  /** Path of bubblewrap. */
  readonly program: string
  /** Words that mark the process as ours, see private-folder.ts. */
  readonly mark: readonly string[]
}

/**
 * Opens a network namespace with nothing but a loopback interface. The process that holds the namespace runs nothing but a shell that waits, outside the PID namespaces of the commands. It ends with our
 * process: bubblewrap sees to it, and its input then ends. @returns why there can be none, as the end of a sentence
 */
export async function openLoopback({ program, mark }: Holding): Promise<Loopback | string> {
  const nsenter = Bun.which('nsenter', { PATH: fixedPath })
  if (nsenter === null) return 'nsenter of util-linux is not installed'
  const { uid, gid } = insideUser()
  // bubblewrap brings the loopback interface up; unshare does not.
  const namespaces = ['--unshare-user', '--uid', String(uid), '--gid', String(gid), '--unshare-net', '--cap-drop', 'ALL']
  const argv = [program, ...mark, ...namespaces, '--new-session', '--die-with-parent', '--ro-bind', '/', '/', '--', '/bin/sh', '-c']
  const child = Bun.spawn([...argv, 'echo $$; read line'], { cwd: '/', env: {}, stdio: ['pipe', 'pipe', 'ignore'] })
  child.unref()
  const close = () => child.kill('SIGKILL')
  const pid = await firstLine(child.stdout)
  const words = [nsenter, '-t', pid, '-U', '-n', '--preserve-credentials', '--']
  if (/^\d+$/.test(pid) && (await Bun.spawn([...words, '/bin/true'], { stdio: ['ignore', 'ignore', 'ignore'] }).exited) === 0)
    return { key: `loopback ${pid}`, words, isOpen: () => child.exitCode === null && child.signalCode === null, close }
  close()
  return 'the system does not let commands share a network namespace'
}

async function firstLine(stream: ReadableStream<Uint8Array>): Promise<string> {
  const reader = stream.getReader()
  let text = ''
  while (!text.includes('\n')) {
    const { value } = await reader.read()
    if (value === undefined) break
    text += Buffer.from(value).toString('latin1')
  }
  void reader.cancel().catch(() => {})
  return text.trim()
}
