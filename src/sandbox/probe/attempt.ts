/** What an attempt to escape is, and how its outcome is put. */

import type { Environment, Layer, SandboxName } from '../confinement.ts'
import type { Ground } from './ground.ts'
import type { Outside } from './outside.ts'

/** What the attempts find when they start. */
export type Field = {
  readonly ground: Ground
  readonly outside: Outside
  readonly name: SandboxName
  /** Whether a system-call filter is at work inside. */
  readonly filtered: boolean
  readonly env: Environment
}

export type Seen = { readonly output: string; readonly code: number | null; readonly field: Field }

export type Verdict = { readonly stopped: boolean; readonly layer: string; readonly detail: string }

export type Attempt = {
  readonly name: string
  /** Looked for on the fixed PATH; without it the attempt is skipped, and says so. */
  readonly needs: readonly string[]
  argv(field: Field): readonly string[]
  /** After the command has ended. Looks from outside wherever there is something to see. */
  judge(seen: Seen): Verdict | Promise<Verdict>
}

/** In a landlock sandbox the same attempt meets other walls. */
const landlockWalls: { readonly [layer: string]: string } = {
  'mount namespace': 'landlock',
  'hidden files': 'landlock',
  'pid namespace': 'landlock',
  'user namespace': 'landlock',
  'ipc namespace': 'seccomp',
  'network namespace': 'seccomp',
}

/** `layer` is the one whose removal lets the attempt through: the tests remove each and see. */
export function verdict(
  seen: Seen,
  escaped: boolean,
  layer: Layer | 'capabilities' | 'file permissions' | 'user namespace' | 'no terminal',
): Verdict {
  const wall = seen.field.name === 'landlock' ? (landlockWalls[layer] ?? layer) : layer
  return { stopped: !escaped, layer: escaped ? 'none' : wall, detail: oneLine(seen) }
}

/** A refused call and a missing right look alike (EPERM); the filter comes first where there is one. */
export function callVerdict(seen: Seen, escaped: boolean, otherwise: Parameters<typeof verdict>[2]): Verdict {
  return verdict(seen, escaped, seen.field.filtered && /errno=(1|38)\b/.test(seen.output) ? 'seccomp' : otherwise)
}

function oneLine({ output, code, field }: Seen): string {
  const text = output
    .replaceAll(field.ground.token, '(the canary)')
    .trim()
    .replace(/\s*\n\s*/g, ' | ')
  return (text || `exit code ${code}`).slice(0, 200)
}

export function sh(script: string, ...words: readonly string[]): readonly string[] {
  return ['/bin/sh', '-c', script, 'sh', ...words]
}

/** `$!` as a number, for errno is what tells the layers apart. */
export function perl(script: string, ...words: readonly string[]): readonly string[] {
  return ['perl', '-e', `$| = 1; sub no_ { printf "%s errno=%d (%s)\\n", $_[0], $! + 0, $!; exit 1 } ${script}`, ...words]
}
