/** Sends a command to a sandbox that started before the command was known: a shell inside reads it as lines from a descriptor. */

import type { SpawnPlan } from './confinement.ts'

export const failureCode = 126

/**
 * Precedes our own failure messages on the error stream, together with that exit code. Each command has a different mark and never learns
 * it.
 */
export function failureMark(): string {
  return `braidclaw-sandbox ${crypto.randomUUID()}: `
}

/** The shell reads byte by byte, about a microsecond each; starting a program that reads everything at once costs a millisecond. */
const SHORT = 1_000

/** Reads the number of lines, or "all", and then the lines. It closes the descriptor before the command starts. */
export function receiver(descriptor: string): string[] {
  const script = `{ read -r n; s=; if [ "$n" = all ]; then s=$(cat); else while [ "$n" -gt 0 ]; do IFS= read -r l; s="$s$l
"; n=$((n-1)); done; fi; } <&${descriptor} ${descriptor}<&-; exec ${descriptor}<&-; eval "$s"`
  return ['/bin/sh', '-c', script, 'sh']
}

export type Command = { readonly argv: readonly string[]; readonly cwd: string; readonly env: SpawnPlan['env'] }
export type Marked = Command & { readonly mark: string }

/** Quotes every word, so that the shell interprets nothing in it. */
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
