/** What the guarded fetch asks of the network gate, and what it answers. */

export type Verdict = { readonly ok: true } | { readonly ok: false; readonly rule: string; readonly reason: string }

/** Asked for every hop, before anything is resolved. */
export type JudgeUrl = (input: { readonly url: string; readonly method: string }) => Verdict

/** Asked for every address a host name resolves to, and for addresses written in the URL. `ip` has no brackets. */
export type JudgeAddress = (input: { readonly host: string; readonly ip: string; readonly port: number }) => Verdict

/** All addresses of a host name. May throw. */
export type Resolve = (host: string) => Promise<readonly string[]>

/** `denied` names the rule that refused; without it the request was allowed and failed. */
export type Refusal = { readonly ok: false; readonly denied?: string; readonly message: string }

export type Headers = { readonly [name: string]: string }

/** One request as it goes out; `headers` have lower-case names. */
export type Outgoing = { readonly url: URL; readonly method: string; readonly headers: Headers; readonly body?: string }
