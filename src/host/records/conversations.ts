/** Lists, reads, renames, copies, exports, imports and deletes the conversations of a home. */

import { createId } from '../../kit/sha256.ts'
import { count, flat, quote } from '../../kit/text.ts'
import type { ListedConversation } from '../../memory/conversations/conversations.ts'
import { type Copy, turnsToCopy, writeCopy } from '../../memory/conversations/copies.ts'
import { deleteConversation } from '../../memory/conversations/delete-conversations.ts'
import { conversationChoices } from '../../memory/conversations/search-turns.ts'
import { spansOf } from '../../receipts/list-receipts.ts'
import { deletion } from '../../receipts/without-run.ts'
import type { Label } from '../../runtime/event.ts'
import type { HostRecords } from '../contract/records-api.ts'
import { FailureError } from '../failure.ts'
import { forFile, readConversation } from './conversation-file.ts'
import { inRecordWords } from './integrity/create-record.ts'
import { assertIntact } from './integrity/resume-check.ts'
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
      return { conversations: page.map(factsOf), next }
    },
    read: (id) => ({ ...factsOf(existing(id)), messages: conversations.show(id) }),
    choices: (query) => conversationChoices(memory.store, query),
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
    ...copyRecords(base, existing),
    delete(id, by) {
      existing(id)
      const done = inRecordWords(() =>
        deleteConversation(memory.store, id, ({ turns, runs, receipts }) => {
          const input = { conversation: id, turns, runs, receipts: spansOf(receipts), by: setup.redactor.text(by) }
          record.recordAction({ conversationId: id, tool: deletion, input, risk: 'medium' })
        }),
      )
      const why = done.ok ? '' : `${done.underWay.join(', ')} is under way; cancel it or wait`
      if (!done.ok) throw new FailureError('error', `conversation ${quote(id)} was not deleted: ${why}`)
      live?.written()
      const { conversationId, turns, runs } = done.deleted
      return { conversationId, turns, runs }
    },
  }
}

function factsOf({ position: _, ...facts }: ListedConversation) {
  return facts
}

/** Begins conversations with what was said in others. */
function copyRecords(
  { memory, record, setup, live }: RecordsBase,
  existing: (id: string) => ListedConversation,
): Pick<HostRecords['conversations'], 'fork' | 'export' | 'import'> {
  const { conversations } = memory

  /** Writes the copy as a new conversation of that name. */
  function begin(copy: Omit<Copy, 'conversationId'>, title: string, labels: readonly Label[]) {
    const conversationId = createId('conversation', crypto.getRandomValues(new Uint8Array(10)))
    inRecordWords(() =>
      record.transaction(() => {
        if (copy.from !== undefined) existing(copy.from)
        const { resultsMaxBytes } = setup.config.memory
        writeCopy({ ...memory, end: record.end, now: Date.now(), resultsMaxBytes }, { ...copy, conversationId })
        memory.labels.keep(conversationId, labels)
        conversations.rename(conversationId, title)
        memory.note('conversation.copied', { conversationId, from: copy.from, turns: copy.turns.length })
      }),
    )
    live?.written()
    return factsOf(existing(conversationId))
  }

  /** Returns "NAME (fork)", or with a number when there is one of that name. */
  function nameOfFork(title: string): string {
    const start = title.replace(/ \(fork( \d+)?\)$/, '').slice(0, longestTitle - 20)
    const numbers = Array.from({ length: 999 }, (_, index) => `${start} (fork${index === 0 ? '' : ` ${index + 1}`})`)
    return numbers.find((name) => conversations.idsOf(name).length === 0) ?? `${start} (fork)`
  }

  return {
    async fork(id, { turns: most } = {}) {
      const { title } = existing(id)
      // Otherwise a copy would make an altered record look sound.
      await assertIntact({ setup, memory, record, conversationId: id, accept: false })
      const ended = turnsToCopy(memory, Date.now(), id)
      if (ended.length === 0) throw new FailureError('error', `${id} has no turn that has ended yet, so there is nothing to copy`)
      if (most !== undefined && (most < 1 || most > ended.length))
        throw new FailureError(
          'usage',
          `turn ${most}: ${id} has ${count(ended.length, 'turn')} that ended; name one from 1 to ${ended.length}`,
        )
      const folder = conversations.folderOf(id)
      return begin({ channel: 'fork', folder, from: id, turns: ended.slice(0, most) }, nameOfFork(title), memory.labels.of(id))
    },
    export(id) {
      const { title } = existing(id)
      const turns = turnsToCopy(memory, Date.now(), id).map(({ at, provider, model, messages }) => {
        return { at: new Date(at).toISOString(), provider, model, messages: messages.map(forFile) }
      })
      const about = { conversationId: id, title, folder: conversations.folderOf(id) ?? null, labels: memory.labels.of(id) }
      return setup.redactor.json({ format: 'braidclaw.conversation', version: 1, ...about, turns } as const)
    },
    import(value, folder) {
      const { turns, title, labels } = setup.redactor.json(readConversation(value))
      const copied = turns.map(({ at, ...turn }) => ({ ...turn, at: Date.parse(at) }))
      // Others may have written the file.
      return begin({ channel: 'import', folder, turns: copied }, flat(title.trim()).slice(0, longestTitle), [...labels, 'reads_untrusted'])
    },
  }
}
