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

/**
 * Runs what comes from the descriptor as a script. A shell takes a script in large pieces; what it reads by itself, it reads byte by byte,
 * and a program that reads for it takes a millisecond to start.
 */
export function receiver(descriptor: string): string[] {
  return ['/bin/sh', '-c', `. /proc/self/fd/${descriptor}`, 'sh']
}

export type Command = { readonly argv: readonly string[]; readonly cwd: string; readonly env: SpawnPlan['env'] }
export type Marked = Command & { readonly mark: string; readonly descriptor: string }

/**
 * Quotes every word, so that the shell interprets nothing in it. The braces keep the shell from running the first half of a script whose
 * second half never arrives. It closes the descriptor before the command starts.
 */
export function commandLines({ argv, cwd, env, mark, descriptor }: Marked): string {
  const names = Object.keys(env)
  const plain = names.filter((name) => /^[A-Za-z_]\w*$/.test(name))
  const odd = names.filter((name) => !plain.includes(name)).map((name) => `${name}=${env[name]}`)
  const words = odd.length === 0 ? argv : ['/usr/bin/env', ...odd, ...argv]
  const program = quoted(argv[0] ?? '')
  return [
    '{',
    `exec ${descriptor}<&-`,
    ...plain.map((name) => `export ${name}=${quoted(env[name] ?? '')}`),
    `cd -- ${quoted(cwd)} 2>/dev/null || { echo '${mark}its folder cannot be seen in the sandbox' >&2; exit ${failureCode}; }`,
    'unset OLDPWD',
    `command -v -- ${program} >/dev/null 2>&1 || { echo '${mark}there is no such program in the sandbox' >&2; exit ${failureCode}; }`,
    `exec ${words.map(quoted).join(' ')}`,
    '}\n',
  ].join('\n')
}

function quoted(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`
}
