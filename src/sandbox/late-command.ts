/** How a command reaches a sandbox that was started before the command was known: as lines on a descriptor, read by a shell inside. */

import type { SpawnPlan } from './confinement.ts'

export const failureCode = 126

/** Stands before our own complaints on the error stream, with that exit code. Another one for each command, which never learns its own. */
export function failureMark(): string {
  return `braidclaw-sandbox ${crypto.randomUUID()}: `
}

/** The shell reads byte by byte, about a microsecond each; a program that reads all at once costs a millisecond. */
const SHORT = 1_000

/** First the number of lines, or "all", then the lines. The descriptor is closed before the command begins. */
export function receiver(descriptor: string): string[] {
  const script = `{ read -r n; s=; if [ "$n" = all ]; then s=$(cat); else while [ "$n" -gt 0 ]; do IFS= read -r l; s="$s$l
"; n=$((n-1)); done; fi; } <&${descriptor} ${descriptor}<&-; exec ${descriptor}<&-; eval "$s"`
  return ['/bin/sh', '-c', script, 'sh']
}

export type Command = { readonly argv: readonly string[]; readonly cwd: string; readonly env: SpawnPlan['env'] }
export type Marked = Command & { readonly mark: string }

/** Every word is quoted: nothing in it means anything to the shell. */
export function commandLines({ argv, cwd, env, mark }: Marked): string {
  const names = Object.keys(env)
  const plain = names.filter((name) => /^[A-Za-z_]\w*$/.test(name))
  const odd = names.filter((name) => !plain.includes(name)).map((name) => `${name}=${env[name]}`)
  const words = odd.length === 0 ? argv : ['/usr/bin/env', ...odd, ...argv]
  const program = quoted(argv[0] ?? '')
  const script = [
    ...plain.map((name) => `export ${name}=${quoted(env[name] ?? '')}`),
    `cd -- ${quoted(cwd)} 2>/dev/null || { echo '${mark}its folder cannot be seen in the sandbox' >&2; exit ${failureCode}; }`,
    'unset OLDPWD',
    `command -v -- ${program} >/dev/null 2>&1 || { echo '${mark}there is no such program in the sandbox' >&2; exit ${failureCode}; }`,
    `exec ${words.map(quoted).join(' ')}`,
  ].join('\n')
  const count = Buffer.byteLength(script) > SHORT ? 'all' : script.split('\n').length
  return `${count}\n${script}\n`
}

function quoted(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`
}
