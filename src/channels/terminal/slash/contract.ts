/** Defines what a slash command gets, and what becomes of a line. */

import type { Flags } from '../../../config/load.ts'
import type { Conversation, Host } from '../../../host/api.ts'
import { efforts } from '../../../providers/rows.ts'
import type { AskPerson } from '../approval-prompt.ts'
import type { CliSetup } from '../context.ts'
import type { Printed } from '../printer.ts'

export type Slash = {
  readonly host: Host
  readonly ask: AskPerson
  readonly line: string
  readonly setup: CliSetup
  readonly conversation: Conversation
  /** Opens a new conversation; with settings, the same conversation with those; with an id, that one. */
  readonly replace: (by: Pick<Flags, 'model' | 'effort' | 'approveAllMedium'> & { readonly id?: string }) => Promise<Conversation>
}

/** The words that may follow `/effort`. */
export const effortLevels = [...efforts, 'default'] as const

/** Returns what to print. */
export type SlashAnswer = (typed: Slash, argument: string) => Printed | Promise<Printed>

/** `continue`: the last turn continues. */
export type LineOutcome = 'message' | 'continue' | 'done' | 'exit'
