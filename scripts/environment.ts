/**
 * Builds the environment for child processes of these scripts: what a program needs to run, and nothing that could change its behaviour.
 */

const KEPT = ['PATH', 'LANG', 'USER', 'LOGNAME', 'SHELL', 'CI'] as const

/** Keeps no keys, no BRAIDCLAW_*, BUN_* or NODE_OPTIONS; `home` and `temporary` are folders of this run only. */
export function scrubbed(
  from: { readonly [name: string]: string | undefined },
  folders: { readonly home: string; readonly temporary: string },
): Record<string, string> {
  const kept = KEPT.flatMap((name): [string, string][] => (from[name] === undefined ? [] : [[name, from[name]]]))
  return { LANG: 'C.UTF-8', ...Object.fromEntries(kept), HOME: folders.home, TMPDIR: folders.temporary, TZ: 'UTC', TERM: 'dumb' }
}
