/** The namespaces of a command and how it enters its control group: bubblewrap's arguments that do not speak of files. */

import type { Layer } from '../confinement.ts'
import { descriptors } from './run-confined.ts'

/** Inside, nobody is root: programs behave as for an ordinary user. */
const NOBODY = 65534

export function wallArguments(without: ReadonlySet<Layer>): string[] {
  return [
    ...namespaceArguments(without),
    ...['--json-status-fd', descriptors.status],
    ...(without.has('seccomp') ? [] : ['--seccomp', descriptors.filter]),
  ]
}

/** A namespace each, no capabilities, a session without terminal, and death with us. */
export function namespaceArguments(without: ReadonlySet<Layer>): string[] {
  return [
    ...['--unshare-user', '--uid', String(process.getuid?.() || NOBODY), '--gid', String(process.getgid?.() || NOBODY)],
    ...['--unshare-uts', '--hostname', 'sandbox', '--unshare-cgroup-try'],
    ...(without.has('ipc namespace') ? [] : ['--unshare-ipc']),
    ...(without.has('pid namespace') ? [] : ['--unshare-pid']),
    ...(without.has('network namespace') ? [] : ['--unshare-net']),
    ...['--cap-drop', 'ALL', '--new-session', '--die-with-parent'],
  ]
}

/** A process joins a group by itself: moving one from outside waits for the whole machine, some 10 ms. */
export function enterGroup(files: readonly string[]): string[] {
  if (files.length === 0) return []
  const joins = files.map((_, at) => `echo 0 >"$${at + 1}" || exit 1`).join('; ')
  return ['/bin/sh', '-c', `${joins}; shift ${files.length}; exec "$@"`, 'sh', ...files]
}
