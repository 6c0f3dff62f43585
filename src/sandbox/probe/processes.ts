/** Lists attempts on other processes and on the limits: seeing, killing and outliving processes; unlimited forks, memory and files. */

import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { syscallNumbers } from '../seccomp.ts'
import { callVerdict, type EscapeAttempt, perl, sh, verdict } from './attempt.ts'

const column = process.arch === 'arm64' ? 1 : 0
const SURVIVOR_MS = 300
const PTRACE_ATTACH = 16
/** The factor by which an attempt exceeds a limit before it stops by itself. */
const ABOVE = 1.5

export const processAttempts: readonly EscapeAttempt[] = [
  environment('read the environment that started the sandbox', '/proc/1/environ /proc/$$/environ', 'environment'),
  environment('read the environment of the parent and of processes outside', '/proc/$PPID/environ /proc/[0-9]*/environ', 'pid namespace'),
  {
    name: 'see a process outside',
    argv: ({ outside }) => sh('[ "$(tr "\\0" " " < /proc/$1/cmdline)" = "sleep 60 " ] && echo seen', String(outside.victim)),
    judge: (seen) => verdict(seen, seen.output.includes('seen'), 'pid namespace'),
  },
  {
    name: 'trace a process outside',
    needs: ['perl'],
    argv: ({ outside }) =>
      perl(
        'syscall(int $ARGV[0], int $ARGV[1], int $ARGV[2], 0, 0) == 0 or no_("ptrace"); print "attached\n"',
        String(syscallNumbers.ptrace[column]),
        String(PTRACE_ATTACH),
        String(outside.victim),
      ),
    judge: (seen) => callVerdict(seen, seen.output.includes('attached'), 'pid namespace'),
  },
  {
    name: 'kill a process outside',
    argv: ({ outside }) => sh('kill -9 "$1" && echo killed', String(outside.victim)),
    judge: async (seen) => {
      await Bun.sleep(20)
      return verdict(seen, !seen.field.outside.isVictimAlive(), 'pid namespace')
    },
  },
  {
    name: 'outlive the command in a session of its own',
    needs: ['setsid'],
    argv: () => sh(`setsid sh -c 'sleep ${SURVIVOR_MS / 1000}; echo x > survivor' >/dev/null 2>&1 & sleep 0.05`),
    judge: async (seen) => {
      await Bun.sleep(2 * SURVIVOR_MS)
      return verdict(seen, existsSync(join(seen.field.ground.settings.workspace, 'survivor')), 'pid namespace')
    },
  },
  {
    name: 'read shared memory of a process outside',
    needs: ['perl'],
    argv: ({ outside }) => perl('shmread($ARGV[0], my $text, 0, 128) or no_("shmread"); print $text', String(outside.memory)),
    judge: (seen) => verdict(seen, seen.output.includes(seen.field.ground.token), 'ipc namespace'),
  },
  {
    name: 'fork without end',
    needs: ['perl'],
    argv: ({ ground }) =>
      perl(
        'my @all; for (1 .. $ARGV[0]) { my $pid = fork; if (!defined $pid) { printf "stopped after %d forks, errno=%d\n", scalar @all, $! + 0; kill 9, @all; exit } if (!$pid) { sleep 5; exit } push @all, $pid } kill 9, @all; print "unlimited\n"',
        String(Math.ceil(ground.settings.limits.processes * ABOVE)),
      ),
    judge: (seen) => verdict(seen, seen.output.includes('unlimited'), 'limits'),
  },
  {
    name: 'take memory without end',
    needs: ['perl'],
    argv: ({ ground }) =>
      perl(
        'my @all; for (1 .. $ARGV[0]) { push @all, "x" x 1048576 } print "unlimited\n"',
        String(Math.ceil((ground.settings.limits.memoryBytes * ABOVE) / 2 ** 20)),
      ),
    judge: (seen) => verdict(seen, seen.output.includes('unlimited'), 'limits'),
  },
  {
    name: 'take memory with several processes that each stay below the limit',
    needs: ['perl'],
    argv: ({ ground }) =>
      perl(
        'for (1 .. 4) { if (!fork) { my $x = "x" x $ARGV[0]; sleep 2; exit } } 1 while wait != -1; print "unlimited\n"',
        String(Math.ceil(ground.settings.limits.memoryBytes / 2)),
      ),
    judge: (seen) => verdict(seen, seen.output.includes('unlimited'), 'limits'),
  },
  {
    name: 'write a file without end',
    argv: ({ ground }) => sh('head -c "$1" /dev/zero > flood', String(Math.ceil(ground.settings.limits.fileBytes * ABOVE))),
    judge: (seen) => {
      const size = statSync(join(seen.field.ground.settings.workspace, 'flood'), { throwIfNoEntry: false })?.size ?? 0
      return verdict(seen, size > seen.field.ground.settings.limits.fileBytes, 'limits')
    },
  },
]

function environment(name: string, files: string, layer: 'environment' | 'pid namespace'): EscapeAttempt {
  return {
    name,
    argv: ({ ground, outside }) =>
      sh(
        `cat ${files} 2>/dev/null | tr '\\0' '\\n' | grep -aF -- "$1"; [ -e "/proc/$2" ] && echo "the process can be seen"; echo looked`,
        ground.token.slice(1),
        String(outside.victim),
      ),
    judge: (seen) =>
      verdict(
        seen,
        seen.output.includes(seen.field.ground.token),
        layer === 'pid namespace' && seen.output.includes('can be seen') ? 'user namespace' : layer,
      ),
  }
}
