/** Computes a key of everything that decides whether a sandbox works here: an equal key makes another trial unnecessary. */

import { readlinkSync, statSync } from 'node:fs'
import { attempt } from '../kit/errors.ts'
import { textIn } from '../kit/proc.ts'

/** Contains only programs of the system, and no folder that a command could write to. */
export const fixedPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

/** Starts every message about a bubblewrap that is there. */
export const notWorking = 'bubblewrap is installed but does not work here'

/**
 * Covers everything that can change bubblewrap's success while the machine stays up: the program, kernel settings, and the restrictions of
 * this process (a namespace, a filter, an AppArmor profile). @returns undefined without bubblewrap, because then there is nothing to try
 */
export function trialKey(): string | undefined {
  const program = Bun.which('bwrap', { PATH: fixedPath })
  const stat = program === null ? undefined : statSync(program, { throwIfNoEntry: false })
  if (!stat) return undefined
  const files = [
    '/proc/sys/kernel/random/boot_id',
    '/proc/sys/kernel/unprivileged_userns_clone',
    '/proc/sys/kernel/apparmor_restrict_unprivileged_userns',
    '/proc/sys/kernel/apparmor_restrict_unprivileged_unconfined',
    ...['user', 'mnt', 'pid', 'net', 'ipc', 'uts'].map((name) => `/proc/sys/user/max_${name}_namespaces`),
    '/sys/module/apparmor/parameters/enabled',
    '/sys/fs/selinux/enforce',
    '/proc/self/attr/current',
  ]
  const rights = textIn('/proc/self/status').match(/^(Uid|CapBnd|NoNewPrivs|Seccomp\w*):.*$/gm) ?? []
  const namespaces = ['user', 'mnt'].map((name) => attempt(() => readlinkSync(`/proc/self/ns/${name}`)) ?? '')
  return [
    '2',
    program,
    stat.dev,
    stat.ino,
    stat.mtimeMs,
    stat.size,
    ...files.map((path) => textIn(path).trim()),
    ...rights,
    ...namespaces,
  ].join('\n')
}
