/** Defines an attempt to escape from a sandbox and formats its outcome. */

import type { ChildEnvironment, Layer, SandboxName } from '../contract.ts'
import type { Ground, Outside } from './probe-fixture.ts'

/** The environment in which the attempts run. */
export type Field = {
  readonly ground: Ground
  readonly outside: Outside
  readonly name: SandboxName
  /** Tells whether a system-call filter is active inside. */
  readonly filtered: boolean
  readonly env: ChildEnvironment
}

export type AttemptOutcome = { readonly output: string; readonly code: number | null; readonly field: Field }

export type ProbeVerdict = { readonly stopped: boolean; readonly layer: string; readonly detail: string }

export type EscapeAttempt = {
  readonly name: string
  /** Programs needed on the fixed PATH, if any; if one is missing, the attempt is skipped and reports that. */
  readonly needs?: readonly string[]
  argv(field: Field): readonly string[]
  /** Called after the command has ended. It checks from outside wherever an effect is visible there. */
  judge(seen: AttemptOutcome): ProbeVerdict | Promise<ProbeVerdict>
}

/** Maps a layer to the layer that stops the same attempt in a landlock sandbox. */
const landlockWalls: { readonly [layer: string]: string } = {
  'mount namespace': 'landlock',
  'hidden files': 'landlock',
  'pid namespace': 'landlock',
  'user namespace': 'landlock',
  'ipc namespace': 'seccomp',
  'network namespace': 'seccomp',
}

/** `layer` is the layer whose removal lets the attempt succeed: the tests remove each layer and check. */
export function verdict(
  seen: AttemptOutcome,
  escaped: boolean,
  layer: Layer | 'capabilities' | 'file permissions' | 'user namespace' | 'no terminal' | 'repair afterwards',
): ProbeVerdict {
  const wall = seen.field.name === 'landlock' ? (landlockWalls[layer] ?? layer) : layer
  return { stopped: !escaped, layer: escaped ? 'none' : wall, detail: oneLine(seen) }
}

/** A call that the filter refused and a missing right give the same error (EPERM); the filter runs first where there is one. */
export function callVerdict(seen: AttemptOutcome, escaped: boolean, otherwise: Parameters<typeof verdict>[2]): ProbeVerdict {
  return verdict(seen, escaped, seen.field.filtered && /errno=(1|38)\b/.test(seen.output) ? 'seccomp' : otherwise)
}

function oneLine({ output, code, field }: AttemptOutcome): string {
  const text = output
    .replaceAll(field.ground.token, '(the canary)')
    .trim()
    .replace(/\s*\n\s*/g, ' | ')
  return (text || `exit code ${code}`).slice(0, 200)
}

export function sh(script: string, ...words: readonly string[]): readonly string[] {
  return ['/bin/sh', '-c', script, 'sh', ...words]
}

/** Prints `$!` as a number, because errno distinguishes the layers. */
export function perl(script: string, ...words: readonly string[]): readonly string[] {
  return ['perl', '-e', `$| = 1; sub no_ { printf "%s errno=%d (%s)\\n", $_[0], $! + 0, $!; exit 1 } ${script}`, ...words]
}
