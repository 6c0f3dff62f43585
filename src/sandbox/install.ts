/** Tells the user, as commands to copy, what to do when no sandbox works. */

import { existsSync, readFileSync } from 'node:fs'
import { textIn } from '../kit/proc.ts'
import { fixedPath, notWorking } from './trial-key.ts'

export const install = 'install the package "bubblewrap" (apt install bubblewrap, dnf install bubblewrap, apk add bubblewrap)'

export const notLinux = `sandbox: ${process.platform} has none that we know; run on Linux`

/**
 * `missing` is the whole message in one line. `why` (the problem) and `remedy` (what to do, one command per line) carry the same content
 * for a page.
 */
export type Lack = { readonly missing: string; readonly why: string; readonly remedy: readonly string[] }

export const notInstalled: Lack = {
  why: 'bubblewrap is not installed',
  missing: `bubblewrap is not installed; ${install}`,
  remedy: [
    'sudo apt install bubblewrap   # Debian, Ubuntu',
    'sudo dnf install bubblewrap   # Fedora, RHEL',
    'sudo apk add bubblewrap       # Alpine',
  ],
}

export function doesNotWork(complaint: string): Lack {
  const why = `${notWorking}: ${complaint.replace(/^the sandbox could not be set up: /, '')}`
  const { words, remedy } = advice(complaint)
  return { why, missing: `${why}; ${words}`, remedy }
}

/** Options of newer versions: the name stands in the help text that is part of the program, and reading it is quicker than running it. */
export function hasOption(name: string, program = Bun.which('bwrap', { PATH: fixedPath })): boolean {
  return program !== null && readFileSync(program).includes(name)
}

type Cause = { readonly why: string; readonly commands: readonly string[] }
type Switch = Cause & { readonly path: string; readonly bad: (value: number) => boolean }

const profile = 'bwrap-userns-restrict'

const appArmor: Switch = {
  path: '/proc/sys/kernel/apparmor_restrict_unprivileged_userns',
  bad: (value) => value === 1,
  why: 'AppArmor keeps user namespaces from programs without a profile (Ubuntu 24.04 and later); load the one for bwrap',
  commands: [
    'sudo apt install apparmor-profiles',
    `sudo cp /usr/share/apparmor/extra-profiles/${profile} /etc/apparmor.d/`,
    `sudo apparmor_parser -r /etc/apparmor.d/${profile}`,
  ],
}

const switches: readonly Switch[] = [
  {
    path: '/proc/sys/kernel/unprivileged_userns_clone',
    bad: (value) => value === 0,
    why: 'user namespaces are switched off',
    commands: ['sudo sysctl -w kernel.unprivileged_userns_clone=1'],
  },
  {
    path: '/proc/sys/user/max_user_namespaces',
    bad: (value) => value === 0,
    why: 'no user namespaces are left',
    commands: ['sudo sysctl -w user.max_user_namespaces=10000'],
  },
  appArmor,
]

const container: Cause = {
  why: 'user namespaces, mounts and a whole /proc must be allowed: start the container with these options',
  commands: [
    'docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined IMAGE',
    'podman run --security-opt seccomp=unconfined --security-opt unmask=ALL IMAGE',
  ],
}

const unknown: Cause = {
  why: 'user namespaces and mounts must be allowed; something around this program forbids them (a container, a service with RestrictNamespaces, a system-call filter). Inside a container start it with these options',
  commands: container.commands,
}

/**
 * Names the kernel switches that block bubblewrap, and the container options when we run in a container. `complaint` is bubblewrap's own
 * message.
 */
export function advice(
  complaint: string,
  { read = textIn, exists = existsSync }: { readonly read?: (path: string) => string; readonly exists?: (path: string) => boolean } = {},
): { readonly words: string; readonly remedy: readonly string[] } {
  // This error means that the user may create a user namespace but not use it, which only AppArmor causes.
  const isAppArmor = /uid map: Permission denied/.test(complaint)
  const isBlocking = ({ path, bad }: Switch) => read(path) !== '' && bad(Number(read(path)))
  const wrong: readonly Cause[] = switches.filter((one) => isBlocking(one) || (one === appArmor && isAppArmor))
  const contained = ['/.dockerenv', '/run/.containerenv'].some(exists)
  const causes = wrong.length > 0 || contained ? [...wrong, ...(contained ? [container] : [])] : [unknown]
  return {
    words: causes
      .map(({ why, commands }) => `${why}: ${commands.join(why === unknown.why || why === container.why ? ' or ' : ' && ')}`)
      .join('; '),
    remedy: causes.flatMap(({ why, commands }) => [`${why}:`, ...commands.map((command) => `  ${command}`)]),
  }
}
