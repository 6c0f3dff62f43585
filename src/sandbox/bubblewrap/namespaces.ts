/** Builds bubblewrap's arguments that are not about files: the namespaces of a command and the entry into its control group. */

import type { Layer } from '../contract.ts'
import { hasOption } from '../install.ts'
import { descriptors } from './run-confined.ts'

/** The numbers of the user and group that own our files: with others git takes every file for a changed one. */
export function insideUser(): { readonly uid: number; readonly gid: number } {
  return { uid: process.geteuid?.() ?? 0, gid: process.getegid?.() ?? 0 }
}

/** `sharesNetwork`: the command is started in a network namespace that it shares with others of its conversation. */
export function isolationArguments(without: ReadonlySet<Layer>, sharesNetwork = false): string[] {
  return [
    ...namespaceArguments(sharesNetwork ? new Set([...without, 'network namespace']) : without),
    ...['--json-status-fd', descriptors.status],
    ...(without.has('seccomp') ? [] : ['--seccomp', descriptors.filter]),
  ]
}

/**
 * Gives the command its own namespaces, no capabilities and a session without a terminal, and ends it when our process ends. As
 * root it has the user number 0 and no rights.
 */
export function namespaceArguments(without: ReadonlySet<Layer>, hostname = 'sandbox'): string[] {
  const { uid, gid } = insideUser()
  return [
    ...['--unshare-user', '--uid', String(uid), '--gid', String(gid)],
    ...['--unshare-uts', '--hostname', hostname, '--unshare-cgroup-try'],
    ...(without.has('ipc namespace') ? [] : ['--unshare-ipc']),
    ...(without.has('pid namespace') ? [] : ['--unshare-pid']),
    ...(without.has('network namespace') ? [] : ['--unshare-net']),
    ...(without.has('nested namespaces') || !hasOption('--disable-userns') ? [] : ['--disable-userns']),
    ...['--cap-drop', 'ALL', '--new-session', '--die-with-parent'],
  ]
}

/** The process joins the group itself: moving a process from outside synchronises the whole machine, which takes some 10 ms. */
export function enterGroup(files: readonly string[]): string[] {
  if (files.length === 0) return []
  const joins = files.map((_, at) => `echo 0 >"$${at + 1}" || exit 1`).join('; ')
  return ['/bin/sh', '-c', `${joins}; shift ${files.length}; exec "$@"`, 'sh', ...files]
}
