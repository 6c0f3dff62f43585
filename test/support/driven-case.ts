/** Defines how a command is driven on a terminal, and the text that no screen may be sent as it is. */

import type { Nest } from './cli.ts'

/** Clears the screen, names the window, reverses what follows, hides a letter: in C0, C1, DEL, bidi and zero-width characters. */
export const evil = '\u001b[2J\u001b]0;owned\u0007\u009b31m\u007f\u202egnp.\u2066x\u200e\u200bz\u061c\ufeff'

export type Case = {
  readonly words: readonly string[]
  readonly type?: readonly (readonly [string, string])[]
  readonly env?: { readonly [name: string]: string }
  /** Written into interact_out meanwhile. */
  readonly says?: string
}

/** What the tests of this file made before: a home, ids in it, and the address of a control plane full of evil texts. */
export const state = {} as { at: Nest; receipt: string; run: string; approval: string; changes: string; control: string }
