/** What a person has to do when no sandbox can be had. */

import { readFileSync } from 'node:fs'

/** Programs of the system alone; never a folder that a command could write to. */
export const fixedPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

export const install = 'install the package "bubblewrap" (apt install bubblewrap, dnf install bubblewrap, apk add bubblewrap)'

type Switch = { readonly path: string; readonly bad: (value: number) => boolean; readonly advice: string }

const switches: readonly Switch[] = [
  {
    path: '/proc/sys/kernel/unprivileged_userns_clone',
    bad: (value) => value === 0,
    advice: 'user namespaces are switched off: "sysctl -w kernel.unprivileged_userns_clone=1" allows them',
  },
  {
    path: '/proc/sys/user/max_user_namespaces',
    bad: (value) => value === 0,
    advice: 'no user namespaces are left: "sysctl -w user.max_user_namespaces=10000" allows them',
  },
  {
    path: '/proc/sys/kernel/apparmor_restrict_unprivileged_userns',
    bad: (value) => value === 1,
    advice:
      'AppArmor keeps user namespaces from programs without a profile: give bwrap one (package apparmor-profiles: bwrap-userns-restrict), or "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"',
  },
]

/** Names the switches that stand wrong; in a container none of them shows. */
export function advice(read: (path: string) => string = text): string {
  const found = switches.filter(({ path, bad }) => read(path) !== '' && bad(Number(read(path)))).map(({ advice }) => advice)
  if (found.length > 0) return found.join('; ')
  return 'user namespaces and mounts must be allowed: inside a container start it with a seccomp profile that lets unshare and mount through'
}

function text(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch {
    return ''
  }
}
