/** Lists the properties by the names that the design gives them. */

import { LIVELOCK } from '../../kernel/explore.ts'
import type { Property } from '../../kernel/property.ts'
import { EXTERNAL } from '../../kernel/select.ts'
import type { Label, RunEvent } from '../event.ts'
import { externalTypes } from '../external-types.ts'
import type { RunLimits } from '../program.ts'
import { P15 } from './answers.ts'
import { resolvedOnce, somebodyOwesAnAnswer } from './progress.ts'
import {
  goingInCircles,
  nothingAfterTheEnd,
  nothingBeginsAfterAStop,
  onlyAfterAYes,
  onlyAnswersToQuestions,
  onlyWhatTheGateLets,
  takingTurns,
  withinLimits,
} from './safety-properties.ts'

/** `holds` is null if the checker decided nothing; `note` says why. */
export type Finding = { readonly id: string; readonly says: string; readonly holds: boolean | null; readonly note?: string }

export const P9 = 'A replay of the external events selects the same events, in the same order.'

/** There is nothing to explore until checks exist. */
const P6: Finding = {
  id: 'P6',
  says: 'Wiggum mode ends well only after every check passed since the last edit.',
  holds: null,
  note: 'not applicable until checks exist; wiggum mode is refused',
}

export function propertiesOf(limits: RunLimits): { readonly id: string; readonly property: Property<RunEvent> }[] {
  return [
    { id: 'P1', property: onlyWhatTheGateLets },
    { id: 'P2', property: onlyAfterAYes },
    { id: 'P3', property: nothingBeginsAfterAStop },
    { id: 'P4', property: nothingAfterTheEnd },
    { id: 'P5', property: withinLimits(limits) },
    { id: 'P7', property: resolvedOnce },
    { id: 'P8', property: somebodyOwesAnAnswer },
    { id: 'P10', property: takingTurns(limits) },
    { id: 'P11', property: onlyAnswersToQuestions },
    { id: 'P12', property: goingInCircles(limits) },
    { id: 'P13', property: onlyTheWorldAnswers },
    { id: 'P14', property: stopsGetThrough },
    { id: 'P16', property: noModeWithoutChecks },
    { id: 'P17', property: nothingLeavesUnasked },
    { id: 'P18', property: withinChannel(limits) },
  ]
}

/** `unanswered`: why P15 is undecided although nothing broke. */
type Outcome = { readonly broken?: string; readonly cut: readonly string[]; readonly unanswered?: string }

/**
 * Returns all findings in order. `broken` names the property that broke; after a break, or in a search that was `cut`, the others are
 * undecided.
 */
export function findings({ broken, cut, unanswered }: Outcome): Finding[] {
  const explored = propertiesOf({ maxToolRounds: 0, maxParallel: 0 }).map(({ id, property: { name } }) => ({ id, says: name, name }))
  const asked = [
    ...explored,
    { id: 'P9', says: P9, name: P9 },
    { id: 'P15', says: P15, name: P15 },
    { id: 'P0', says: 'Every chain of consequences comes to rest.', name: LIVELOCK },
  ]
  const note = broken === undefined ? `cut off after too many states: ${cut.join(', ')}` : 'not decided'
  const open = broken !== undefined || cut.length > 0
  const decided = asked.map(({ id, says, name }): Finding => {
    if (name === broken) return { id, says, holds: false }
    if (open) return { id, says, holds: null, note }
    return name === P15 && unanswered !== undefined ? { id, says, holds: null, note: unanswered } : { id, says, holds: true }
  })
  const order = (id: string) => Number(id.slice(1))
  return [...decided, P6].sort((a, b) => order(a.id) - order(b.id))
}

type Read = { readonly labels: readonly Label[]; readonly sending: readonly string[]; readonly broken: boolean }

/** `sending`: calls in flight that can send something and that nobody allowed; a file that another call writes meanwhile may reach them. */
const nothingLeavesUnasked: Property<RunEvent, Read> = {
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

/** Defines P18: people on a channel get no more than its profile permits. */
function withinChannel({ channel }: Pick<RunLimits, 'channel'>): Property<RunEvent, { readonly beyond: boolean }> {
  const isBeyond = (event: RunEvent) => {
    if (event.type === 'apply') return channel?.readonly === true
    if (event.type !== 'act') return false
    return channel?.tools?.includes(event.call.name) === false || (channel?.readonly === true && event.judgement.writes.length > 0)
  }
  return {
    name: 'On a channel with a profile only its tools run, and where it only reads nothing is written or applied.',
    init: { beyond: false },
    next: (monitor, { event }) => (isBeyond(event) ? { beyond: true } : monitor),
    violated: ({ beyond }) => beyond,
  }
}

const onlyTheWorldAnswers: Property<RunEvent, { readonly forged: boolean }> = {
  name: 'Starts, replies, results, decisions, stops and the clock come from outside; no thread makes one up.',
  init: { forged: false },
  next: (monitor, { event, source }) => (source !== EXTERNAL && Object.hasOwn(externalTypes, event.type) ? { forged: true } : monitor),
  violated: ({ forged }) => forged,
}

/** A cancel has no effect after an emergency stop; an emergency stop still has one after a cancel. */
export const stopsGetThrough: Property<RunEvent, { readonly cancelled: boolean; readonly stopped: boolean; readonly over: boolean }> = {
  name: 'Until one came or the run is over, an emergency stop and a cancel are accepted; a halt that is asked for happens.',
  init: { cancelled: false, stopped: false, over: false },
  next(monitor, { event }) {
    if (event.type === 'cancel') return { ...monitor, cancelled: true }
    if (event.type === 'estop') return { ...monitor, stopped: true }
    return event.type === 'finish' ? { ...monitor, over: true } : monitor
  },
  atQuiescence({ cancelled, stopped, over }, { offers, blocked }) {
    if (blocked.some(({ event }) => event.type === 'halt')) return true
    if (stopped || over) return false
    const takes = (type: RunEvent['type']) => offers.some((offer) => offer.type === type)
    return !takes('estop') || !(cancelled || takes('cancel'))
  },
}

const noModeWithoutChecks: Property<RunEvent, { readonly unchecked: boolean }> = {
  name: 'No run is put into wiggum mode before there are checks that could end it.',
  init: { unchecked: false },
  next: (monitor, { event }) => (event.type === 'mode.set' && event.mode === 'wiggum' ? { unchecked: true } : monitor),
  violated: ({ unchecked }) => unchecked,
}
