/** Lists, reads, renames and deletes conversations. */

import { flat, quote } from '../../kit/text.ts'
import type { ListedConversation } from '../../memory/conversations/conversation-list.ts'
import { spansOf } from '../../receipts/find-receipt.ts'
import { deletion } from '../../receipts/without-run.ts'
import type { HostRecords } from '../contract/records-api.ts'
import { FailureError } from '../failure.ts'
import { inRecordWords } from './integrity/recovery.ts'
import { limited, type RecordsBase } from './records-base.ts'

const longestTitle = 200

export function conversationRecords(base: RecordsBase): HostRecords['conversations'] {
  const { memory, record, setup, live } = base
  const { conversations } = memory

  function existing(id: string): ListedConversation {
    const found = conversations.find(id)
    if (found) return found
    throw new FailureError('error', `no conversation ${quote(id)}; see: braidclaw memory list`)
  }

  return {
    list({ limit: asked, before, ownedBy } = {}) {
      const limit = limited(asked, 50)
      const found = conversations.page({ limit: limit + 1, before, ownedBy })
      const page = found.slice(0, limit)
      const next = found.length > limit ? page.at(-1)?.position : undefined
      return { conversations: page.map(factsOf), ...(next === undefined ? {} : { next }) }
    },
    read: (id) => ({ ...factsOf(existing(id)), messages: conversations.show(id) }),
    rename(id, given) {
      const title = setup.redactor.text(flat(given.trim()))
      if (title === '' || title.length > longestTitle)
        throw new FailureError('usage', `a title has 1 to ${longestTitle} characters; this one has ${title.length}`)
      record.transaction(() => {
        existing(id)
        conversations.rename(id, title)
        memory.note('conversation.renamed', { conversationId: id, title })
      })
      live?.written()
      return factsOf(existing(id))
    },
    delete(id, by) {
      existing(id)
      const done = inRecordWords(() =>
        conversations.delete(id, ({ turns, runs, receipts }) => {
          const input = { conversation: id, turns, runs, receipts: spansOf(receipts), by: setup.redactor.text(by) }
          record.recordAction({ conversationId: id, tool: deletion, input, risk: 'medium' })
        }),
      )
      if (!done.ok)
        throw new FailureError(
          'error',
          `conversation ${quote(id)} was not deleted: ${done.underWay.join(', ')} is under way; cancel it or wait`,
        )
      live?.written()
      const { conversationId, turns, runs } = done.deleted
      return { conversationId, turns, runs }
    },
  }
}

function factsOf({ position: _, ...facts }: ListedConversation) {
  return facts
}
