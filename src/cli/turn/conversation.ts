/** Which conversation a turn belongs to. */

import { createId } from '../../kit/id.ts'
import type { Memory } from '../../memory/db.ts'
import { CliExit, exitCodes } from '../exit.ts'
import type { Wish } from '../world.ts'

/** @throws CliExit 1 when there is none to go on with. */
export function conversationFor(memory: Memory, wish: Wish['conversation']): string {
  if (wish.kind === 'new' || (wish.kind === 'session' && !isKnown(memory, wish.id)))
    return createId('conversation', crypto.getRandomValues(new Uint8Array(10)))
  return resolveConversation(memory, wish.kind === 'latest' ? 'last' : (wish.id ?? 'last'))
}

/** Whether this is one that there was before. */
export function goesOn(wish: Wish['conversation'], conversationId: string): boolean {
  return wish.kind === 'session' ? wish.id === conversationId : wish.kind !== 'new'
}

function isKnown({ conversations }: Memory, id: string | undefined): boolean {
  return id !== undefined && conversations.has(id)
}

/** An id, or "last". @throws CliExit 1 when there is no such conversation. */
export function resolveConversation({ conversations }: Memory, id: string): string {
  const known = id === 'last' ? conversations.list({ limit: 1 })[0]?.conversationId : conversations.has(id) ? id : undefined
  if (known !== undefined) return known
  throw new CliExit(
    exitCodes.error,
    `error: ${id === 'last' ? 'there is no conversation yet' : `no conversation "${id}"; see: braidclaw memory list`}`,
  )
}
