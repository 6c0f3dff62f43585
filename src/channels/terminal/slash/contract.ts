/** Defines what a slash command gets, and what becomes of a line. */

import type { Conversation, Host } from '../../../host/api.ts'
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
  readonly replace: (by: { readonly model?: string; readonly approveAllMedium?: boolean; readonly id?: string }) => Promise<Conversation>
}

/** Returns what to print. */
export type SlashAnswer = (typed: Slash, argument: string) => Printed | Promise<Printed>

/** `continue`: the last turn continues. */
export type LineOutcome = 'message' | 'continue' | 'done' | 'exit'
