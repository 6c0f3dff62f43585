/** Defines what the file of a provider exports: its word in `kind = "…"`, the rows of its table, and its create function. */

import type { Rows, Values } from '../kit/settings.ts'
import type { Provider } from '../runtime/port.ts'
import type { ProviderDeps } from './wire/provider-settings.ts'

/**
 * Sends one question and returns one answer. `unread`: no process read the question; `closed`: the FIFO was removed or our process is
 * ending.
 */
export type AskBrain = (
  frame: string,
  signal: AbortSignal,
) => Promise<{ readonly ok: true; readonly answer: string } | { readonly ok: false; readonly why: string }>

/** The dependencies through which providers reach the network, secrets and other providers. */
export type CreateDeps = ProviderDeps & {
  /** The longest body that a provider reads. */
  readonly maxResponseBytes: number
  /** Returns the value of the named environment variable, if it is set: settings name keys and never contain them. */
  secret(variable: string): string | undefined
  provider(name: string): Promise<Provider>
  /** The longest answer that the model can give, in tokens, if that is known. */
  readonly longestAnswer?: number
  /** The kinds of content that the model takes, if they are known. */
  readonly sees?: readonly string[] | undefined
  /** Returns, for a stub, the number of this call among the calls of its agent, from 1. */
  count(): number | Promise<number>
  /**
   * Returns, for a FIFO provider, a function that sends questions through the FIFOs of that folder. @throws ProviderFailure `bad_request` when there
   * are none
   */
  brain(wanted: { readonly dir: string; readonly timeoutMs: number }): Promise<AskBrain>
}

/** `settings` passed the validation of its rows and include the defaults. */
export type Creating<R extends Rows> = { readonly name: string; readonly settings: Values<R>; readonly deps: CreateDeps }

export type ProviderKind<R extends Rows = Rows> = {
  readonly kind: string
  readonly settings: R
  /**
   * Absent: a budget reserves the cost of each call by the prices of the rows; without prices, the cost is unknown. `free`: without prices,
   * a call costs nothing. `kept`: the provider reserves for each of its attempts itself, or passes calls to providers that do.
   */
  readonly budget?: 'free' | 'kept'
  /** @throws ProviderFailure `bad_request` for an unusable setting: an unreadable fixture, missing FIFOs */
  create(given: Creating<R>): Provider | Promise<Provider>
}
