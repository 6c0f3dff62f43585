/** Lists conversations page by page, and keeps the titles that people gave them, which no rebuild of the turns changes. */

import type { Store } from '../store.ts'

/** `started` and `updated` in milliseconds since 1970; `turns` counts questions; `title` as given, else the first question, shortened. */
export type Conversation = {
  readonly conversationId: string
  readonly started: number
  readonly updated: number
  readonly turns: number
  readonly title: string
}

export type ConversationsQuery = {
  readonly limit?: number
  readonly offset?: number
  /** Lists only conversations that were used before this position: the `position` of an earlier page. */
  readonly before?: number | undefined
  /** Only conversations that the token of this id began. */
  readonly ownedBy?: string | undefined
}

/** `position`: where the conversation stands in the list now. */
export type ListedConversation = Conversation & { readonly position: number }

const columns = `conversation_id AS conversationId, started, updated, turns,
  coalesce((SELECT given.title FROM conversation_titles AS given WHERE given.conversation_id = conversations.conversation_id), title) AS title,
  last_seq AS position`

export const conversationsOfToken = 'SELECT conversation_id FROM token_conversations WHERE token_id = ?'

/** Most recently used first: by sequence, because a clock may be set back. */
export function listConversations(
  store: Store,
  { limit = 50, offset = 0, before = Number.MAX_SAFE_INTEGER, ownedBy }: ConversationsQuery,
): ListedConversation[] {
  const owned = ownedBy === undefined ? '' : `AND conversation_id IN (${conversationsOfToken})`
  const rows = store.sql<ListedConversation, (string | number)[]>(
    `SELECT ${columns} FROM conversations WHERE last_seq < ? ${owned} ORDER BY last_seq DESC LIMIT ? OFFSET ?`,
  )
  return rows.all(before, ...(ownedBy === undefined ? [] : [ownedBy]), limit, offset)
}

export function listedConversation(store: Store, conversationId: string): ListedConversation | undefined {
  return (
    store.sql<ListedConversation, [string]>(`SELECT ${columns} FROM conversations WHERE conversation_id = ?`).get(conversationId) ??
    undefined
  )
}

/** Call it inside a transaction. */
export function keepTitle(store: Store, conversationId: string, title: string): void {
  store
    .sql<never, [string, string]>('INSERT INTO conversation_titles VALUES (?, ?) ON CONFLICT DO UPDATE SET title = excluded.title')
    .run(conversationId, title)
}
