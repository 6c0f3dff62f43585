/** Defines the store of the answers to requests that carried an Idempotency-Key. */

export type StoredReply = { readonly status: number; readonly type: string; readonly body: string }

/** `digest`: of method, path and body. */
export type KeyedRequest = { readonly owner: string; readonly key: string; readonly digest: string }

/** `elsewhere`: another process is answering it; `lost`: that process has died. */
export type ReplyState =
  | { readonly state: 'new' | 'other' | 'elsewhere' | 'lost' | 'here' }
  | { readonly state: 'done'; readonly reply: StoredReply }

export type ReplyStore = {
  /** Notes that the request is being answered, on disk when it returns; or says what became of the first one. */
  begin(name: KeyedRequest): ReplyState | Promise<ReplyState>
  finish(name: KeyedRequest, reply: StoredReply): void | Promise<void>
  /** Forgets a request that was refused before anything happened. */
  forget(name: KeyedRequest): void | Promise<void>
}
