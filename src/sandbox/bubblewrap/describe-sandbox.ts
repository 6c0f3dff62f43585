/** Describes the layers of a bubblewrap sandbox for `doctor` and the receipts. */

import type { Layer, SandboxSettings } from '../confinement.ts'

type Described = {
  readonly settings: SandboxSettings
  readonly group: string | undefined
  readonly views: string
  readonly without: ReadonlySet<Layer>
}

export function describeBubblewrap({ settings, group, views, without }: Described): string[] {
  const { limits, allowedDomains } = settings
  const network =
    allowedDomains.length === 0 ? 'nothing but a loopback of its own' : `a proxy that lets through ${allowedDomains.join(', ')}`
  const all: readonly (readonly [Layer | 'always', string])[] = [
    [
      'mount namespace',
      `mount namespace: ${settings.workspace} writable, /tmp and HOME private, programs, your own tools and a small /etc read-only, all else absent`,
    ],
    ['mount namespace', `private views of the workspace: ${views}`],
    [
      'protected paths',
      'protected paths: git hooks and settings, and what other programs run or obey unasked, are read-only; new ones that running programs watch are refused',
    ],
    ['hidden files', 'hidden files: forbidden paths, our state, secrets and what only this user may read cannot be opened'],
    ['unread files', 'unread files: what matches security.forbidden_reads in the workspace cannot be opened'],
    ['refused programs', `refused programs: ${settings.forbiddenCommands?.join(', ') || 'none'}`],
    ['small /etc', 'small /etc: no users, services, keys and other settings of this machine'],
    ['network namespace', `network namespace: ${network}`],
    ['pid namespace', 'pid namespace: no process outside is seen; all processes inside end with the command'],
    ['ipc namespace', 'ipc namespace: no shared memory or message queue of others'],
    ['nested namespaces', 'nested namespaces: no program inside can make a user namespace, and so no mount of its own'],
    ['always', 'user, uts and cgroup namespaces, no capabilities, no_new_privs, a session without terminal'],
    [
      'seccomp',
      'seccomp: no ptrace, mounts, new namespaces, io_uring, bpf, keyrings, devices, set-user-ID programs, terminal injection, foreign sockets',
    ],
    ['limits', `limits: ${limits.memoryBytes} B of data, ${limits.fileBytes} B a file, ${limits.cpuSeconds} s of processor time a process`],
    ['limits', commonLimits({ settings, group })],
    ['environment', 'environment: only what the tool gives; that of our own process cannot be read'],
  ]
  return all.filter(([layer]) => layer === 'always' || !without.has(layer)).map(([, words]) => words)
}

/** Watched from outside; a control group also stops what is quicker than the watcher. */
function commonLimits({ settings: { limits }, group }: Pick<Described, 'settings' | 'group'>): string {
  const { totalMemoryBytes = limits.memoryBytes, diskBytes, processes } = limits
  const written = diskBytes === undefined ? '' : `, ${diskBytes} B written`
  const watched = `limits of all processes together: ${totalMemoryBytes} B of memory with /tmp${written}, ${processes} processes; beyond, the command is ended`
  return group === undefined ? watched : `${watched} (control group: ${group})`
}
