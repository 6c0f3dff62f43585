/** The setup of a turn: with the configuration as it was kept, where that still holds; loading it takes longer than all else before a question. */

import { keep, recall } from '../../config/kept.ts'
import type { Flags } from '../../config/layers/flags.ts'
import type { HostContext, Setup } from '../api.ts'
import { equip } from './create-setup.ts'

/** @throws FailureError error naming every problem of the configuration at once. */
export async function setUpKept<Context extends HostContext>(context: Context, flags: Flags, program = build()): Promise<Setup<Context>> {
  const now = program === undefined ? undefined : { ...context, flags, program }
  const kept = now && recall(now)
  if (kept) return equip(context, { ...kept, notices: [] })
  const { resolve } = await import('./setup.ts')
  const { origins, notices, ...loaded } = resolve(context, flags)
  const { config, file, assumed } = loaded
  const setup = equip(context, { ...loaded, origins: () => origins, notices })
  const found = { config, origins, ...(file ? { file } : {}), ...(assumed ? { assumed } : {}) }
  if (now && notices.length === 0 && !holdsSecret(setup, found)) keep(now, found)
  return setup
}

/** A key that was typed where a model's name belongs must not be written down. */
function holdsSecret({ redactor }: Setup, found: object): boolean {
  const text = JSON.stringify(found)
  return redactor.text(text) !== text
}

/**
 * Which build this is: the name of this piece of the executable is made of its content and of the names of all it imports, sooner or later.
 * Undefined for a run from source, and for an executable of one piece.
 */
function build(): string | undefined {
  const { path } = import.meta
  return path.startsWith('/$bunfs/') && path.endsWith('.js') ? path : undefined
}
