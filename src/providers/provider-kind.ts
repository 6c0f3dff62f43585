/** What a file of a provider exports: its word in `kind = "…"`, the rows of its table, and how it is made. */

import type { Rows, Values } from '../kit/settings.ts'
import type { Provider } from '../runtime/port.ts'
import type { ProviderDeps } from './wire/provider-settings.ts'

/** One question, one answer. `unread`: nobody took the question; `closed`: the FIFO was removed or we are leaving. */
export type AskBrain = (
  frame: string,
  signal: AbortSignal,
) => Promise<{ readonly ok: true; readonly answer: string } | { readonly ok: false; readonly why: string }>

/** What providers may use of the world. */
export type CreateDeps = ProviderDeps & {
  /** The longest body that is read. */
  readonly maxResponseBytes: number
  /** What the variable of that name holds, if anything: settings name keys and never hold them. */
  secret(variable: string): string | undefined
  provider(name: string): Promise<Provider>
  /** Of a stub: which of its agent's calls this is, from 1. */
  count(): number | Promise<number>
  /** Of a FIFO provider: questions to the other end of that folder's FIFOs. @throws ProviderFailure `bad_request` when there are none */
  brain(wanted: { readonly dir: string; readonly timeoutMs: number }): Promise<AskBrain>
}

/** `settings` passed its rows, defaults included. */
export type Creating<R extends Rows> = { readonly name: string; readonly settings: Values<R>; readonly deps: CreateDeps }

export type ProviderKind<R extends Rows = Rows> = {
  readonly kind: string
  readonly settings: R
  /**
   * Absent: a budget reserves for each call by the prices of its rows; without them what it costs is not known. `free`: without them it costs
   * nothing. `kept`: it reserves for each of its attempts itself, or hands calls to providers that do.
   */
  readonly budget?: 'free' | 'kept'
  /** @throws ProviderFailure `bad_request` for what cannot be used: a fixture that cannot be read, FIFOs that are not there */
  create(given: Creating<R>): Provider | Promise<Provider>
}
