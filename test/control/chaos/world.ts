/** The outside world of the chaos runs: every process appends what really happened to a file of its own, which a kill does not undo. */

import { appendFileSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export type Happened =
  /** An effect that must not happen twice. */
  | { readonly kind: 'effect'; readonly task: string; readonly key: string; readonly run: string }
  /** Tokens that a model really used. */
  | { readonly kind: 'spent'; readonly task: string; readonly run: string; readonly tokens: number }
  | { readonly kind: 'used'; readonly approval: string; readonly run: string }
  /** Something that the control plane must not do. */
  | { readonly kind: 'wrong'; readonly what: string }
  | { readonly kind: 'event'; readonly id: number }
  /** The process of a run was alive at this time, and not later. `token`: the SHA-256 of its run token. */
  | { readonly kind: 'child'; readonly token: string; readonly at: number }
  /** Counts what the run has shown: a late write that was refused, a crash, a kill. */
  | { readonly kind: 'count'; readonly what: string }

export type World = { happen(event: Happened): void }

export function openWorld(folder: string, name: string): World {
  const path = join(folder, `${name}.jsonl`)
  return { happen: (event) => appendFileSync(path, `${JSON.stringify(event)}\n`) }
}

/** `of`: how the names of the files begin. */
export function readWorld(folder: string, of = ''): readonly Happened[] {
  return readdirSync(folder)
    .filter((name) => name.startsWith(of) && name.endsWith('.jsonl'))
    .flatMap((name) => readFileSync(join(folder, name), 'utf8').split('\n'))
    .filter((line) => line.endsWith('}'))
    .map((line): Happened => JSON.parse(line))
}

export function only<K extends Happened['kind']>(all: readonly Happened[], kind: K): readonly Extract<Happened, { kind: K }>[] {
  return all.filter((event): event is Extract<Happened, { kind: K }> => event.kind === kind)
}
