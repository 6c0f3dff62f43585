/** Finds the conversation that a turn belongs to, or creates its id. */

import { createId, sha256 } from '../../kit/sha256.ts'
import { didYouMean, quote } from '../../kit/text.ts'
import type { Memory } from '../../memory/memory.ts'
import type { ConversationChoice } from '../api.ts'
import { FailureError } from '../failure.ts'

/** Reports that a turn has no conversation to continue. */
export class NoConversation extends FailureError {
  constructor(problem: string) {
    super('error', problem)
  }
}

export type Begun = {
  readonly conversationId: string
  /** The folder where the conversation was begun: the current one, unless it continues from another folder. */
  readonly folder: string
  /** True when the conversation existed before. */
  readonly isContinuation: boolean
}

/** `here`: the real path of the workspace. @throws FailureError `error` when there is no conversation to continue. */
export function conversationFor(memory: Memory, request: ConversationChoice, here: string): Begun {
  const { conversations } = memory
  const known = knownFor(memory, request, here)
  if (known !== undefined) return { conversationId: known, folder: conversations.folderOf(known) ?? here, isContinuation: true }
  const conversationId =
    request.kind === 'called' ? idOf(request.name) : createId('conversation', crypto.getRandomValues(new Uint8Array(10)))
  return { conversationId, folder: here, isContinuation: false }
}

/** Derives the id from the name, equal in every process, so that no list of names is needed. */
function idOf(name: string): string {
  return createId('conversation', Buffer.from(sha256(name).slice(0, 20), 'hex'))
}

function knownFor(memory: Memory, request: ConversationChoice, here: string): string | undefined {
  const { conversations } = memory
  if (request.kind === 'new') return undefined
  if (request.kind === 'called') return conversations.has(idOf(request.name)) ? idOf(request.name) : undefined
  if (request.kind === 'session') return request.id !== undefined && conversations.has(request.id) ? request.id : undefined
  if (request.kind === 'resume') return resolveConversation(memory, request.id)
  const found = conversations.latestIn(here)
  if (found !== undefined) return found
  const other = latestElsewhere(memory, here)
  if (other === undefined) return resolveConversation(memory, 'last')
  throw new NoConversation(`${other.says}; to continue that one: braidclaw agent --resume ${other.id}`)
}

/** Returns the most recently used conversation of another folder; undefined when there is none, or when this folder has one. */
export function latestElsewhere({ conversations }: Memory, here: string): { readonly id: string; readonly says: string } | undefined {
  const id = conversations.list({ limit: 1 })[0]?.conversationId
  if (id === undefined || conversations.latestIn(here) !== undefined) return undefined
  const folder = conversations.folderOf(id)
  const where = folder === undefined ? 'was begun before folders were recorded' : `was begun in ${folder}`
  return { id, says: `no conversation was begun in ${here} yet; the latest one, ${id}, ${where}` }
}

/** Resolves an id or its beginning, a name, or "last". @throws FailureError `error` when no conversation is called so, or several are. */
export function resolveConversation({ conversations }: Memory, ref: string): string {
  const latest = (limit: number) => conversations.list({ limit })
  const [id, ...others] =
    ref === 'last' ? latest(1).map((each) => each.conversationId) : conversations.has(ref) ? [ref] : conversations.idsOf(ref)
  if (others.length > 0) throw new NoConversation(`several conversations are called ${quote(ref)}: ${[id, ...others].join(', ')}`)
  if (id !== undefined) return id
  if (ref === 'last') throw new NoConversation('no conversation exists yet')
  const titles = latest(200).map(({ title }) => title)
  throw new NoConversation(`no conversation ${quote(ref)}${didYouMean(ref, titles)}; see: braidclaw memory list`)
}
