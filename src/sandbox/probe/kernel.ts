/** Lists attempts on the kernel: new namespaces and mounts, devices, rights, and system calls with a history of security bugs. */

import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { type SyscallName, syscallNumbers } from '../seccomp.ts'
import { callVerdict, type EscapeAttempt, perl, verdict } from './attempt.ts'

const column = process.arch === 'arm64' ? 1 : 0
const CLONE_NEWUSER = 0x10000000
const TIOCSTI = 0x5412
const NULL_DEVICE = 0x103
const CHARACTER_DEVICE = 0o020600
const AT_FDCWD = -100

export const kernelAttempts: readonly EscapeAttempt[] = [
  call({ name: 'make a user namespace', call: 'unshare', words: [CLONE_NEWUSER], otherwise: 'nested namespaces' }),
  call({ name: 'mount a file system', call: 'mount', words: ['none', '/tmp', 'tmpfs', 0, 0], otherwise: 'capabilities' }),
  call({ name: 'look into the keyrings', call: 'keyctl', words: [0, -3, 0], otherwise: 'capabilities' }),
  call({ name: 'set up io_uring', call: 'io_uring_setup', words: [1, '\\0 x 120'], otherwise: 'capabilities' }),
  call({
    name: 'load a BPF map',
    call: 'bpf',
    words: [0, '\\1\\0\\0\\0\\4\\0\\0\\0\\4\\0\\0\\0\\1\\0\\0\\0', 16],
    otherwise: 'capabilities',
  }),
  {
    name: 'make a device node',
    needs: ['perl'],
    argv: () =>
      perl(
        `my $name = "device"; syscall(${syscallNumbers.mknodat[column]}, ${AT_FDCWD}, $name, ${CHARACTER_DEVICE}, ${NULL_DEVICE}) == 0 or no_("mknod"); print "made\n"`,
      ),
    judge: (seen) => callVerdict(seen, existsSync(join(seen.field.ground.settings.workspace, 'device')), 'capabilities'),
  },
  {
    name: 'become root',
    needs: ['perl'],
    argv: () => perl('use POSIX; my $was = $<; POSIX::setuid($was == 0 ? 1 : 0) or no_("setuid"); print "changed\n"'),
    judge: (seen) => verdict(seen, seen.output.includes('changed'), /errno=22\b/.test(seen.output) ? 'user namespace' : 'capabilities'),
  },
  {
    name: 'gain rights from a setuid program',
    argv: () => ['/bin/sh', '-c', 'grep -E "^(NoNewPrivs|CapEff|CapBnd):" /proc/self/status'],
    judge: (seen) => verdict(seen, !/NoNewPrivs:\s*1/.test(seen.output) || /Cap\w+:\s*0*[1-9a-f]/.test(seen.output), 'capabilities'),
  },
  {
    name: 'leave a program that has your rights, whoever starts it',
    argv: () => ['/bin/sh', '-c', 'cp /bin/true set-user && chmod 4755 set-user && echo made'],
    judge: (seen) => {
      const layer = seen.output.includes('made') ? 'repair afterwards' : 'seccomp'
      return verdict(seen, isSetUser(join(seen.field.ground.settings.workspace, 'set-user')), layer)
    },
  },
  {
    name: 'type into the terminal (TIOCSTI)',
    needs: ['perl'],
    argv: () => perl(`my $key = "x"; defined ioctl(STDIN, ${TIOCSTI}, $key) or no_("ioctl"); print "typed\n"`),
    judge: (seen) => callVerdict(seen, seen.output.includes('typed'), 'no terminal'),
  },
]

function isSetUser(path: string): boolean {
  return ((statSync(path, { throwIfNoEntry: false })?.mode ?? 0) & 0o4000) !== 0
}

type Call = {
  readonly name: string
  readonly call: SyscallName
  readonly words: readonly (number | string)[]
  readonly otherwise: 'nested namespaces' | 'capabilities'
}

/** A result of -1 means that the kernel refused the call; any other result means that the call succeeded. */
function call({ name, call, words, otherwise }: Call): EscapeAttempt {
  const declared = words.map((word, at) => `my $w${at} = ${typeof word === 'number' ? word : text(word)};`).join(' ')
  const passed = words.map((_, at) => `, $w${at}`).join('')
  return {
    name,
    needs: ['perl'],
    argv: () =>
      perl(`${declared} my $got = syscall(${syscallNumbers[call][column]}${passed}); $got >= 0 or no_("${call}"); print "through\n"`),
    judge: (seen) => callVerdict(seen, seen.output.includes('through'), otherwise),
  }
}

/** `\0 x 120` is a buffer of 120 zero bytes. */
function text(word: string): string {
  const [, piece, count] = /^(.*) x (\d+)$/.exec(word) ?? [undefined, word, '1']
  return `"${piece}" x ${count}`
}
