/** Defines what the guarded fetch asks the network gate, and what the gate answers. */

export type Verdict = { readonly ok: true } | { readonly ok: false; readonly rule: string; readonly reason: string }

/** Called for every hop, before any name is resolved. */
export type JudgeUrl = (input: { readonly url: string; readonly method: string }) => Verdict

/** Called for every address of a host name, and for addresses written in the URL. `ip` has no brackets. */
export type JudgeAddress = (input: { readonly host: string; readonly ip: string; readonly port: number }) => Verdict

/** @returns all addresses of a host name. May throw. */
export type Resolve = (host: string) => Promise<readonly string[]>

/** `denied` names the rule that refused; without it the request was allowed but failed. */
export type Refusal = { readonly ok: false; readonly denied?: string; readonly message: string }

export type Headers = { readonly [name: string]: string }

/** One outgoing request; `headers` have lower-case names. */
export type Outgoing = { readonly url: URL; readonly method: string; readonly headers: Headers; readonly body?: string }
