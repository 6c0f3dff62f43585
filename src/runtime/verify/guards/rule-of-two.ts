/** Defines P17: nothing leaves unasked once both private data and content of others were read. */

import type { Property } from '../../../kernel/property.ts'
import type { Label, RunEvent } from '../../event.ts'

type Read = { readonly labels: readonly Label[]; readonly sending: readonly string[]; readonly broken: boolean }

/** `sending`: calls in flight that can send something and that nobody allowed; a file that another call writes meanwhile may reach them. */
export const nothingLeavesUnasked: Property<RunEvent, Read> = {
  name: 'Once content of others and something private were read, nothing that can send anything runs without a yes.',
  init: { labels: [], sending: [], broken: false },
  next(read, { event }) {
    if (event.type === 'run.start') return { ...read, labels: readsOf(event.labels) }
    if (event.type === 'tool.done' || event.type === 'tool.changed')
      return { ...read, sending: read.sending.filter((id) => id !== event.id) }
    if (event.type !== 'act') return read
    const { labels = [] } = event.judgement
    const known = [...new Set([...read.labels, ...readsOf(labels)])].sort()
    const sending = labels.includes('sends') && event.approval === undefined ? [...read.sending, event.id] : read.sending
    return { labels: known, sending, broken: read.broken || (known.length === 2 && sending.length > 0) }
  },
  violated: ({ broken }) => broken,
}

const readsOf = (labels: readonly Label[] = []) => labels.filter((label) => label !== 'sends')
