/** Defines who sends a request, as far as a server of ours cares. */

export type Identity = { readonly id: string }

/** `scopes` is a plain list of words, and "admin" includes all of them. */
export type ScopedIdentity = Identity & { readonly scopes: readonly string[] }

/** `key` names the caller among all callers: limits and kept answers are by key. */
export type Sender<Caller extends Identity> = { readonly caller: Caller; readonly key: string }
